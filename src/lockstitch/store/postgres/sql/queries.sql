-- Every statement of the PostgreSQL store, by name. `queries` reads them.

-- name: encoding
SELECT current_setting('server_encoding');

-- name: schema_exists
-- Not `to_regclass`: it looks in a cache, which does not yet know what another process made while
-- we waited for it.
SELECT EXISTS (
    SELECT FROM pg_catalog.pg_tables WHERE schemaname = 'lockstitch' AND tablename = 'schema'
);

-- name: schema_version
SELECT max(version) FROM lockstitch.schema;

-- name: begin_schema
CREATE SCHEMA IF NOT EXISTS lockstitch;
CREATE TABLE IF NOT EXISTS lockstitch.schema (
    version integer PRIMARY KEY,
    migrated timestamptz NOT NULL DEFAULT now()
);

-- name: note_migration
INSERT INTO lockstitch.schema (version) VALUES ($1);

-- name: claim
-- The token is taken while the row is locked: whoever waited for the lock gets a later one.
INSERT INTO lockstitch.conversations AS c (key, name, owner, token, held_until, created, changed)
SELECT $1, $4, $2, nextval('lockstitch.tokens'), clock.now + $3, clock.now, clock.now
FROM (SELECT extract(epoch FROM clock_timestamp())::double precision AS now) AS clock
ON CONFLICT (key) DO UPDATE SET
    owner = $2,
    token = nextval('lockstitch.tokens'),
    held_until = extract(epoch FROM clock_timestamp())::double precision + $3
WHERE c.token IS NULL OR c.held_until <= extract(epoch FROM clock_timestamp())::double precision
RETURNING token, length;

-- name: holder
SELECT
    length,
    owner,
    token,
    held_until - extract(epoch FROM clock_timestamp())::double precision AS seconds_left
FROM lockstitch.conversations
WHERE key = $1;

-- name: renew
UPDATE lockstitch.conversations
SET held_until = extract(epoch FROM clock_timestamp())::double precision + $3
WHERE key = $1 AND token = $2
RETURNING id;

-- name: release
UPDATE lockstitch.conversations
SET owner = NULL, token = NULL, held_until = NULL
WHERE key = $1 AND token = $2;

-- name: write_appends
-- A whole group of writes is one statement, put together of parts; one that is left out costs
-- nothing. This part comes first, then one of `write_onward` and `write_begun`, then the records.
-- Appends: what is in step is moved on, and its records are kept; the rest is left alone. The
-- arrays are in the order of names, which most plans follow when they lock rows.
WITH this AS MATERIALIZED (
    SELECT
        extract(epoch FROM clock_timestamp())::double precision AS now,
        nextval('lockstitch.groups') AS number
),
moved AS (
    UPDATE lockstitch.conversations AS c
    SET length = w.length,
        changed = CASE WHEN w.length > w.after THEN (SELECT now FROM this) ELSE c.changed END,
        owner = CASE WHEN w.release THEN NULL ELSE c.owner END,
        token = CASE WHEN w.release THEN NULL ELSE c.token END,
        held_until = CASE WHEN w.release THEN NULL ELSE c.held_until END
    FROM unnest(
        $1::text[], $2::text::bigint[], $3::text::bigint[], $4::text::bigint[],
        $5::text::boolean[]
    )
        WITH ORDINALITY
        AS w (key, token, after, length, release, place)
    WHERE c.key = w.key AND c.token = w.token AND c.length = w.after
    RETURNING c.id, w.place, w.token
)

-- name: write_onward
-- A group of nothing but appends.
, written AS (SELECT id, place, token FROM moved)

-- name: write_begun
-- Conversations that begin; where there is one of that name nothing is done. Their places are
-- behind those of the appends.
, new AS MATERIALIZED (
    SELECT
        b.key, b.name, b.owner, b.seconds, b.length, b.release,
        cardinality($1::text[]) + b.nth AS place,
        nextval('lockstitch.tokens') AS token
    FROM unnest(
        $19::text[], $20::text[], $21::text[], $22::double precision[],
        $23::text::bigint[], $24::text::boolean[]
    )
        WITH ORDINALITY
        AS b (key, name, owner, seconds, length, release, nth)
),
begun AS (
    INSERT INTO lockstitch.conversations (
        key, name, length, created, changed, owner, token, held_until
    )
    SELECT
        new.key, new.name, new.length, this.now, this.now,
        CASE WHEN new.release THEN NULL ELSE new.owner END,
        CASE WHEN new.release THEN NULL ELSE new.token END,
        CASE WHEN new.release THEN NULL ELSE this.now + new.seconds END
    FROM new, this
    ON CONFLICT (key) DO NOTHING
    RETURNING id, key
),
written AS (
    SELECT id, place, token FROM moved
    UNION ALL
    SELECT begun.id, new.place, new.token FROM begun JOIN new ON new.key = begun.key
)

-- name: write_records
-- What no record has may be left out: unnest fills up with NULL.
-- The character U+0001 and a comma are in no name.
, kept AS (
    INSERT INTO lockstitch.records (
        conversation, seq, at, payload, body, digest,
        first_name, second_name, other_names, long_names, group_number
    )
    SELECT
        w.id, r.seq, coalesce(r.at, (SELECT now FROM this)), r.payload, r.body, r.digest,
        r.first_name, r.second_name,
        string_to_array(r.other_names, E'\x01,'), string_to_array(r.long_names, E'\x01,'),
        (SELECT number FROM this)
    FROM unnest(
        $6::text::bigint[], $7::text::bigint[],
        $8::double precision[], $9::bytea[], $10::bytea[], $11::bytea[],
        string_to_array($12, E'\x01,', ''), string_to_array($13, E'\x01,', ''),
        $14::text[], $15::text[]
    ) AS r (
        place, seq, at, payload, body, digest, first_name, second_name, other_names, long_names
    )
    JOIN written AS w ON w.place = r.place
)

-- name: write_large_bodies
, kept_apart AS (
    INSERT INTO lockstitch.bodies (conversation, digest, body)
    SELECT w.id, b.digest, b.body
    FROM unnest($16::bigint[], $17::bytea[], $18::bytea[]) AS b (place, digest, body)
    JOIN written AS w ON w.place = b.place
    ON CONFLICT DO NOTHING
)

-- name: write_outcome
SELECT coalesce(array_agg(place), '{}') AS places, coalesce(array_agg(token), '{}') AS tokens
FROM written;

-- name: extent
SELECT id, length FROM lockstitch.conversations WHERE key = $1;

-- name: records_page
-- No more than $4 records, and no more than $5 bytes unless the first alone has more.
WITH page AS (
    SELECT
        r.seq,
        r.at,
        r.payload,
        coalesce(r.body, b.body) AS body,
        r.digest IS NOT NULL AND b.body IS NULL AS body_is_lost,
        coalesce(
            r.long_names,
            array_remove(ARRAY[r.first_name, r.second_name] || r.other_names, NULL)
        ) AS names,
        octet_length(r.payload) + coalesce(octet_length(r.body), octet_length(b.body), 0) AS size,
        sum(octet_length(r.payload) + coalesce(octet_length(r.body), octet_length(b.body), 0))
            OVER (ORDER BY r.seq ROWS UNBOUNDED PRECEDING) AS size_so_far
    FROM lockstitch.records AS r
    LEFT JOIN lockstitch.bodies AS b ON b.conversation = r.conversation AND b.digest = r.digest
    WHERE r.conversation = $1 AND r.seq > $2 AND r.seq <= $3
    ORDER BY r.seq
    LIMIT $4
)
SELECT seq, at, payload, body, body_is_lost, names
FROM page
WHERE size_so_far - size < $5
ORDER BY seq;

-- name: find
SELECT c.name, r.seq
FROM lockstitch.records AS r
JOIN lockstitch.conversations AS c ON c.id = r.conversation
WHERE r.first_name = $1 OR r.second_name = $1 OR r.other_names @> ARRAY[$1]
ORDER BY r.group_number DESC, r.seq DESC;

-- name: summaries_page
SELECT name, length, created, changed
FROM lockstitch.conversations
WHERE left(name, 500) >= left($1, 500) AND name >= $1
ORDER BY left(name, 500), name
LIMIT $2;

-- name: lock_conversation
SELECT id, length FROM lockstitch.conversations WHERE key = $1 FOR UPDATE;

-- name: digests
SELECT DISTINCT digest
FROM lockstitch.records
WHERE conversation = $1 AND seq = ANY($2::bigint[]) AND digest IS NOT NULL;

-- name: replace_records
UPDATE lockstitch.records AS r
SET payload = n.payload, body = n.body, digest = n.digest
FROM unnest($2::bigint[], $3::bytea[], $4::bytea[], $5::bytea[]) AS n (seq, payload, body, digest)
WHERE r.conversation = $1 AND r.seq = n.seq;

-- name: keep_bodies
INSERT INTO lockstitch.bodies (conversation, digest, body)
SELECT $1, b.digest, b.body
FROM unnest($2::bytea[], $3::bytea[]) AS b (digest, body)
ON CONFLICT DO NOTHING;

-- name: drop_bodies
DELETE FROM lockstitch.bodies AS b
WHERE b.conversation = $1
    AND b.digest = ANY($2::bytea[])
    AND NOT EXISTS (
        SELECT FROM lockstitch.records AS r
        WHERE r.conversation = $1 AND r.digest = b.digest
    );

-- name: forget
DELETE FROM lockstitch.conversations WHERE key = $1 RETURNING id;

-- name: forget_unchanged
-- In the order of keys, as writers lock them.
WITH old AS MATERIALIZED (
    SELECT id FROM lockstitch.conversations
    WHERE changed < $1
    ORDER BY key
    LIMIT $2
    FOR UPDATE
)
DELETE FROM lockstitch.conversations AS c USING old WHERE c.id = old.id
RETURNING c.id;

-- name: forget_records
DELETE FROM lockstitch.records WHERE conversation = ANY($1::bigint[]);

-- name: forget_bodies
DELETE FROM lockstitch.bodies WHERE conversation = ANY($1::bigint[]);

-- name: vacuum
VACUUM (ANALYZE) lockstitch.conversations, lockstitch.records, lockstitch.bodies;

-- name: stats
SELECT
    (SELECT count(*) FROM lockstitch.conversations) AS conversations,
    (SELECT coalesce(sum(length), 0)::bigint FROM lockstitch.conversations) AS records,
    (SELECT count(*) FROM lockstitch.bodies) AS bodies,
    pg_total_relation_size('lockstitch.conversations')
    + pg_total_relation_size('lockstitch.records')
    + pg_total_relation_size('lockstitch.bodies') AS size_bytes,
    (SELECT max(version) FROM lockstitch.schema) AS schema;
