-- The way of a message: lanes, turns, deliveries, and the feed of what changed.

-- One row answers whether somebody works on a conversation or a chat, and who.
CREATE TABLE lanes (
    name TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    due_at INTEGER,
    holder INTEGER,
    token INTEGER NOT NULL DEFAULT 0,
    leased_until INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX lanes_by_due ON lanes (kind, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX lanes_by_holder ON lanes (holder) WHERE holder IS NOT NULL;

CREATE TABLE nodes (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    started_at INTEGER NOT NULL
) STRICT;

CREATE TABLE turns (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    lane TEXT NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    session_key TEXT NOT NULL,
    session_id TEXT,
    platform TEXT NOT NULL,
    account TEXT NOT NULL,
    event_id TEXT,
    received_at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    started_at INTEGER,
    finished_at INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    put_backs INTEGER NOT NULL DEFAULT 0,
    steers INTEGER NOT NULL DEFAULT 0,
    stop_requested INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    draft TEXT,
    body BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX turns_by_event ON turns (platform, account, event_id) WHERE event_id IS NOT NULL;
CREATE INDEX turns_queued ON turns (lane, number) WHERE state = 'queued';
CREATE INDEX turns_running ON turns (lane) WHERE state IN ('running', 'waiting');
CREATE INDEX turns_finished ON turns (finished_at) WHERE finished_at IS NOT NULL;

CREATE TABLE deliveries (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    lane TEXT NOT NULL,
    state TEXT NOT NULL,
    kind TEXT NOT NULL,
    platform TEXT NOT NULL,
    account TEXT NOT NULL,
    turn_id TEXT,
    session_id TEXT,
    session_key TEXT,
    created_at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    sent_at INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    platform_message_id TEXT,
    body BLOB NOT NULL
) STRICT;

CREATE INDEX deliveries_pending ON deliveries (lane, number) WHERE state = 'pending';
CREATE INDEX deliveries_sent ON deliveries (sent_at) WHERE sent_at IS NOT NULL;
CREATE INDEX deliveries_sending ON deliveries (lane) WHERE state = 'sending';
CREATE INDEX deliveries_troubled ON deliveries (number) WHERE state IN ('dead', 'unknown');
CREATE INDEX deliveries_by_turn ON deliveries (turn_id) WHERE turn_id IS NOT NULL;

CREATE TABLE feed (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    session_key TEXT,
    session_id TEXT,
    turn_id TEXT,
    delivery_id TEXT,
    state TEXT
) STRICT;

CREATE INDEX sessions_unfinalized ON sessions (active_minute, id) WHERE expiry_finalized = 0 AND ended_at IS NULL;
