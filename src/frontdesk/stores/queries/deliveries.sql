-- Queries of both dialects. A comment of the form /*pg ... */ is SQL for PostgreSQL alone.

-- name: insert_delivery
-- Something to be said to a chat.
INSERT INTO deliveries (
    id, lane, state, kind, platform, account, turn_id, session_id, session_key, created_at, due_at, body,
    confirmation_id, attempts
) VALUES (
    :id, :lane, :state, :kind, :platform, :account, :turn_id, :session_id, :session_key, :created_at,
    :created_at, :body, :confirmation_id, :attempts
) ON CONFLICT (id) DO NOTHING RETURNING number /*pg , pg_current_xact_id() AS xid */;

-- name: begin_send
-- Take the first delivery that waits in a lane.
UPDATE deliveries SET state = 'sending', attempts = attempts + 1
WHERE number = (SELECT MIN(q.number) FROM deliveries q WHERE q.lane = :lane AND q.state = 'pending')
RETURNING {delivery};

-- part: settled_delivery
-- What became of a send.
UPDATE deliveries SET
    state = :state, due_at = COALESCE(:due_at, due_at), sent_at = :sent_at, error = :error,
    attempts = attempts - :uncounted,
    platform_message_id = COALESCE(:platform_message_id, platform_message_id),
    message_digest = COALESCE(:message_digest, message_digest)
WHERE id = :delivery_id;

-- name: settle_delivery
-- Settle it, for whoever has its lane.
{settled_delivery};

-- name: settle_held_delivery
-- Settle it while the lease holds, which it does until the transaction ends.
WITH held AS MATERIALIZED (
    SELECT 1 FROM lanes WHERE name = :lane AND holder = :node AND token = :token /*pg FOR UPDATE */
)
{settled_delivery} AND EXISTS (SELECT 1 FROM held) RETURNING number /*pg , pg_current_xact_id() AS xid */;

-- name: hasten_deliveries
-- What was to be sent later is to be sent now.
UPDATE deliveries SET due_at = :now WHERE state = 'pending' AND due_at > :now;

-- name: next_pending
-- When the first delivery that waits in a lane is due.
SELECT due_at FROM deliveries WHERE lane = :lane AND state = 'pending' ORDER BY number LIMIT 1;

-- name: sends_under_way
-- The sends of a lane whose holder is gone.
SELECT {d.delivery} FROM deliveries d WHERE d.lane = :lane AND d.state = 'sending';

-- name: delivery
-- A delivery by its id.
SELECT {d.delivery} FROM deliveries d WHERE d.id = :delivery_id;

-- name: delivery_of_message
-- The newest delivery that became a message of a chat.
SELECT {d.delivery} FROM deliveries d WHERE d.message_digest = :message_digest ORDER BY d.number DESC LIMIT 1;

-- name: delivery_locked
-- A delivery by its id, to be changed.
SELECT {d.delivery} FROM deliveries d WHERE d.id = :delivery_id /*pg FOR UPDATE */;

-- name: deliveries_of
-- What was said in answer to a turn.
SELECT {d.delivery} FROM deliveries d WHERE d.turn_id = :turn_id ORDER BY d.number;

-- name: pending_in
-- What waits in a lane.
SELECT {d.delivery} FROM deliveries d WHERE d.lane = :lane AND d.state = 'pending' ORDER BY d.number LIMIT :limit;

-- name: troubled_deliveries
-- What did not arrive, or may not have; newest first.
SELECT {d.delivery} FROM deliveries d WHERE d.state IN ('dead', 'unknown') ORDER BY d.number DESC LIMIT :limit;

-- part: late
-- What was tried in vain and is tried again, and what waits behind it.
SELECT p.number FROM deliveries p WHERE p.state = 'pending' AND (p.error IS NOT NULL
    OR EXISTS (SELECT 1 FROM deliveries b WHERE b.lane = p.lane AND b.state = 'pending' AND b.error IS NOT NULL)
    OR EXISTS (SELECT 1 FROM deliveries b WHERE b.lane = p.lane AND b.state = 'sending' AND b.error IS NOT NULL))
UNION ALL
SELECT s.number FROM deliveries s WHERE s.state = 'sending' AND s.error IS NOT NULL

-- name: late_deliveries
-- What was tried in vain and is tried again, and what waits behind it; newest first.
SELECT {d.delivery} FROM deliveries d WHERE d.number IN ({late}) ORDER BY d.number DESC LIMIT :limit;

-- name: why_troubled
-- What is said of what did not arrive, or may not have; newest first.
SELECT d.platform, d.state, d.error, d.due_at FROM deliveries d
WHERE d.state IN ('dead', 'unknown') ORDER BY d.number DESC LIMIT :limit;

-- name: why_late
-- The same of what is late.
SELECT d.platform, d.state, d.error, d.due_at FROM deliveries d
WHERE d.number IN ({late}) ORDER BY d.number DESC LIMIT :limit;

-- name: count_troubled
-- Of what did not arrive, or may not have, the oldest: how many on each platform, and since when.
SELECT o.platform, COUNT(*), MIN(o.created_at) FROM (
    SELECT d.platform, d.created_at FROM deliveries d WHERE d.state IN ('dead', 'unknown') ORDER BY d.number LIMIT :limit
) AS o GROUP BY o.platform;

-- name: count_late
-- The same of what is late.
SELECT o.platform, COUNT(*), MIN(o.created_at) FROM (
    SELECT d.platform, d.created_at FROM deliveries d WHERE d.number IN ({late}) ORDER BY d.number LIMIT :limit
) AS o GROUP BY o.platform;

-- name: bring_forward
-- What is to be tried later is due now.
UPDATE deliveries SET due_at = :now
WHERE id = :delivery_id AND state = 'pending' AND due_at > :now RETURNING lane;

-- name: collect_delivery
-- The other side has it.
UPDATE deliveries SET state = 'sent', sent_at = :now
WHERE id = :delivery_id AND state = 'pending' AND lane LIKE 'box:%'
RETURNING turn_id, session_id, session_key /*pg , pg_current_xact_id() AS xid */;

-- name: revive_delivery
-- To be sent again, because a person wants it.
UPDATE deliveries SET state = 'pending', due_at = :now, error = NULL, attempts = 0
WHERE id = :delivery_id AND state IN ('dead', 'unknown')
RETURNING lane, turn_id, session_id, session_key /*pg , pg_current_xact_id() AS xid */;

-- name: discard_delivery
-- A person wants it no more.
UPDATE deliveries SET state = 'discarded', due_at = :now WHERE id = :delivery_id AND state IN ('dead', 'unknown')
RETURNING turn_id, session_id, session_key /*pg , pg_current_xact_id() AS xid */;

-- name: prune_deliveries
-- Forget what arrived, or was given up by a person, long ago, some at a time.
DELETE FROM deliveries WHERE number IN (
    SELECT a.number FROM (
        SELECT o.number FROM deliveries o WHERE o.sent_at IS NOT NULL AND o.sent_at < :before
        ORDER BY o.sent_at LIMIT :limit
    ) AS a
    UNION ALL SELECT o.number FROM deliveries o WHERE o.state = 'discarded' AND o.due_at < :before LIMIT :limit
) RETURNING number /*pg , pg_current_xact_id() AS xid */;

-- name: expire_boxes
-- Give up what nobody has collected, some at a time.
UPDATE deliveries SET state = 'dead', error = 'nobody collected it' WHERE number IN (
    SELECT o.number FROM deliveries o
    WHERE o.state = 'pending' AND o.lane LIKE 'box:%' AND o.created_at < :before LIMIT :limit
) RETURNING id, turn_id, session_id, session_key /*pg , pg_current_xact_id() AS xid */;

-- name: count_deliveries
-- How many deliveries are in each state that somebody should know of.
SELECT state, COUNT(*) FROM deliveries WHERE state IN ('pending', 'sending', 'unknown', 'dead') GROUP BY state;
