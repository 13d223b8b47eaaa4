-- Pages of turns and deliveries, newest first. Of each its number, and how many bytes there are to read of it.

-- part: whose_turn
-- Of turns that the viewer may see: by their session, else by the one that their conversation has now.
(CAST(:everything AS bigint) = 1 OR COALESCE(
    (SELECT s.owner FROM sessions s WHERE s.id = t.session_id),
    (SELECT s.owner FROM routes r JOIN sessions s ON s.id = r.session_id WHERE r.session_key = t.session_key),
    t.session_key
) = ANY(CAST(:owners AS text[])))

-- name: turns_that_wait
-- Turns that wait to be run, the newest first.
SELECT t.number, length(t.body) FROM turns t
WHERE t.state = 'queued' AND t.number < :before AND {whose_turn} ORDER BY t.number DESC LIMIT :limit;

-- name: turns_that_run
-- Turns that run, or wait for a person, the newest first.
SELECT t.number, length(t.body) FROM turns t
WHERE t.state IN ('running', 'waiting') AND t.number < :before AND {whose_turn} ORDER BY t.number DESC LIMIT :limit;

-- name: turns_set_aside
-- Turns that were set aside, the newest first.
SELECT t.number, length(t.body) FROM turns t
WHERE t.state = 'set_aside' AND t.number < :before AND {whose_turn} ORDER BY t.number DESC LIMIT :limit;

-- name: turns_lately
-- Of the newest turns those that the viewer may see; no more than some are looked at.
SELECT t.number, length(t.body) FROM turns t
WHERE t.number < :before AND t.number >= :least AND {whose_turn} ORDER BY t.number DESC LIMIT :limit;

-- name: turns_numbered
-- Turns by their numbers, the newest first.
SELECT t.lane, t.due_at, {t.turn} FROM turns t WHERE t.number = ANY(CAST(:numbers AS bigint[])) ORDER BY t.number DESC;

-- name: newest_turn
-- The number of the newest turn before one.
SELECT MAX(number) FROM turns WHERE number < :before;

-- name: count_listed_turns
-- How many turns wait to be run, run, wait for a person and were set aside, and since when the oldest waits.
SELECT
    (SELECT COUNT(*) FROM (SELECT 1 FROM turns t WHERE t.state = 'queued' AND {whose_turn} LIMIT :limit) AS queued),
    (SELECT COUNT(*) FROM (SELECT 1 FROM turns t WHERE t.state IN ('running', 'waiting') AND t.state = 'running' AND {whose_turn} LIMIT :limit) AS running),
    (SELECT COUNT(*) FROM (SELECT 1 FROM turns t WHERE t.state IN ('running', 'waiting') AND t.state = 'waiting' AND {whose_turn} LIMIT :limit) AS waiting),
    (SELECT COUNT(*) FROM (SELECT 1 FROM turns t WHERE t.state = 'set_aside' AND {whose_turn} LIMIT :limit) AS aside),
    (SELECT MIN(t.received_at) FROM turns t WHERE t.state = 'queued' AND {whose_turn});

-- part: whose_delivery
-- Of deliveries that the viewer may see.
(CAST(:everything AS bigint) = 1 OR COALESCE(
    (SELECT s.owner FROM sessions s WHERE s.id = d.session_id),
    (SELECT s.owner FROM routes r JOIN sessions s ON s.id = r.session_id WHERE r.session_key = d.session_key)
) = ANY(CAST(:owners AS text[])))

-- name: deliveries_dead
-- What was given up, the newest first.
SELECT d.number, length(d.body) FROM deliveries d WHERE d.state IN ('dead', 'unknown') AND d.state = 'dead'
    AND d.number < :before AND {whose_delivery} ORDER BY d.number DESC LIMIT :limit;

-- name: deliveries_unsure
-- What may have arrived, the newest first.
SELECT d.number, length(d.body) FROM deliveries d WHERE d.state IN ('dead', 'unknown') AND d.state = 'unknown'
    AND d.number < :before AND {whose_delivery} ORDER BY d.number DESC LIMIT :limit;

-- part: waits
-- What waits to be sent, or is being sent.
SELECT p.number, p.lane, p.error FROM deliveries p WHERE p.state = 'pending'
UNION ALL SELECT p.number, p.lane, p.error FROM deliveries p WHERE p.state = 'sending'

-- name: deliveries_waiting
-- What waits to be sent for the first time, or is being sent, with nothing late before it; the newest first.
SELECT d.number, length(d.body) FROM ({waits}) AS w JOIN deliveries d ON d.number = w.number
WHERE w.lane NOT IN (SELECT l.lane FROM ({waits}) AS l WHERE l.error IS NOT NULL)
    AND d.number < :before AND {whose_delivery} ORDER BY d.number DESC LIMIT :limit;

-- name: deliveries_late
-- What was tried in vain and is tried again, and what waits behind it, the newest first.
SELECT d.number, length(d.body) FROM ({waits}) AS w JOIN deliveries d ON d.number = w.number
WHERE w.lane IN (SELECT l.lane FROM ({waits}) AS l WHERE l.error IS NOT NULL)
    AND d.number < :before AND {whose_delivery} ORDER BY d.number DESC LIMIT :limit;

-- name: count_listed_deliveries
-- How many were given up, may have arrived, are late, and wait to be sent for the first time.
SELECT
    (SELECT COUNT(*) FROM (SELECT 1 FROM deliveries d WHERE d.state IN ('dead', 'unknown') AND d.state = 'dead'
        AND {whose_delivery} LIMIT :limit) AS dead),
    (SELECT COUNT(*) FROM (SELECT 1 FROM deliveries d WHERE d.state IN ('dead', 'unknown') AND d.state = 'unknown'
        AND {whose_delivery} LIMIT :limit) AS unsure),
    (SELECT COUNT(*) FROM (SELECT 1 FROM ({waits}) AS w JOIN deliveries d ON d.number = w.number
        WHERE w.lane IN (SELECT l.lane FROM ({waits}) AS l WHERE l.error IS NOT NULL)
        AND {whose_delivery} LIMIT :limit) AS late),
    (SELECT COUNT(*) FROM (SELECT 1 FROM ({waits}) AS w JOIN deliveries d ON d.number = w.number
        WHERE w.lane NOT IN (SELECT l.lane FROM ({waits}) AS l WHERE l.error IS NOT NULL)
        AND {whose_delivery} LIMIT :limit) AS first);

-- name: deliveries_discarded
-- What a person gave up, the newest first.
SELECT d.number, length(d.body) FROM deliveries d WHERE d.state = 'discarded'
    AND d.number < :before AND {whose_delivery} ORDER BY d.number DESC LIMIT :limit;

-- name: deliveries_numbered
-- Deliveries by their numbers, the newest first.
SELECT {d.delivery} FROM deliveries d WHERE d.number = ANY(CAST(:numbers AS bigint[])) ORDER BY d.number DESC;
