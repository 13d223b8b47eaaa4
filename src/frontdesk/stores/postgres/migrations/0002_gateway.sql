-- The way of a message: lanes, turns, deliveries, and the feed of what changed.

-- One row answers whether somebody works on a conversation or a chat, and who.
CREATE TABLE lanes (
    name TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    due_at BIGINT,
    holder BIGINT,
    token BIGINT NOT NULL DEFAULT 0,
    leased_until BIGINT
);

CREATE INDEX lanes_by_due ON lanes (kind, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX lanes_by_holder ON lanes (holder) WHERE holder IS NOT NULL;

CREATE TABLE nodes (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT NOT NULL,
    started_at BIGINT NOT NULL
);

CREATE TABLE turns (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    lane TEXT NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    session_key TEXT NOT NULL,
    session_id TEXT,
    platform TEXT NOT NULL,
    account TEXT NOT NULL,
    event_id TEXT,
    received_at BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    started_at BIGINT,
    finished_at BIGINT,
    attempts BIGINT NOT NULL DEFAULT 0,
    put_backs BIGINT NOT NULL DEFAULT 0,
    steers BIGINT NOT NULL DEFAULT 0,
    stop_requested BIGINT NOT NULL DEFAULT 0,
    error TEXT,
    draft TEXT,
    body BYTEA NOT NULL
);

CREATE UNIQUE INDEX turns_by_event ON turns (platform, account, event_id) WHERE event_id IS NOT NULL;
CREATE INDEX turns_queued ON turns (lane, number) WHERE state = 'queued';
CREATE INDEX turns_running ON turns (lane) WHERE state IN ('running', 'waiting');
CREATE INDEX turns_finished ON turns (finished_at) WHERE finished_at IS NOT NULL;

CREATE TABLE deliveries (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    lane TEXT NOT NULL,
    state TEXT NOT NULL,
    kind TEXT NOT NULL,
    platform TEXT NOT NULL,
    account TEXT NOT NULL,
    turn_id TEXT,
    session_id TEXT,
    session_key TEXT,
    created_at BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    sent_at BIGINT,
    attempts BIGINT NOT NULL DEFAULT 0,
    error TEXT,
    platform_message_id TEXT,
    body BYTEA NOT NULL
);

CREATE INDEX deliveries_pending ON deliveries (lane, number) WHERE state = 'pending';
CREATE INDEX deliveries_sent ON deliveries (sent_at) WHERE sent_at IS NOT NULL;
CREATE INDEX deliveries_sending ON deliveries (lane) WHERE state = 'sending';
CREATE INDEX deliveries_troubled ON deliveries (number) WHERE state IN ('dead', 'unknown');
CREATE INDEX deliveries_by_turn ON deliveries (turn_id) WHERE turn_id IS NOT NULL;

-- Numbers are given before the commit, so a later one may be seen first. Who follows the feed goes by the
-- transaction and reads no further than the oldest one still running.
CREATE TABLE feed (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    xid XID8 NOT NULL DEFAULT pg_current_xact_id(),
    at BIGINT NOT NULL,
    kind TEXT NOT NULL,
    session_key TEXT,
    session_id TEXT,
    turn_id TEXT,
    delivery_id TEXT,
    state TEXT
);

CREATE INDEX feed_by_xid ON feed (xid, number);

-- The database's clock, which all nodes share, in microseconds since 1970.
CREATE FUNCTION micros() RETURNS BIGINT LANGUAGE sql VOLATILE
    AS 'SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint';

CREATE INDEX sessions_unfinalized ON sessions (active_minute, id) WHERE expiry_finalized = 0 AND ended_at IS NULL;
