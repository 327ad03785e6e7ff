-- Every statement of the SQLite store, by name. `queries` reads them.

-- name: conversation
SELECT id, owner, token, until FROM conversations WHERE name = ?;

-- name: length
SELECT coalesce(max(seq), 0) FROM records WHERE conversation = ?;

-- name: begin_conversation
INSERT INTO conversations (name, created, owner, token, until) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (name) DO NOTHING RETURNING id;

-- name: next_token
UPDATE fence SET token = token + 1 RETURNING token;

-- name: claim
UPDATE conversations SET owner = ?, token = ?, until = ? WHERE id = ?;

-- name: renew
UPDATE conversations SET until = ? WHERE id = ?;

-- name: release
UPDATE conversations SET owner = NULL, token = NULL, until = NULL WHERE id = ?;

-- name: append_record
INSERT INTO records (conversation, seq, at, written, payload, body, large, names)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: append_name
INSERT OR IGNORE INTO names (id, naming, conversation, seq) VALUES (?, ?, ?, ?);

-- name: large_body
SELECT id FROM bodies WHERE conversation = ? AND digest = ?;

-- name: keep_large_body
INSERT INTO bodies (conversation, digest, body) VALUES (?, ?, ?) RETURNING id;

-- name: replaced_record
SELECT large FROM records WHERE conversation = ? AND seq = ?;

-- name: replace_record
UPDATE records SET payload = ?, body = ?, large = ? WHERE conversation = ? AND seq = ?;

-- name: drop_unused_body
DELETE FROM bodies
WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM records WHERE large = ?1);

-- name: names_of_conversation
SELECT seq, names FROM records WHERE conversation = ? AND names IS NOT NULL;

-- name: delete_name
DELETE FROM names WHERE id = ? AND naming = ? AND conversation = ? AND seq = ?;

-- name: delete_records
DELETE FROM records WHERE conversation = ?;

-- name: delete_bodies
DELETE FROM bodies WHERE conversation = ?;

-- name: delete_conversation
DELETE FROM conversations WHERE id = ?;

-- name: read
SELECT
    records.seq, records.payload, coalesce(records.body, bodies.body), records.large,
    records.names, records.at
FROM records LEFT JOIN bodies ON bodies.id = records.large
WHERE records.conversation = ? AND records.seq > ? AND records.seq <= ?
ORDER BY records.seq;

-- name: is_there
SELECT count(*) FROM conversations WHERE id = ?;

-- name: find
SELECT conversations.name, names.seq
FROM names
JOIN conversations ON conversations.id = names.conversation
JOIN records ON records.conversation = names.conversation AND records.seq = names.seq
WHERE names.id = ? AND names.naming = ?
ORDER BY records.id DESC;

-- name: summaries
SELECT
    name,
    (SELECT coalesce(max(seq), 0) FROM records WHERE conversation = conversations.id),
    created,
    coalesce(
        (
            SELECT coalesce(written, at) FROM records
            WHERE conversation = conversations.id ORDER BY seq DESC LIMIT 1
        ),
        created
    )
FROM conversations
WHERE name >= ?
ORDER BY name
LIMIT ?;

-- name: changed
SELECT coalesce(
    (
        SELECT coalesce(written, at) FROM records
        WHERE conversation = conversations.id ORDER BY seq DESC LIMIT 1
    ),
    created
)
FROM conversations
WHERE id = ?;

-- name: old_conversations
SELECT name
FROM conversations
WHERE name >= ?1 AND ?2 > coalesce(
    (
        SELECT coalesce(written, at) FROM records
        WHERE conversation = conversations.id ORDER BY seq DESC LIMIT 1
    ),
    created
)
ORDER BY name
LIMIT ?3;

-- name: counts
SELECT
    (SELECT count(*) FROM conversations),
    (SELECT count(*) FROM records),
    (SELECT count(*) FROM bodies);
