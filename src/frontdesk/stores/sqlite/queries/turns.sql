-- Many messages taken in together.

-- name: not_at_rest
-- The newest turn's number, and which of these new turns are there already, have others before them or are of
-- a party with many.
WITH new AS MATERIALIZED (
    SELECT key, value ->> 'lane' AS lane, value ->> 'platform' AS platform, value ->> 'account' AS account,
        value ->> 'event_id' AS event_id, value ->> 'party' AS party
    FROM json_each(:turns)
), crowded AS MATERIALIZED (
    SELECT n.party FROM new n WHERE n.party <> '' GROUP BY n.party HAVING COUNT(*) + (
        SELECT COUNT(*) FROM turns p
        WHERE p.party = n.party AND p.party <> '' AND p.state = 'queued' AND p.kind <> 'observed'
    ) > :crowd
)
SELECT MAX(
    COALESCE((SELECT s.seq FROM sqlite_sequence s WHERE s.name = 'turns'), 0),
    COALESCE((SELECT MAX(t.number) FROM turns t), 0)
), json_group_array(new.key)
FROM new WHERE EXISTS (SELECT 1 FROM lanes l WHERE l.name = new.lane AND l.holder IS NOT NULL)
OR EXISTS (SELECT 1 FROM turns q WHERE q.lane = new.lane AND q.state = 'queued')
OR new.party IN (SELECT party FROM crowded)
OR EXISTS (
    SELECT 1 FROM turns t
    WHERE t.platform = new.platform AND t.account = new.account AND t.event_id = new.event_id
);

-- name: add_turns
-- New turns, after the newest; the body of each is a piece of all the bodies.
INSERT INTO turns (
    number, id, lane, kind, state, session_key, party, platform, account, event_id, received_at, due_at,
    message_digest, body
)
SELECT :last + 1 + key, value ->> 'id', value ->> 'lane', value ->> 'kind', 'queued', value ->> 'session_key',
    value ->> 'party', value ->> 'platform', value ->> 'account', value ->> 'event_id', value ->> 'received_at',
    value ->> 'received_at', value ->> 'message_digest', substr(:bodies, value ->> 'start', value ->> 'size')
FROM json_each(:turns);

-- name: line_up_turns
-- Their lanes, which were free.
INSERT INTO lanes (name, kind, due_at, party)
SELECT t.lane, :kind, t.due_at, t.party FROM turns t WHERE t.number > :last
ON CONFLICT (name) DO UPDATE SET due_at = excluded.due_at, party = excluded.party;

-- name: tell_turns
-- What the feed says of them.
INSERT INTO feed (at, kind, session_key, turn_id, state)
SELECT t.received_at, :kind, t.session_key, t.id, t.state FROM turns t WHERE t.number > :last;
