-- Queries of both dialects. A comment of the form /*pg ... */ is SQL for PostgreSQL alone.

-- name: tell_feed
-- Something changed.
INSERT INTO feed (at, kind, session_key, session_id, turn_id, delivery_id, state)
VALUES (:at, :kind, :session_key, :session_id, :turn_id, :delivery_id, :state);

-- name: prune_feed
-- Nobody follows from so long ago.
DELETE FROM feed WHERE at < :before;
