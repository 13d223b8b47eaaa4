-- Moving keys of the older form. What moves is staged in moved_sessions and moved_turns.

-- name: unmarked_sessions
-- Sessions whose keys may have to move, by id.
SELECT s.id, s.session_key, s.details FROM sessions s
WHERE s.id > CAST(:after AS text)
    AND (s.platform IS NULL OR replace(CAST(:plain AS text), ',' || s.platform || ',', '') = :plain)
ORDER BY s.id LIMIT :limit;

-- name: unmarked_turns
-- Turns whose keys may have to move, by id.
SELECT t.id, t.session_key, t.body FROM turns t
WHERE t.id > CAST(:after AS text)
    AND replace(CAST(:plain AS text), ',' || t.platform || ',', '') = :plain
ORDER BY t.id LIMIT :limit;

-- name: moved_owners
-- Whether a conversation that moves owns sessions.
SELECT 1 FROM moved_sessions m JOIN sessions s ON s.owner = m.old_key LIMIT 1;

-- name: map_keys
-- Keys that all of their own move away from, to one other.
INSERT INTO moved_keys (old_key, new_key)
SELECT m.old_key, MIN(m.new_key) FROM (
    SELECT old_key, new_key FROM moved_sessions UNION SELECT old_key, new_key FROM moved_turns
) AS m GROUP BY m.old_key HAVING COUNT(*) = 1;

-- name: drop_shared_keys
-- Keys that somebody stays at.
DELETE FROM moved_keys WHERE EXISTS (
    SELECT 1 FROM sessions s WHERE s.session_key = moved_keys.old_key
        AND NOT EXISTS (SELECT 1 FROM moved_sessions m WHERE m.id = s.id)
);

-- name: leave_owners
-- Conversations that own sessions leave their old names, before any takes a new one.
UPDATE sessions SET owner = '~' || m.new_key FROM moved_sessions m
WHERE sessions.id = m.id AND sessions.owner = m.old_key;

-- name: move_sessions
-- Sessions take their new keys, and those that the conversation owns its new name.
UPDATE sessions SET session_key = m.new_key,
    owner = CASE WHEN sessions.owner = '~' || m.new_key THEN m.new_key ELSE sessions.owner END
FROM moved_sessions m WHERE sessions.id = m.id;

-- name: move_other_owners
-- Sessions that were taken elsewhere, and belong to a conversation that moved.
UPDATE sessions SET owner = m.new_key FROM moved_keys m
WHERE sessions.owner = m.old_key AND NOT EXISTS (
    SELECT 1 FROM sessions o WHERE o.owner = m.new_key AND o.title_key = sessions.title_key
);

-- name: leave_routes
-- Keys leave, before any takes another's place.
UPDATE routes SET session_key = '~' || m.new_key FROM moved_sessions m
WHERE routes.session_id = m.id AND routes.session_key = m.old_key;

-- name: move_routes
-- Keys take their new form.
UPDATE routes SET session_key = m.new_key FROM moved_sessions m
WHERE routes.session_id = m.id AND routes.session_key = '~' || m.new_key;

-- name: move_sources
-- The chat that a message came from, by which it is known again.
UPDATE messages SET source_key = m.new_key FROM moved_sessions m
WHERE messages.session_id = m.id AND messages.source_key = m.old_key
    AND messages.platform_message_id IS NOT NULL AND messages.hidden_by IS NULL;

-- name: move_turns
-- Turns, in the lanes of their conversations.
UPDATE turns SET session_key = m.new_key, lane = CASE turns.lane
    WHEN 'turn:' || m.old_key THEN 'turn:' || m.new_key
    WHEN 'control:' || m.old_key THEN 'control:' || m.new_key
    ELSE turns.lane END
FROM moved_turns m WHERE turns.id = m.id;

-- name: open_lanes
-- Lanes for what waits or runs under a new key; what runs is still held by whoever held it.
INSERT INTO lanes (name, kind, due_at, holder, token, leased_until)
SELECT w.lane, l.kind,
    CASE WHEN w.running = 0 THEN (
        SELECT q.due_at FROM turns q WHERE q.lane = w.lane AND q.state = 'queued' ORDER BY q.number LIMIT 1
    ) END,
    CASE WHEN w.running > 0 THEN l.holder END, l.token, CASE WHEN w.running > 0 THEN l.leased_until END
FROM (
    SELECT t.lane, MIN(CASE WHEN t.lane = 'control:' || m.new_key THEN 'control:' ELSE 'turn:' END || m.old_key) AS old_lane,
        SUM(CASE WHEN t.state = 'queued' THEN 0 ELSE 1 END) AS running
    FROM turns t JOIN moved_turns m ON m.id = t.id
    WHERE t.state IN ('queued', 'running', 'waiting') GROUP BY t.lane
) AS w JOIN lanes l ON l.name = w.old_lane WHERE w.lane <> ''
ON CONFLICT (name) DO UPDATE SET due_at = excluded.due_at, holder = excluded.holder,
    leased_until = excluded.leased_until, token = lanes.token + excluded.token;

-- name: settle_lanes
-- The lanes that turns left, with what is left in them.
UPDATE lanes SET
    due_at = CASE WHEN EXISTS (
        SELECT 1 FROM turns r WHERE r.lane = lanes.name AND r.state IN ('running', 'waiting')
    ) THEN NULL ELSE (
        SELECT q.due_at FROM turns q WHERE q.lane = lanes.name AND q.state = 'queued' ORDER BY q.number LIMIT 1
    ) END,
    holder = CASE WHEN EXISTS (
        SELECT 1 FROM turns r WHERE r.lane = lanes.name AND r.state IN ('running', 'waiting')
    ) THEN lanes.holder END,
    leased_until = CASE WHEN EXISTS (
        SELECT 1 FROM turns r WHERE r.lane = lanes.name AND r.state IN ('running', 'waiting')
    ) THEN lanes.leased_until END
WHERE lanes.name IN (
    SELECT 'turn:' || old_key FROM moved_turns UNION SELECT 'control:' || old_key FROM moved_turns
);

-- name: drop_lanes
-- Lanes at rest that nobody comes to any more.
DELETE FROM lanes WHERE holder IS NULL AND due_at IS NULL AND name IN (
    SELECT 'turn:' || old_key FROM moved_keys UNION SELECT 'control:' || old_key FROM moved_keys
);

-- name: move_deliveries
-- What was said of a turn.
UPDATE deliveries SET session_key = m.new_key FROM moved_turns m
WHERE deliveries.turn_id = m.id AND deliveries.session_key = m.old_key;

-- name: move_other_deliveries
-- What was said in a conversation without a turn that is known.
UPDATE deliveries SET session_key = m.new_key FROM moved_keys m
WHERE deliveries.session_key = m.old_key;

-- name: move_feed
-- What changed in a turn.
UPDATE feed SET session_key = m.new_key FROM moved_turns m
WHERE feed.turn_id = m.id AND feed.session_key = m.old_key;

-- name: move_other_feed
-- What changed in a conversation.
UPDATE feed SET session_key = m.new_key FROM moved_keys m WHERE feed.session_key = m.old_key;

-- name: move_confirmations
-- What a turn asked for.
UPDATE confirmations SET session_key = m.new_key, requester = CASE
    WHEN confirmations.requester = 'agent:' || m.old_key THEN 'agent:' || m.new_key ELSE confirmations.requester END
FROM moved_turns m WHERE confirmations.turn_id = m.id AND confirmations.session_key = m.old_key;

-- name: move_other_confirmations
-- What was asked for in a conversation.
UPDATE confirmations SET session_key = m.new_key, requester = CASE
    WHEN confirmations.requester = 'agent:' || m.old_key THEN 'agent:' || m.new_key ELSE confirmations.requester END
FROM moved_keys m WHERE confirmations.session_key = m.old_key;

-- name: ruled
-- All rules.
SELECT id, body FROM rules;

-- name: moved_key
-- Where a key moved.
SELECT new_key FROM moved_keys WHERE old_key = :key;

-- name: move_rule
-- A rule for a conversation that moved.
UPDATE rules SET body = :body WHERE id = :rule_id;

-- name: drop_moved_sessions
-- What was noted is not needed any more.
DROP TABLE moved_sessions;

-- name: drop_moved_turns
-- What was noted is not needed any more.
DROP TABLE moved_turns;

-- name: drop_moved_keys
-- What was noted is not needed any more.
DROP TABLE moved_keys;
