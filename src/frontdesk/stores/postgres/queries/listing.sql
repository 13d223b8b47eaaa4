-- Lists of sessions.

-- name: list_owned
-- The sessions of some owners by latest activity; with `titled` those that have a title, with `chat` those
-- under that key.
SELECT {s.session} FROM unnest(CAST(:owners AS text[])) AS wanted (owner)
CROSS JOIN LATERAL (
    SELECT o.* FROM sessions o
    WHERE o.owner = wanted.owner AND (CAST(:titled AS bigint) = 0 OR o.title IS NOT NULL)
        AND (CAST(:chat AS text) IS NULL OR o.session_key = :chat)
    ORDER BY o.active_minute DESC, o.updated_at DESC, o.id DESC LIMIT :limit
) AS s
ORDER BY s.active_minute DESC, s.updated_at DESC, s.id DESC LIMIT :limit;
