-- Queries of both dialects. A comment of the form /*pg ... */ is SQL for PostgreSQL alone.

-- name: move_cursor
-- How far a platform was read.
INSERT INTO cursors (platform, account, chat, value, moved_at)
VALUES (:platform, :account, :chat, :value, micros())
ON CONFLICT (platform, account, chat) DO UPDATE SET value = excluded.value, moved_at = excluded.moved_at
RETURNING 1 /*pg , pg_current_xact_id() AS xid */;

-- name: cursors_of
-- How far the account's stream and its chats were read.
SELECT chat, value FROM cursors WHERE platform = :platform AND account = :account;
