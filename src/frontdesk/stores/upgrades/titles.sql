-- Titles are found by what makes two of them the same now.

-- name: titled_sessions
-- Sessions with a title, by id.
SELECT s.id, s.title, s.title_key FROM sessions s
WHERE s.id > CAST(:after AS text) AND s.title IS NOT NULL ORDER BY s.id LIMIT :limit;

-- name: fold_title
-- What a title is found by, unless another of the owner's is found by it.
UPDATE sessions SET title_key = CAST(:title_key AS text) WHERE id = :session_id AND NOT EXISTS (
    SELECT 1 FROM sessions o WHERE o.owner = sessions.owner AND o.title_key = :title_key
);
