-- Queries of both dialects. A comment of the form /*pg ... */ is SQL for PostgreSQL alone.

-- name: insert_button
-- Something to press under a message.
INSERT INTO buttons (token, delivery_id, chat, sign, does, until)
VALUES (:token, :delivery_id, :chat, :sign, :does, :until);

-- name: button
-- A button by its token.
SELECT {b.button} FROM buttons b WHERE b.token = :token;

-- name: numbered_buttons
-- What a number stands for in a chat of a conversation, the latest first, with where it was said.
SELECT {b.button}, d.number, d.lane FROM buttons b JOIN deliveries d ON d.id = b.delivery_id
WHERE b.chat = :chat AND b.sign = :number AND b.used_at IS NULL AND b.until > :now
    AND d.session_key = :session_key ORDER BY d.number DESC LIMIT 10;

-- name: said_since
-- Whether a chat was answered after that.
SELECT 1 FROM deliveries WHERE number > :number AND lane = :lane AND kind = 'reply' LIMIT 1;

-- name: use_buttons
-- One of the buttons of a message was pressed: none of them can be any more.
UPDATE buttons SET used_at = :now, used_by = :used_by
WHERE used_at IS NULL AND until > :now
    AND delivery_id = (SELECT p.delivery_id FROM buttons p WHERE p.token = :token)
RETURNING token /*pg , pg_current_xact_id() AS xid */;

-- name: prune_buttons
-- Forget buttons whose time is long over, some at a time.
DELETE FROM buttons WHERE token IN (SELECT o.token FROM buttons o WHERE o.until < :before LIMIT :limit)
RETURNING token /*pg , pg_current_xact_id() AS xid */;
