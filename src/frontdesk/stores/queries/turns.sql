-- Queries of both dialects. A comment of the form /*pg ... */ is SQL for PostgreSQL alone.

-- name: turn_of_event
-- The turn that a platform's event became.
SELECT {t.turn} FROM turns t WHERE t.platform = :platform AND t.account = :account AND t.event_id = :event_id;

-- name: turn_of_message
-- The newest turn that a message of a chat became.
SELECT {t.turn} FROM turns t WHERE t.message_digest = :message_digest ORDER BY t.number DESC LIMIT 1;

-- name: parts_of
-- The messages that were gathered into a turn.
SELECT {t.turn} FROM turns t WHERE t.part_of = :turn_id ORDER BY t.number;

-- name: gathering_in
-- The turns of a lane that wait for more messages, newest first.
SELECT {t.turn} FROM turns t WHERE t.lane = :lane AND t.state = 'queued' AND t.due_at > :now
    AND t.attempts = 0 AND t.steers = 0 AND t.kind IN ('message', 'observed') ORDER BY t.number DESC;

-- name: gather_turn
-- A turn has another message, and waits for more.
UPDATE turns SET parts = parts + 1, due_at = :due_at, kind = :kind WHERE id = :turn_id;

-- name: close_gathering
-- Turns of a lane that waited for more messages wait no longer.
UPDATE turns SET due_at = :now WHERE lane = :lane AND state = 'queued' AND due_at > :now AND attempts = 0;

-- name: settle_parts
-- What was gathered into a turn ends with it.
UPDATE turns SET state = :state, session_id = COALESCE(:session_id, session_id), finished_at = :finished_at
WHERE part_of = :turn_id AND state = 'joined' RETURNING id;

-- name: amend_turn
-- Its message is another.
UPDATE turns SET body = :body WHERE id = :turn_id;

-- name: turn
-- A turn by its id.
SELECT {t.turn} FROM turns t WHERE t.id = :turn_id;

-- name: insert_turn
-- A message that came in, unless it is there already.
INSERT INTO turns (
    id, lane, kind, state, session_key, session_id, party, platform, account, event_id, received_at, due_at,
    started_at, attempts, steers, message_digest, body, finished_at, part_of
) VALUES (
    :id, :lane, :kind, :state, :session_key, :session_id, :party, :platform, :account, :event_id, :received_at,
    :due_at, :started_at, :attempts, :steers, :message_digest, :body, :finished_at, :part_of
) ON CONFLICT (platform, account, event_id) WHERE event_id IS NOT NULL DO NOTHING
RETURNING number /*pg , pg_current_xact_id() AS xid */;

-- name: before_turn
-- Who works on the lane that a turn joins, how many wait there and how many of its party, and whether it is known.
SELECT (SELECT l.holder FROM lanes l WHERE l.name = :lane), (
    SELECT COUNT(*) FROM turns q WHERE q.lane = :lane AND q.state = 'queued' AND q.kind <> 'observed'
), (
    SELECT COUNT(*) FROM turns p
    WHERE p.party = :party AND p.party <> '' AND p.state = 'queued' AND p.kind <> 'observed'
), (
    SELECT t.id FROM turns t WHERE t.platform = :platform AND t.account = :account AND t.event_id = :event_id
);

-- name: drop_overheard
-- Of what was overheard and still waits in a lane, only the newest stays.
UPDATE turns SET state = 'done', finished_at = :now, error = :why
WHERE lane = :lane AND state = 'queued' AND kind = 'observed' AND parts = 0 AND number <= (
    SELECT q.number FROM turns q WHERE q.lane = :lane AND q.state = 'queued' AND q.kind = 'observed'
    ORDER BY q.number DESC LIMIT 1 OFFSET :most
) RETURNING id;

-- name: next_queued
-- When the first turn that waits in a lane is due.
SELECT due_at FROM turns WHERE lane = :lane AND state = 'queued' ORDER BY number LIMIT 1;

-- name: due_turns
-- The first turns of free lanes that are due, the longest waiting first; nulls where none waits, which a claim mends.
SELECT {t.turn} FROM (
    SELECT name, due_at FROM lanes WHERE kind = :kind AND due_at <= :now ORDER BY due_at LIMIT :limit
) AS l LEFT JOIN turns t
    ON t.number = (SELECT MIN(q.number) FROM turns q WHERE q.lane = l.name AND q.state = 'queued')
ORDER BY l.due_at;

-- name: claim_first
-- Take the first turn that waits in a lane.
UPDATE turns SET
    state = 'running', attempts = attempts + 1, started_at = COALESCE(started_at, :now),
    on_trial = CASE WHEN attempts > put_backs THEN 1 ELSE 0 END
WHERE number = (SELECT MIN(q.number) FROM turns q WHERE q.lane = :lane AND q.state = 'queued') RETURNING {turn};

-- name: running_turn
-- The turn that runs in a lane.
SELECT {t.turn} FROM turns t WHERE t.lane = :lane AND t.state IN ('running', 'waiting') ORDER BY t.number LIMIT 1;

-- part: settled_turn
-- A turn in its session, in another state.
UPDATE turns SET
    state = :state, session_id = COALESCE(:session_id, session_id), finished_at = :finished_at, error = :error,
    tally = CASE WHEN tally IS NULL OR CAST(:tally AS text) IS NULL THEN COALESCE(:tally, tally)
        ELSE tally || '
' || :tally END
WHERE id = :turn_id AND state IN ('queued', 'running', 'waiting');

-- name: settle_turn
-- Settle it, for whoever has its lane or needs none.
{settled_turn} RETURNING session_key;

-- name: settle_held_turn
-- Settle it while the lease holds, which it does until the transaction ends.
WITH held AS MATERIALIZED (
    SELECT 1 FROM lanes WHERE name = :lane AND holder = :node AND token = :token /*pg FOR UPDATE */
)
{settled_turn} AND EXISTS (SELECT 1 FROM held) RETURNING session_key /*pg , pg_current_xact_id() AS xid */;

-- name: place_turn
-- The session that a turn runs in; it is under way again.
UPDATE turns SET session_id = :session_id, interrupted_at = NULL WHERE id = :turn_id;

-- name: mark_turn
-- A turn under way waits for a person, or goes on.
UPDATE turns SET state = :state WHERE id = :turn_id AND state IN ('running', 'waiting') AND state <> :state
RETURNING id;

-- name: keep_draft
-- The message that shows what a turn has said so far.
UPDATE turns SET draft = :draft WHERE id = :turn_id;

-- name: requeue_turn
-- To be run again, from the rows that it wrote.
UPDATE turns SET
    state = 'queued', due_at = :due_at, put_backs = put_backs + :uncounted, doubts = doubts + :doubted,
    error = :error, interrupted_at = COALESCE(interrupted_at, :interrupted_at), on_trial = 0
WHERE id = :turn_id AND state IN ('running', 'waiting') RETURNING id;

-- name: set_aside_turn
-- A turn that was set aside, and its lane.
SELECT t.lane, {t.turn} FROM turns t WHERE t.id = :turn_id AND t.state = 'set_aside';

-- name: retry_turn
-- One that was set aside waits again; so many of its attempts count.
UPDATE turns SET
    state = 'queued', due_at = :due_at, put_backs = attempts - :before, doubts = 0, on_trial = 0, error = NULL,
    finished_at = NULL, interrupted_at = NULL, draft = NULL, stop_requested = 0
WHERE id = :turn_id AND state = 'set_aside' RETURNING id;

-- name: retry_parts
-- What was gathered into a turn waits with it.
UPDATE turns SET state = 'joined', finished_at = NULL
WHERE part_of = :turn_id AND state = 'set_aside' RETURNING id;

-- name: give_up_turn
-- One that was set aside will not be answered.
UPDATE turns SET state = 'failed', error = :error WHERE id = :turn_id AND state = 'set_aside' RETURNING id;

-- name: give_up_parts
-- What was gathered into a turn is given up with it.
UPDATE turns SET state = 'failed' WHERE part_of = :turn_id AND state = 'set_aside' RETURNING id;

-- name: keep_tally
-- What an attempt came to, beside those before it.
UPDATE turns SET tally = COALESCE(tally || '
', '') || CAST(:tally AS text) WHERE id = :turn_id;

-- name: defer_turn
-- It was taken, and not begun.
UPDATE turns SET state = 'queued', due_at = :due_at, attempts = attempts - 1, on_trial = 0, error = :why
WHERE id = :turn_id AND state = 'running';

-- name: running_in
-- The turns that run in a lane.
SELECT {t.turn} FROM turns t WHERE t.lane = :lane AND t.state IN ('running', 'waiting');

-- name: acquit_turn
-- It has run for a while, and the process lives.
UPDATE turns SET on_trial = 0 WHERE id = :turn_id;

-- name: hasten_turns
-- What was to be run later is to be run now.
UPDATE turns SET due_at = :now WHERE state = 'queued' AND due_at > :now;

-- name: request_stop
-- A running turn is to stop.
UPDATE turns SET stop_requested = 1 WHERE id = :turn_id AND state IN ('running', 'waiting') RETURNING {turn};

-- name: retry_in
-- The turn of a lane that was begun before and waits to be run again.
SELECT {t.turn} FROM turns t WHERE t.lane = :lane AND t.state = 'queued' AND t.attempts > 0 ORDER BY t.number LIMIT 1;

-- name: signalled
-- Running turns of a node that are to be told something.
SELECT {r.turn} FROM lanes l JOIN turns r ON r.lane = l.name AND r.state IN ('running', 'waiting')
WHERE l.holder = :node AND (
    r.stop_requested = 1
    OR EXISTS (SELECT 1 FROM turns s WHERE s.lane = l.name AND s.state = 'queued' AND s.steers = 1)
);

-- name: steering
-- The messages that wait to be steered into the running turn of a lane.
SELECT {t.turn} FROM turns t WHERE t.lane = :lane AND t.state = 'queued' AND t.steers = 1 ORDER BY t.number;

-- name: turn_standing
-- The newest row of a turn, and how many messages its session has.
SELECT (SELECT MAX(turn_position) FROM messages WHERE session_id = s.id AND turn_id = :turn_id), s.message_count
    /*pg , pg_current_xact_id() AS xid */
FROM sessions s WHERE s.id = :session_id;

-- name: open_turns
-- What is under way or waits for a conversation.
SELECT {o.turn} FROM (
    SELECT {q.turn} FROM turns q WHERE q.lane IN (:lane, :control) AND q.state = 'queued'
    UNION ALL SELECT {r.turn} FROM turns r WHERE r.lane IN (:lane, :control) AND r.state IN ('running', 'waiting')
) o ORDER BY o.number LIMIT :limit;

-- name: last_turn
-- The turn that wrote the newest row of a session.
SELECT {t.turn} FROM turns t WHERE t.id = (
    SELECT m.turn_id FROM messages m WHERE m.session_id = :session_id ORDER BY m.position DESC LIMIT 1
);

-- name: gone_on_since
-- Whether a message or command came to a conversation after a turn, and waits, runs or wrote the newest row, or what
-- the turn wrote was taken back.
SELECT 1 FROM turns f WHERE f.id = :turn_id AND (
    EXISTS (
        SELECT 1 FROM messages h JOIN revisions v ON v.session_id = h.session_id AND v.revision = h.hidden_by
        WHERE h.session_id = f.session_id AND h.turn_id = f.id AND v.kind = 'rewind'
    ) OR EXISTS (
        SELECT 1 FROM turns q WHERE q.lane = :lane AND q.state = 'queued' AND q.kind IN ('message', 'command')
            AND q.number > f.number
    ) OR EXISTS (
        SELECT 1 FROM turns r WHERE r.lane = :lane AND r.state IN ('running', 'waiting') AND r.number > f.number
    ) OR f.number < (
        SELECT w.number FROM turns w WHERE w.id = (
            SELECT m.turn_id FROM messages m
            WHERE m.session_id = (SELECT session_id FROM routes WHERE session_key = :session_key)
                AND m.hidden_by IS NULL AND m.turn_id IS NOT NULL
            ORDER BY m.position DESC LIMIT 1
        )
    )
);

-- name: at_work
-- Whether a turn of a conversation is under way.
SELECT 1 FROM turns t WHERE t.lane IN (:lane, :control) AND t.state IN ('running', 'waiting') LIMIT 1;

-- name: sizes_of_open_turns
-- The numbers of those, and how large they are, the newest first.
SELECT f.number, f.size FROM (
    SELECT o.number, o.size FROM (
        SELECT q.number, length(q.body) AS size FROM turns q WHERE q.lane IN (:lane, :control) AND q.state = 'queued'
        UNION ALL SELECT r.number, length(r.body) FROM turns r
        WHERE r.lane IN (:lane, :control) AND r.state IN ('running', 'waiting')
    ) o ORDER BY o.number LIMIT :limit
) f ORDER BY f.number DESC;

-- name: open_turns_of
-- What is under way or waits on a platform.
SELECT {o.turn} FROM (
    SELECT {q.turn} FROM turns q WHERE q.state = 'queued' AND q.platform = :platform
    UNION ALL SELECT {r.turn} FROM turns r WHERE r.state IN ('running', 'waiting') AND r.platform = :platform
) o ORDER BY o.number;

-- name: readdress_turn
-- A turn belongs to another conversation.
UPDATE turns SET session_key = :session_key, lane = :lane WHERE id = :turn_id;

-- name: prune_turns
-- Forget turns that ended long ago, some at a time.
DELETE FROM turns WHERE number IN (
    SELECT o.number FROM turns o WHERE o.finished_at IS NOT NULL AND o.finished_at < :before
    ORDER BY o.finished_at LIMIT :limit
) RETURNING number /*pg , pg_current_xact_id() AS xid */;

-- name: count_held_back
-- How many turns wait for a certain reason.
SELECT COUNT(*) FROM turns WHERE state = 'queued' AND error = :why;

-- name: count_turns
-- How many turns of people are in each state that is not final; not what hooks are told again.
SELECT state, COUNT(*) FROM turns WHERE state IN ('queued', 'running', 'waiting') AND kind <> 'hook' GROUP BY state;
