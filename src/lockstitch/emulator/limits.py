"""The emulator's limits, each with its unit and its reason.

Those of the provider are what its documentation says; those of the emulator itself keep a long
test run, or a hostile client, from eating the machine."""

# The provider's own.
LONGEST_CALL_ID_CHARACTERS = 64
LONGEST_REALTIME_CALL_ID_CHARACTERS = 32
MOST_METADATA_PAIRS = 16
LONGEST_METADATA_KEY_CHARACTERS = 64
LONGEST_METADATA_VALUE_CHARACTERS = 512
MOST_CONVERSATION_ITEMS_AT_ONCE = 20
MOST_LISTED_ITEMS = 100
LISTED_ITEMS = 20
MOST_IN_FLIGHT_RESPONSES = 16
MOST_LANES = 32
LONGEST_LANE_NAME_CHARACTERS = 256
LONGEST_CONNECTION_SECONDS = 60 * 60.0
MOST_PENDING_STEERS = 16

# The emulator's.
# A full conversation with screenshots stays below this; a runaway client does not.
LARGEST_BODY_BYTES = 64 * 1024 * 1024
LARGEST_FRAME_BYTES = 64 * 1024 * 1024
# Beyond these the oldest is forgotten, as a provider with a retention period would.
MOST_STORED_RESPONSES = 10_000
MOST_CONVERSATIONS = 10_000
MOST_ITEMS_IN_CONVERSATION = 100_000
MOST_REMEMBERED_ITEM_IDS = 1_000_000
# One test run's worth; what falls out is counted and said.
MOST_RECORDED_BYTES = 256 * 1024 * 1024
# Requests at once, and open sockets: beyond it an idle one is closed for each that comes.
MOST_CONNECTIONS = 1_000
# A connection that asks for nothing is closed after this.
KEEP_ALIVE_SECONDS = 75.0
MOST_FAULTS = 1_000
MOST_TURNS = 100_000
LARGEST_SCRIPT_BYTES = 16 * 1024 * 1024
# A stall with no length given ends here, so that a forgotten test does not hang for ever.
LONGEST_STALL_SECONDS = 3_600.0
# How long a stop waits for what does not let itself be cancelled.
STOP_SECONDS = 2.0
# How long a WebSocket client has to answer a close; the next one who waits is the user.
CLOSE_SECONDS = 0.5
# What is read can be written again, and walked by code that recurses.
MOST_NESTING_LEVELS = 100
# A refusal says back what a client sent, however long that was.
LONGEST_REFUSAL_CHARACTERS = 4_000
LONGEST_REFUSAL_PARAM_CHARACTERS = 500
# The record counts requests by their line, and a line is what a client makes of it.
LONGEST_RECORDED_LINE_CHARACTERS = 1_000
MOST_COUNTED_LINES = 10_000

# Realtime: the provider's own.
LONGEST_REALTIME_ITEM_ID_CHARACTERS = 32
LARGEST_REALTIME_AUDIO_EVENT_BYTES = 15 * 1024 * 1024
# A commit of less is answered as one of nothing.
SHORTEST_REALTIME_COMMIT_MILLISECONDS = 100
# Realtime: the emulator's.
MOST_REALTIME_ITEMS = 10_000
# Deleted items whose place is still known; an item that names an older one goes to the end.
MOST_REALTIME_TOMBSTONES = 10_000
# In flight in one session: that of the conversation, and those out of band.
MOST_REALTIME_RESPONSES = 16
# About half an hour of PCM, waiting to be committed.
LARGEST_REALTIME_BUFFER_BYTES = 96 * 1024 * 1024
# About a minute of PCM: what turn detection heard no speech in is forgotten beyond this, so that
# a microphone may stay open.
LARGEST_REALTIME_SILENCE_BYTES = 3 * 1024 * 1024
# Committed audio kept to be retrieved; of later items only the length is known.
MOST_REALTIME_AUDIO_BYTES = 96 * 1024 * 1024
