-- Lists of sessions.

-- name: list_owned
-- The sessions of some owners by latest activity; with `titled` those that have a title, with `chat` those
-- under that key.
SELECT {s.session} FROM json_each(:owners) AS wanted
CROSS JOIN sessions s ON s.id IN (
    SELECT o.id FROM sessions o
    WHERE o.owner = wanted.value AND (:titled = 0 OR o.title IS NOT NULL)
        AND (:chat IS NULL OR o.session_key = :chat)
    ORDER BY o.active_minute DESC, o.updated_at DESC, o.id DESC LIMIT :limit
)
ORDER BY s.active_minute DESC, s.updated_at DESC, s.id DESC LIMIT :limit;
