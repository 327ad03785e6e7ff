-- Conversations, who may write to them, and what was written.

CREATE TABLE conversations (
    -- Never used again, not even after a deletion: a reader that is half-way must not go on in
    -- another conversation.
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    created REAL NOT NULL,
    -- The claim; all three are NULL where nobody has one.
    owner TEXT,
    token INTEGER,
    until REAL
) STRICT;

-- The last token that was given out, for all conversations: a claim from before a deletion stays
-- lost when a conversation of the same name begins.
CREATE TABLE fence (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    token INTEGER NOT NULL
) STRICT;

INSERT INTO fence VALUES (1, 0);

-- In the order written, with an index beside it: sixty-four writers then fill the same few pages.
-- Clustered by conversation each would write a page of its own (measured: half as fast).
CREATE TABLE records (
    id INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    at REAL NOT NULL,
    -- When it was really written; NULL where that is `at`.
    written REAL,
    payload BLOB NOT NULL,
    body BLOB,
    -- A large body, in `bodies`; then `body` is NULL.
    large INTEGER,
    -- As JSON, in their order: [["call", "call_1"], …]. `names` finds them.
    names BLOB
) STRICT;

CREATE UNIQUE INDEX records_in_order ON records (conversation, seq);
CREATE INDEX records_by_large_body ON records (large) WHERE large IS NOT NULL;

CREATE TABLE bodies (
    id INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL,
    digest BLOB NOT NULL,
    body BLOB NOT NULL,
    UNIQUE (conversation, digest)
) STRICT;

CREATE TABLE names (
    id TEXT NOT NULL,
    naming TEXT NOT NULL,
    conversation INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (id, naming, conversation, seq)
) STRICT, WITHOUT ROWID;
