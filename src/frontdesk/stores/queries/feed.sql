-- Queries of both dialects. A comment of the form /*pg ... */ is SQL for PostgreSQL alone.

-- name: tell_feed
-- Something changed.
INSERT INTO feed (at, kind, session_key, session_id, turn_id, delivery_id, confirmation_id, state, owner)
VALUES (:at, :kind, :session_key, :session_id, :turn_id, :delivery_id, :confirmation_id, :state, :owner);

-- name: prune_feed
-- Nobody follows from so long ago. The newest row stays: by it a place is known to be not older than the feed.
DELETE FROM feed WHERE at < :before AND number < (SELECT MAX(number) FROM feed);
