-- Confirmations: what waits for a person's yes, who said what, rules, and the log of all of it.

-- Whatever was asked for, decided at once or waiting. `asked` tells what people were asked about.
CREATE TABLE confirmations (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    action TEXT NOT NULL,
    digest TEXT NOT NULL,
    requester TEXT NOT NULL,
    session_key TEXT,
    on_behalf_of TEXT,
    turn_id TEXT,
    status TEXT NOT NULL,
    asked BIGINT NOT NULL,
    terms BYTEA NOT NULL,
    timeout_seconds BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    escalates_at BIGINT,
    escalated_at BIGINT,
    resolved_at BIGINT,
    resolved_by TEXT,
    redeemed_at BIGINT,
    redeemed_by TEXT,
    renewal_of TEXT UNIQUE,
    approvals BYTEA NOT NULL
);

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
    payload BYTEA NOT NULL,
    description TEXT NOT NULL,
    callback_url TEXT
);

-- A person's vote, with the reason, which can be erased, too.
CREATE TABLE confirmation_votes (
    confirmation_id TEXT NOT NULL REFERENCES confirmations (id),
    person TEXT NOT NULL,
    approves BIGINT NOT NULL,
    name TEXT,
    reason TEXT,
    voted_at BIGINT NOT NULL,
    PRIMARY KEY (confirmation_id, person)
);

-- Idempotency keys, hashed.
CREATE TABLE confirmation_keys (
    requester TEXT NOT NULL,
    key BYTEA NOT NULL,
    confirmation_id TEXT NOT NULL REFERENCES confirmations (id),
    PRIMARY KEY (requester, key)
);

-- Programs that are to be told of a decision, until they have heard it.
CREATE TABLE confirmation_callbacks (
    confirmation_id TEXT NOT NULL PRIMARY KEY REFERENCES confirmations (id),
    due_at BIGINT NOT NULL,
    attempts BIGINT NOT NULL
);

CREATE INDEX confirmation_callbacks_due ON confirmation_callbacks (due_at);

CREATE TABLE rules (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    expires_at BIGINT,
    revoked_at BIGINT,
    body BYTEA NOT NULL
);

CREATE TABLE audit (
    number BIGINT NOT NULL PRIMARY KEY CHECK (number > 0),
    body BYTEA NOT NULL,
    previous BYTEA NOT NULL,
    hash BYTEA NOT NULL
);

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the % log is only added to', TG_TABLE_NAME;
END
$$;

CREATE TRIGGER audit_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
