-- Conversations, who may write to them, and what was written.
--
-- There are no foreign keys: each would cost a look-up for every row of an append. Every statement
-- that writes takes the row of the conversation first, and a deletion deletes everything.
-- Text is compared by its bytes (COLLATE "C"): the order does not depend on the server's language.
-- Moments are seconds since 1970, by the server's clock.

CREATE TABLE lockstitch.conversations (
    -- Never used again, not even after a deletion: a reader that is half-way must not go on in
    -- another conversation.
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- What it is found by: the name, or where that is too long for an index what stands for it.
    key text COLLATE "C" NOT NULL UNIQUE,
    name text COLLATE "C" NOT NULL,
    -- How many records there are; their numbers are 1 to this.
    length bigint NOT NULL DEFAULT 0,
    created double precision NOT NULL,
    changed double precision NOT NULL,
    -- The claim; all three are NULL where nobody has one.
    owner text COLLATE "C",
    token bigint,
    held_until double precision
)
-- Every append changes a row. With room in its page, and no index on what changes, the new version
-- stays where the old one was.
WITH (fillfactor = 50);

-- For listings. The beginning alone: an index takes no more than about 2,700 bytes.
CREATE INDEX conversations_by_name ON lockstitch.conversations (left(name, 500));

-- One count for all conversations: a claim from before a deletion stays lost when a conversation
-- of the same name begins.
CREATE SEQUENCE lockstitch.tokens;

-- The order in which groups of appends were written, over all conversations.
CREATE SEQUENCE lockstitch.groups;

CREATE TABLE lockstitch.records (
    conversation bigint NOT NULL,
    seq bigint NOT NULL,
    at double precision NOT NULL,
    payload bytea NOT NULL,
    body bytea,
    -- A large body, in `bodies`; then `body` is NULL.
    digest bytea,
    -- What it is found by, in order. Names are written with the record: a table of their own would
    -- cost a row and two entries of indexes for each (measured: half the speed of an append).
    first_name text COLLATE "C",
    second_name text COLLATE "C",
    -- The third and the rest; few records have them.
    other_names text[] COLLATE "C",
    -- All names in full, where one of them is too long for an index.
    long_names text[] COLLATE "C",
    -- When, among all that was written.
    group_number bigint NOT NULL,
    PRIMARY KEY (conversation, seq)
);

CREATE INDEX records_by_digest ON lockstitch.records (conversation, digest)
    WHERE digest IS NOT NULL;
CREATE INDEX records_by_first_name ON lockstitch.records (first_name)
    WHERE first_name IS NOT NULL;
CREATE INDEX records_by_second_name ON lockstitch.records (second_name)
    WHERE second_name IS NOT NULL;
-- Not put off for later: whoever writes when the list is full would wait for all of it.
CREATE INDEX records_by_other_names ON lockstitch.records USING gin (other_names)
    WITH (fastupdate = off) WHERE other_names IS NOT NULL;

CREATE TABLE lockstitch.bodies (
    conversation bigint NOT NULL,
    digest bytea NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (conversation, digest)
);
