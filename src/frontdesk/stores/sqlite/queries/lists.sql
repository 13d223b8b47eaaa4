-- Pages of sessions, latest activity first. CROSS JOIN and INDEXED BY say where SQLite begins: it knows nothing
-- of how many rows there are.

-- part: behind
-- Behind the last one of the page before.
s.active_minute <= :before_minute AND (s.updated_at, s.id) < (:before, :before_id)

-- part: latest
-- In the order of the list.
ORDER BY s.active_minute DESC, s.updated_at DESC, s.id DESC LIMIT :limit

-- part: busy
-- Where turns run or wait to be run.
SELECT COALESCE(t.session_id, (SELECT r.session_id FROM routes r WHERE r.session_key = t.session_key)) AS id
FROM turns t WHERE t.state = 'queued' AND t.kind NOT IN ('hook', 'expiry')
UNION SELECT COALESCE(t.session_id, (SELECT r.session_id FROM routes r WHERE r.session_key = t.session_key))
FROM turns t WHERE t.state IN ('running', 'waiting') AND t.state = 'running' AND t.kind NOT IN ('hook', 'expiry')

-- part: asking
-- Where a turn waits for a person.
SELECT DISTINCT t.session_id AS id FROM turns t WHERE t.state IN ('running', 'waiting') AND t.state = 'waiting'

-- part: troubled
-- What was set aside, and where something did not arrive.
SELECT d.session_id AS id FROM deliveries d WHERE d.state IN ('dead', 'unknown')
UNION SELECT s.id FROM sessions s WHERE s.suspended = 1 AND s.ended_at IS NULL

-- part: wanted
-- Of those that the viewer may see and the filters let through.
(:platform IS NULL OR s.platform = :platform) AND (:chat IS NULL OR s.session_key = :chat)
AND (:everything OR s.owner IN (SELECT value FROM json_each(:owners)))

-- name: page_of_all
-- Everybody's.
SELECT {s.session} FROM sessions s WHERE s.id IN (SELECT s.id FROM sessions s WHERE {behind} {latest}) {latest};

-- name: page_of_platform
-- Everybody's on a platform.
SELECT {s.session} FROM sessions s WHERE s.id IN (
    SELECT s.id FROM sessions s INDEXED BY sessions_by_platform WHERE s.platform = :platform AND {behind} {latest}
) {latest};

-- name: page_of_ended
-- Everybody's that have ended.
SELECT {s.session} FROM sessions s WHERE s.id IN (
    SELECT s.id FROM sessions s INDEXED BY sessions_ended WHERE s.ended_at IS NOT NULL AND {behind} {latest}
) {latest};

-- name: page_of_ended_on_platform
-- Everybody's on a platform that have ended.
SELECT {s.session} FROM sessions s WHERE s.id IN (
    SELECT s.id FROM sessions s INDEXED BY sessions_ended_by_platform
    WHERE s.ended_at IS NOT NULL AND s.platform = :platform AND {behind} {latest}
) {latest};

-- name: page_of_owners
-- Those of some owners.
SELECT {s.session} FROM json_each(:owners) AS o CROSS JOIN sessions s ON s.id IN (
    SELECT s.id FROM sessions s INDEXED BY sessions_by_owner WHERE s.owner = o.value AND {behind}
        AND (:platform IS NULL OR s.platform = :platform) AND (:chat IS NULL OR s.session_key = :chat) {latest}
) {latest};

-- name: page_of_owners_ended
-- Those of some owners that have ended.
SELECT {s.session} FROM json_each(:owners) AS o CROSS JOIN sessions s ON s.id IN (
    SELECT s.id FROM sessions s INDEXED BY sessions_ended_by_owner
    WHERE s.ended_at IS NOT NULL AND s.owner = o.value AND {behind}
        AND (:platform IS NULL OR s.platform = :platform) AND (:chat IS NULL OR s.session_key = :chat) {latest}
) {latest};

-- name: page_of_working
-- Those in which turns run or wait to be run.
SELECT {s.session} FROM ({busy}) AS found CROSS JOIN sessions s ON s.id = found.id
WHERE {wanted} AND {behind} {latest};

-- name: page_of_waiting
-- Those in which a turn waits for a person.
SELECT {s.session} FROM ({asking}) AS found CROSS JOIN sessions s ON s.id = found.id
WHERE {wanted} AND {behind} {latest};

-- name: page_of_trouble
-- Those that were set aside, or from which something did not arrive.
SELECT {s.session} FROM ({troubled}) AS found CROSS JOIN sessions s ON s.id = found.id
WHERE {wanted} AND {behind} {latest};

-- part: of_states
-- How many are in each of the states that are looked up by their work.
(SELECT COUNT(*) FROM (SELECT 1 FROM ({busy}) AS f CROSS JOIN sessions s ON s.id = f.id WHERE {wanted} LIMIT :limit)),
(SELECT COUNT(*) FROM (SELECT 1 FROM ({asking}) AS f CROSS JOIN sessions s ON s.id = f.id WHERE {wanted} LIMIT :limit)),
(SELECT COUNT(*) FROM (SELECT 1 FROM ({troubled}) AS f CROSS JOIN sessions s ON s.id = f.id WHERE {wanted} LIMIT :limit))

-- part: of_all_states
-- The same where everything is looked at: by their ids alone.
(SELECT COUNT(*) FROM (SELECT 1 FROM ({busy}) AS f WHERE f.id IS NOT NULL LIMIT :limit)),
(SELECT COUNT(*) FROM (SELECT 1 FROM ({asking}) AS f WHERE f.id IS NOT NULL LIMIT :limit)),
(SELECT COUNT(*) FROM (SELECT 1 FROM ({troubled}) AS f WHERE f.id IS NOT NULL LIMIT :limit))

-- name: count_listed
-- How many there are in all, working, waiting, in trouble and ended, each at most so many.
SELECT (SELECT COUNT(*) FROM (SELECT 1 FROM sessions LIMIT :limit)), {of_all_states}, (
    SELECT COUNT(*) FROM (SELECT 1 FROM sessions INDEXED BY sessions_ended WHERE ended_at IS NOT NULL LIMIT :limit)
);

-- name: count_listed_on_platform
-- The same on a platform.
SELECT (SELECT COUNT(*) FROM (SELECT 1 FROM sessions WHERE platform = :platform LIMIT :limit)), {of_states}, (
    SELECT COUNT(*) FROM (
        SELECT 1 FROM sessions INDEXED BY sessions_ended_by_platform
        WHERE ended_at IS NOT NULL AND platform = :platform LIMIT :limit
    )
);

-- name: count_listed_of_owners
-- The same of some owners.
SELECT (SELECT COUNT(*) FROM (
    SELECT 1 FROM json_each(:owners) AS o CROSS JOIN sessions s ON s.owner = o.value WHERE {wanted} LIMIT :limit
)), {of_states}, (SELECT COUNT(*) FROM (
    SELECT 1 FROM json_each(:owners) AS o CROSS JOIN sessions s ON s.owner = o.value
    WHERE s.ended_at IS NOT NULL AND {wanted} LIMIT :limit
));

-- name: work_of_sessions
-- For each of these sessions how many turns run, wait for a person or wait to be run, and since when.
SELECT found.id, found.state, COUNT(*), MIN(found.since) FROM (
    SELECT s.id, t.state, t.received_at AS since, t.session_id, s.session_key
    FROM json_each(:ids) AS e CROSS JOIN sessions s ON s.id = e.value
    CROSS JOIN turns t ON t.lane IN ('turn:' || s.session_key, 'control:' || s.session_key)
        AND t.state = 'queued' AND t.kind <> 'expiry'
    UNION ALL
    SELECT s.id, t.state, t.started_at, t.session_id, s.session_key
    FROM json_each(:ids) AS e CROSS JOIN sessions s ON s.id = e.value
    CROSS JOIN turns t ON t.lane IN ('turn:' || s.session_key, 'control:' || s.session_key)
        AND t.state IN ('running', 'waiting') AND t.kind <> 'expiry'
) AS found
WHERE found.id = COALESCE(found.session_id, (SELECT r.session_id FROM routes r WHERE r.session_key = found.session_key))
GROUP BY found.id, found.state;

-- name: undelivered_of_sessions
-- For each of these sessions how much did not arrive, and why the newest of it did not.
SELECT u.id, u.number_of, d.error FROM (
    SELECT t.session_id AS id, COUNT(*) AS number_of, MAX(t.number) AS newest
    FROM json_each(:ids) AS e CROSS JOIN deliveries t ON t.session_id = e.value AND t.state IN ('dead', 'unknown')
    GROUP BY t.session_id
) AS u JOIN deliveries d ON d.number = u.newest;

-- name: set_aside_of_sessions
-- Why turns of these sessions were set aside, the newest last.
SELECT t.session_id, t.error FROM turns t
WHERE t.state = 'set_aside' AND t.session_id IN (SELECT value FROM json_each(:ids)) ORDER BY t.number;

-- name: last_words_of_sessions
-- The newest messages of people and the agent in these sessions, newest first; of long ones their beginning.
SELECT m.session_id, m.role, m.created_at, SUBSTR(m.body, 1, :most_bytes)
FROM json_each(:ids) AS e CROSS JOIN sessions s ON s.id = e.value
CROSS JOIN messages m ON m.seq IN (
    SELECT n.seq FROM messages n WHERE n.session_id = s.id AND n.position >= s.next_position - :back
        AND n.hidden_by IS NULL AND n.role IN ('user', 'assistant') ORDER BY n.position DESC LIMIT :most
)
ORDER BY m.session_id, m.position DESC;

-- name: first_words_of_sessions
-- The first messages of people in these sessions, the first first; of long ones their beginning.
SELECT m.session_id, m.role, m.created_at, SUBSTR(m.body, 1, :most_bytes)
FROM json_each(:ids) AS e CROSS JOIN messages m ON m.seq IN (
    SELECT n.seq FROM messages n WHERE n.session_id = e.value AND n.position < :back
        AND n.hidden_by IS NULL AND n.role = 'user' ORDER BY n.position LIMIT :most
)
ORDER BY m.session_id, m.position;

-- name: roots_of_sessions
-- How each of these sessions comes from others: the ancestor at each step, as far as steps are taken.
WITH RECURSIVE up (id, ancestor, step) AS (
    SELECT s.id, s.parent_id, 1 FROM json_each(:ids) AS e CROSS JOIN sessions s ON s.id = e.value
    WHERE s.parent_id IS NOT NULL
    UNION ALL
    SELECT up.id, s.parent_id, up.step + 1 FROM up CROSS JOIN sessions s ON s.id = up.ancestor
    WHERE s.parent_id IS NOT NULL AND up.step < :most
)
SELECT id, ancestor, step FROM up;

-- name: forebears_of_sessions
-- The sessions that each of these went on from, with their titles, at each step; not beyond one that has a title, nor to
-- one that somebody left for a fresh start, or forgot.
WITH RECURSIVE up (id, ancestor, owner, title, step) AS (
    SELECT s.id, p.id, p.owner, p.title, 1 FROM json_each(:ids) AS e CROSS JOIN sessions s ON s.id = e.value
    CROSS JOIN sessions p ON p.id = s.parent_id AND p.owner = s.owner
    WHERE COALESCE(p.end_reason, '') NOT IN ('new', 'forgotten')
    UNION ALL
    SELECT up.id, p.id, p.owner, p.title, up.step + 1 FROM up CROSS JOIN sessions s ON s.id = up.ancestor
    CROSS JOIN sessions p ON p.id = s.parent_id AND p.owner = up.owner
    WHERE up.title IS NULL AND COALESCE(p.end_reason, '') NOT IN ('new', 'forgotten') AND up.step < :most
)
SELECT id, ancestor, title FROM up ORDER BY step;

-- name: approvals_of_turns
-- What these turns asked to be allowed, and who decided about it, in the order in which it was asked.
SELECT c.id, c.turn_id, c.action, c.status, c.created_at, c.resolved_at, c.resolved_by, v.name, v.reason
FROM json_each(:ids) AS e CROSS JOIN confirmations c ON c.turn_id = e.value
LEFT JOIN confirmation_votes v ON v.confirmation_id = c.id AND v.person = c.resolved_by ORDER BY c.number LIMIT :limit;

-- name: sessions_of_turns
-- The sessions in which these turns run.
SELECT t.id, t.session_id FROM json_each(:ids) AS e CROSS JOIN turns t ON t.id = e.value
WHERE t.session_id IS NOT NULL;

-- name: unanswered_of_turns
-- Those of these turns that ended without an answer, or in the middle of one: their numbers, and how large they are.
SELECT t.number, length(t.body) FROM json_each(:ids) AS e CROSS JOIN turns t ON t.id = e.value
WHERE t.state IN ('silent', 'failed', 'interrupted', 'set_aside');

-- name: forget_names
-- The words of these sessions.
DELETE FROM session_names WHERE session_id IN (SELECT value FROM json_each(:ids));

-- name: insert_names
-- The words of some sessions: [[session, word, owner], ...].
INSERT INTO session_names (session_id, word, owner)
SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(:rows) WHERE true ON CONFLICT DO NOTHING;

-- name: mark_named
-- The names of these sessions are looked up.
UPDATE sessions SET named = 1 WHERE id IN (SELECT value FROM json_each(:ids));

-- part: with_others
-- Those that have the other words, too: [[from, to], ...].
NOT EXISTS (SELECT 1 FROM json_each(:others) AS o WHERE NOT EXISTS (
    SELECT 1 FROM session_names x WHERE x.session_id = s.id AND x.word >= o.value ->> 0 AND x.word < o.value ->> 1
))

-- name: named_sessions
-- Everybody's sessions with these beginnings of words in their names.
SELECT {s.session} FROM (
    SELECT DISTINCT n.session_id AS id FROM session_names n INDEXED BY session_names_by_word
    WHERE n.word >= :low AND n.word < :high ORDER BY n.word DESC, n.session_id DESC LIMIT :most
) AS found CROSS JOIN sessions s ON s.id = found.id WHERE {wanted} AND {with_others} {latest};

-- name: named_sessions_of_owners
-- Those of some owners.
SELECT {s.session} FROM (
    SELECT DISTINCT n.session_id AS id
    FROM json_each(:owners) AS w CROSS JOIN session_names n INDEXED BY session_names_by_owner
        ON n.owner = w.value AND n.word >= :low AND n.word < :high LIMIT :most
) AS found CROSS JOIN sessions s ON s.id = found.id WHERE {wanted} AND {with_others} {latest};

-- name: sessions_by_id
-- These sessions.
SELECT {s.session} FROM json_each(:ids) AS e CROSS JOIN sessions s ON s.id = e.value ORDER BY e.key;
