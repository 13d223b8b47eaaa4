-- Confirmations: what waits for a person's yes, who said what, rules, and the log of all of it.

-- Whatever was asked for, decided at once or waiting. `asked` tells what people were asked about.
CREATE TABLE confirmations (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    action TEXT NOT NULL,
    digest TEXT NOT NULL,
    requester TEXT NOT NULL,
    session_key TEXT,
    on_behalf_of TEXT,
    turn_id TEXT,
    status TEXT NOT NULL,
    asked INTEGER NOT NULL,
    terms BLOB NOT NULL,
    timeout_seconds INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    escalates_at INTEGER,
    escalated_at INTEGER,
    resolved_at INTEGER,
    resolved_by TEXT,
    redeemed_at INTEGER,
    redeemed_by TEXT,
    renewal_of TEXT UNIQUE,
    approvals BLOB NOT NULL
) STRICT;

CREATE INDEX confirmations_by_request ON confirmations (requester, digest);
CREATE INDEX confirmations_by_action ON confirmations (action, created_at) WHERE asked = 1;
CREATE INDEX confirmations_at_once ON confirmations (requester, created_at) WHERE asked = 0;
CREATE INDEX confirmations_by_status ON confirmations (status, number);
CREATE INDEX confirmations_by_turn ON confirmations (turn_id, digest) WHERE turn_id IS NOT NULL;
CREATE INDEX confirmations_expiring ON confirmations (expires_at) WHERE status = 'pending';
CREATE INDEX confirmations_escalating ON confirmations (escalates_at)
    WHERE status = 'pending' AND escalates_at IS NOT NULL AND escalated_at IS NULL;

-- What can be erased: the action itself, and what was said about it.
CREATE TABLE confirmation_payloads (
    confirmation_id TEXT NOT NULL PRIMARY KEY REFERENCES confirmations (id),
    payload BLOB NOT NULL,
    description TEXT NOT NULL,
    callback_url TEXT
) STRICT;

-- A person's vote, with the reason, which can be erased, too.
CREATE TABLE confirmation_votes (
    confirmation_id TEXT NOT NULL REFERENCES confirmations (id),
    person TEXT NOT NULL,
    approves INTEGER NOT NULL,
    name TEXT,
    reason TEXT,
    voted_at INTEGER NOT NULL,
    PRIMARY KEY (confirmation_id, person)
) STRICT, WITHOUT ROWID;

-- Idempotency keys, hashed.
CREATE TABLE confirmation_keys (
    requester TEXT NOT NULL,
    key BLOB NOT NULL,
    confirmation_id TEXT NOT NULL REFERENCES confirmations (id),
    PRIMARY KEY (requester, key)
) STRICT, WITHOUT ROWID;

-- Programs that are to be told of a decision, until they have heard it.
CREATE TABLE confirmation_callbacks (
    confirmation_id TEXT NOT NULL PRIMARY KEY REFERENCES confirmations (id),
    due_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX confirmation_callbacks_due ON confirmation_callbacks (due_at);

CREATE TABLE rules (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    expires_at INTEGER,
    revoked_at INTEGER,
    body BLOB NOT NULL
) STRICT;

CREATE TABLE audit (
    number INTEGER NOT NULL PRIMARY KEY CHECK (number > 0),
    body BLOB NOT NULL,
    previous BLOB NOT NULL,
    hash BLOB NOT NULL
) STRICT;

CREATE TRIGGER audit_unchanged BEFORE UPDATE ON audit BEGIN
    SELECT RAISE(ABORT, 'the audit log is only added to');
END;

CREATE TRIGGER audit_kept BEFORE DELETE ON audit BEGIN
    SELECT RAISE(ABORT, 'the audit log is only added to');
END;

-- INSERT OR REPLACE deletes without a trigger. So only the next number is taken, which nobody has.
CREATE TRIGGER audit_added BEFORE INSERT ON audit
WHEN NEW.number IS NOT (SELECT COALESCE(MAX(number), 0) + 1 FROM audit) BEGIN
    SELECT RAISE(ABORT, 'the audit log is only added to');
END;
