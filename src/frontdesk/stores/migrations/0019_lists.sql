-- Lists of sessions by platform, owner and state, latest activity first; what of their work is in trouble.

CREATE INDEX sessions_by_platform ON sessions (platform, active_minute);

DROP INDEX sessions_by_owner;
CREATE INDEX sessions_by_owner ON sessions (owner, active_minute);

-- No message changes these: nothing is said in a session that has ended.
CREATE INDEX sessions_ended ON sessions (active_minute) WHERE ended_at IS NOT NULL;
CREATE INDEX sessions_ended_by_platform ON sessions (platform, active_minute) WHERE ended_at IS NOT NULL;
CREATE INDEX sessions_ended_by_owner ON sessions (owner, active_minute) WHERE ended_at IS NOT NULL;
CREATE INDEX sessions_suspended ON sessions (id) WHERE suspended = 1 AND ended_at IS NULL;

CREATE INDEX deliveries_undelivered ON deliveries (session_id) WHERE state IN ('dead', 'unknown');
CREATE INDEX turns_set_aside ON turns (number) WHERE state = 'set_aside';

-- What a person gave up is kept for a while, like what arrived.
CREATE INDEX deliveries_discarded ON deliveries (due_at) WHERE state = 'discarded';
