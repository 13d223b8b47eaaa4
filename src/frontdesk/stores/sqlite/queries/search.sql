-- The full-text index. A message's seq is its rowid in `words`; `indexed.up_to` is the last seq that is in it.
-- bm25 is negative, the best match the lowest; the owner's word has no weight in it.

-- name: index_state
-- The dialect, the newest message that a search must see, whether the index lacks it, and the newest of all.
SELECT 'fts5', COALESCE(:goal, newest), up_to < MIN(COALESCE(:goal, newest), newest), newest
FROM indexed, (SELECT COALESCE(MAX(seq), 0) AS newest FROM messages);

-- name: lock_index
-- The dialect, how far the index is and how far it can get. There is one writer anyway.
SELECT 'fts5', up_to, (SELECT COALESCE(MAX(seq), 0) FROM messages) FROM indexed;

-- name: backlog
-- How many messages are not in the index, counting no further than a limit, and how large they are.
SELECT COUNT(*), COALESCE(SUM(LENGTH(body)), 0) FROM (
    SELECT body FROM messages
    WHERE seq > (SELECT up_to FROM indexed) AND seq <= :goal ORDER BY seq LIMIT :limit
);

-- name: unindexed
-- Messages that are not in the index, the oldest first.
SELECT m.seq, s.owner, m.body, m.seq
FROM messages m CROSS JOIN sessions s ON s.id = m.session_id
WHERE m.seq > (SELECT up_to FROM indexed) AND m.seq <= :goal ORDER BY m.seq LIMIT :limit;

-- name: session_texts
-- A session's messages after a position.
SELECT m.seq, s.owner, m.body, m.position
FROM messages m JOIN sessions s ON s.id = m.session_id
WHERE m.session_id = :session_id AND m.position > :after ORDER BY m.position LIMIT :limit;

-- name: insert_words
-- Put a message into the index, or in the place of what it had of it.
INSERT OR REPLACE INTO words (rowid, text, owner) VALUES (:seq, :text, :owner);

-- name: advance_index
-- Everything up to here is in the index.
UPDATE indexed SET up_to = MAX(up_to, :mark);

-- name: clear_words
-- Empty the index.
INSERT INTO words (words) VALUES ('delete-all');

-- name: restart_index
-- Look at every message again.
UPDATE indexed SET up_to = 0;

-- name: count_matches
-- How many matches there are, counting no further than a limit.
SELECT COUNT(*) FROM (SELECT 1 FROM words WHERE words MATCH :match LIMIT :limit);

-- name: best_matches
-- The best matches, newer ones first among equals.
SELECT rowid FROM words WHERE words MATCH :among ORDER BY bm25(words, 1.0, 0.0), rowid DESC LIMIT :limit;

-- name: best_excerpts
-- As much as is wanted of the messages of the first ones among the best matches that the viewer may see and the filters let through.
SELECT m.seq, m.seq, m.session_id, m.position, m.role, m.created_at, substr(m.body, 1, :most_bytes)
FROM (
    SELECT rowid AS seq, bm25(words, 1.0, 0.0) AS score
    FROM words WHERE words MATCH :match ORDER BY 2, 1 DESC LIMIT :candidates
) AS found
CROSS JOIN messages m ON m.seq = found.seq
JOIN sessions s ON s.id = m.session_id
WHERE m.hidden_by IS NULL
    AND (:everything OR s.owner IN (SELECT value FROM json_each(:owners)))
    AND (:chat IS NULL OR s.session_key = :chat)
    AND CASE WHEN :role IS NULL THEN m.role <> 'session_meta' ELSE m.role = :role END
    AND (:platform IS NULL OR s.platform = :platform)
    AND m.created_at >= :since AND m.created_at < :until
ORDER BY found.score, found.seq DESC LIMIT :limit;

-- name: visible
-- Of these messages the first ones that the viewer may see and the filters let through.
SELECT m.seq
FROM json_each(:seqs) AS wanted
CROSS JOIN messages m ON m.seq = wanted.value
JOIN sessions s ON s.id = m.session_id
WHERE m.hidden_by IS NULL
    AND (:everything OR s.owner IN (SELECT value FROM json_each(:owners)))
    AND (:chat IS NULL OR s.session_key = :chat)
    AND CASE WHEN :role IS NULL THEN m.role <> 'session_meta' ELSE m.role = :role END
    AND (:platform IS NULL OR s.platform = :platform)
    AND m.created_at >= :since AND m.created_at < :until
ORDER BY wanted.key LIMIT :limit;

-- name: all_matches
-- The best of all matches that the viewer may see and the filters let through.
SELECT m.seq
FROM words
CROSS JOIN messages m ON m.seq = words.rowid
JOIN sessions s ON s.id = m.session_id
WHERE words MATCH :among AND m.hidden_by IS NULL
    AND (:everything OR s.owner IN (SELECT value FROM json_each(:owners)))
    AND (:chat IS NULL OR s.session_key = :chat)
    AND CASE WHEN :role IS NULL THEN m.role <> 'session_meta' ELSE m.role = :role END
    AND (:platform IS NULL OR s.platform = :platform)
    AND m.created_at >= :since AND m.created_at < :until
ORDER BY bm25(words, 1.0, 0.0), m.seq DESC LIMIT :limit;

-- name: excerpts
-- Messages with those around them in their transcripts; of each as much as is wanted.
SELECT hit.seq, m.seq, m.session_id, m.position, m.role, m.created_at, substr(m.body, 1, :most_bytes)
FROM json_each(:seqs) AS wanted
CROSS JOIN messages hit ON hit.seq = wanted.value
CROSS JOIN messages m ON m.seq IN (
    SELECT seq FROM (
        SELECT n.seq FROM messages n
        WHERE n.session_id = hit.session_id AND n.position < hit.position
            AND n.hidden_by IS NULL AND n.role <> 'session_meta'
        ORDER BY n.position DESC LIMIT :around
    )
    UNION ALL SELECT hit.seq
    UNION ALL SELECT seq FROM (
        SELECT n.seq FROM messages n
        WHERE n.session_id = hit.session_id AND n.position > hit.position
            AND n.hidden_by IS NULL AND n.role <> 'session_meta'
        ORDER BY n.position LIMIT :around
    )
);
