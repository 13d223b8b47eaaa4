-- Queries of both dialects. A comment of the form /*pg ... */ is SQL for PostgreSQL alone.

-- name: tell_feed
-- Something changed.
INSERT INTO feed (at, kind, session_key, session_id, turn_id, delivery_id, confirmation_id, state, owner)
VALUES (
    :at, :kind, COALESCE(:session_key, (SELECT s.session_key FROM sessions s WHERE s.id = :session_id)),
    :session_id, :turn_id, :delivery_id, :confirmation_id, :state, :owner
);

-- name: tell_confirmation
-- The audit log has another row, about a request or not.
INSERT INTO feed (at, kind, session_key, turn_id, confirmation_id, state) VALUES (
    :at, :kind,
    (SELECT c.session_key FROM confirmations c WHERE c.id = :confirmation_id),
    (SELECT c.turn_id FROM confirmations c WHERE c.id = :confirmation_id),
    :confirmation_id, :state
);

-- name: prune_feed
-- Nobody follows from so long ago. The newest row stays: by it a place is known to be not older than the feed.
DELETE FROM feed WHERE at < :before AND number < (SELECT MAX(number) FROM feed);
