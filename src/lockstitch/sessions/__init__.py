"""Foreign session files: read, check, mend. `files` is the door."""
