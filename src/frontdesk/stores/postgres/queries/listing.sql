-- Lists of sessions.

-- name: list_owned
-- The sessions of some owners by latest activity; with `titled` those that have a title.
SELECT s.* FROM sessions s
WHERE s.owner = ANY(CAST(:owners AS text[])) AND (CAST(:titled AS bigint) = 0 OR s.title IS NOT NULL)
ORDER BY s.updated_at DESC, s.id DESC LIMIT :limit;
