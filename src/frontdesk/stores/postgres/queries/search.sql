-- The full-text index. Transactions commit in another order than they began: `indexed.up_to` is a transaction
-- below which every message is in `words`; of the later ones those are missing that have no row there.

-- name: index_state
-- The dialect, a transaction before which a search must see everything, and whether the index lacks any of it.
SELECT 'tsvector', goal, i.up_to > pg_snapshot_xmin(pg_current_snapshot()) OR (
    SELECT m.seq FROM messages m
    WHERE m.written_by >= i.up_to AND m.written_by < CAST(CAST(goal AS text) AS xid8)
        AND NOT EXISTS (SELECT 1 FROM words w WHERE w.seq = m.seq)
    ORDER BY m.written_by LIMIT 1
) IS NOT NULL, 0
FROM indexed i, (
    SELECT COALESCE(
        CAST(:goal AS bigint), CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS text) AS bigint)
    ) AS goal
) AS wanted;

-- name: lock_index
-- The dialect, how far the index is and how far it can get: messages of older transactions can all be seen.
-- Nothing when another node has the lock and that is not waited for.
SELECT 'tsvector', CAST(CAST(up_to AS text) AS bigint),
    CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint)
FROM indexed WHERE CASE WHEN CAST(:waits AS bigint) = 1
    THEN pg_advisory_xact_lock(hashtextextended('index:' || current_schema(), 0)) IS NOT NULL
    ELSE pg_try_advisory_xact_lock(hashtextextended('index:' || current_schema(), 0))
END;

-- name: backlog
-- How many messages are not in the index, counting no further than a limit, and how large they are.
SELECT COUNT(*), COALESCE(SUM(octet_length(body)), 0) FROM (
    SELECT m.body FROM messages m
    WHERE m.written_by >= (SELECT up_to FROM indexed)
        AND m.written_by < CAST(CAST(CAST(:goal AS bigint) AS text) AS xid8)
        AND NOT EXISTS (SELECT 1 FROM words w WHERE w.seq = m.seq)
    ORDER BY m.written_by, m.seq LIMIT :limit
) AS waiting;

-- name: unindexed
-- Messages that are not in the index, the oldest first.
SELECT m.seq, s.owner, m.body, CAST(CAST(m.written_by AS text) AS bigint)
FROM messages m JOIN sessions s ON s.id = m.session_id
WHERE m.written_by >= (SELECT up_to FROM indexed)
    AND m.written_by < CAST(CAST(CAST(:goal AS bigint) AS text) AS xid8)
    AND NOT EXISTS (SELECT 1 FROM words w WHERE w.seq = m.seq)
ORDER BY m.written_by, m.seq LIMIT :limit;

-- name: session_texts
-- A session's messages after a position.
SELECT m.seq, s.owner, m.body, m.position
FROM messages m JOIN sessions s ON s.id = m.session_id
WHERE m.session_id = :session_id AND m.position > :after ORDER BY m.position LIMIT :limit;

-- name: insert_words
-- Put messages into the index, or in the place of what it had of them: [[seq, tsvector], ...]; not those that
-- have been deleted meanwhile.
INSERT INTO words (seq, words)
SELECT m.seq, CAST(given.value ->> 1 AS tsvector)
FROM json_array_elements(CAST(CAST(:rows AS text) AS json)) AS given (value)
JOIN messages m ON m.seq = CAST(given.value ->> 0 AS bigint)
FOR KEY SHARE OF m
ON CONFLICT (seq) DO UPDATE SET words = excluded.words;

-- name: advance_index
-- Everything up to here is in the index.
UPDATE indexed SET up_to = GREATEST(up_to, CAST(CAST(CAST(:mark AS bigint) AS text) AS xid8));

-- name: clear_words
-- Empty the index. TRUNCATE would empty it for searches that began before, too.
DELETE FROM words;

-- name: restart_index
-- Look at every message again, first at those of transactions to come: they were restored from another server.
-- They are given to many transactions of the past, since what is missing of a single one is looked for in all of it.
WITH restored AS (
    UPDATE messages
    SET written_by = CAST(CAST(seq % CAST(CAST(pg_current_xact_id() AS text) AS bigint) AS text) AS xid8)
    WHERE written_by > pg_current_xact_id()
)
UPDATE indexed SET up_to = '0';

-- name: best_matches
-- The best matches, newer ones first among equals.
SELECT w.seq FROM words w
WHERE w.words @@ CAST(CAST(:among AS text) AS tsquery)
ORDER BY ts_rank(w.words, CAST(CAST(:match AS text) AS tsquery), 1) DESC, w.seq DESC LIMIT :limit;

-- name: visible
-- Of these messages the first ones that the viewer may see and the filters let through.
SELECT m.seq
FROM unnest(CAST(:seqs AS bigint[])) WITH ORDINALITY AS wanted (seq, place)
JOIN messages m ON m.seq = wanted.seq
JOIN sessions s ON s.id = m.session_id
WHERE m.hidden_by IS NULL
    AND (CAST(:everything AS bigint) = 1 OR s.owner = ANY(CAST(:owners AS text[])))
    AND (CAST(:chat AS text) IS NULL OR s.session_key = :chat)
    AND CASE WHEN CAST(:role AS text) IS NULL THEN m.role <> 'session_meta' ELSE m.role = :role END
    AND (CAST(:platform AS text) IS NULL OR s.platform = :platform)
    AND m.created_at >= :since AND m.created_at < :until
ORDER BY wanted.place LIMIT :limit;

-- name: all_matches
-- The best of all matches that the viewer may see and the filters let through.
SELECT m.seq
FROM words w
JOIN messages m ON m.seq = w.seq
JOIN sessions s ON s.id = m.session_id
WHERE w.words @@ CAST(CAST(:among AS text) AS tsquery) AND m.hidden_by IS NULL
    AND (CAST(:everything AS bigint) = 1 OR s.owner = ANY(CAST(:owners AS text[])))
    AND (CAST(:chat AS text) IS NULL OR s.session_key = :chat)
    AND CASE WHEN CAST(:role AS text) IS NULL THEN m.role <> 'session_meta' ELSE m.role = :role END
    AND (CAST(:platform AS text) IS NULL OR s.platform = :platform)
    AND m.created_at >= :since AND m.created_at < :until
ORDER BY ts_rank(w.words, CAST(CAST(:match AS text) AS tsquery), 1) DESC, m.seq DESC LIMIT :limit;

-- name: excerpts
-- Messages with those around them in their transcripts; of each as much as is wanted.
SELECT hit.seq, m.seq, m.session_id, m.position, m.role, m.created_at, substr(m.body, 1, CAST(:most_bytes AS int))
FROM unnest(CAST(:seqs AS bigint[])) AS wanted (seq)
JOIN messages hit ON hit.seq = wanted.seq
CROSS JOIN LATERAL (
    (
        SELECT n.* FROM messages n
        WHERE n.session_id = hit.session_id AND n.position < hit.position
            AND n.hidden_by IS NULL AND n.role <> 'session_meta'
        ORDER BY n.position DESC LIMIT :around
    )
    UNION ALL (SELECT n.* FROM messages n WHERE n.seq = hit.seq)
    UNION ALL (
        SELECT n.* FROM messages n
        WHERE n.session_id = hit.session_id AND n.position > hit.position
            AND n.hidden_by IS NULL AND n.role <> 'session_meta'
        ORDER BY n.position LIMIT :around
    )
) AS m;
