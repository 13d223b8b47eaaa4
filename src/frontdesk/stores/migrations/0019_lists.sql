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

-- What an attempt at a turn came to, as JSON, until it is added to the sums below; several stand on lines of their own.
ALTER TABLE turns ADD COLUMN tally TEXT;

CREATE INDEX turns_to_fold ON turns (number) WHERE tally IS NOT NULL;

-- What turns came to on a day (of UTC, since 1970).
CREATE TABLE usage_days (
    day /*pg BIG*/INT NOT NULL,
    platform TEXT NOT NULL,
    profile TEXT NOT NULL,
    model TEXT NOT NULL,
    turns /*pg BIG*/INT NOT NULL,
    failed /*pg BIG*/INT NOT NULL,
    messages /*pg BIG*/INT NOT NULL,
    tools /*pg BIG*/INT NOT NULL,
    failures /*pg BIG*/INT NOT NULL,
    input_tokens /*pg BIG*/INT NOT NULL,
    output_tokens /*pg BIG*/INT NOT NULL,
    cache_read_tokens /*pg BIG*/INT NOT NULL,
    cache_write_tokens /*pg BIG*/INT NOT NULL,
    cost_usd DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (day, platform, profile, model)
);

-- The same by how many messages the session had, a few numbers together.
CREATE TABLE usage_curve (
    day /*pg BIG*/INT NOT NULL,
    model TEXT NOT NULL,
    number /*pg BIG*/INT NOT NULL,
    turns /*pg BIG*/INT NOT NULL,
    tools /*pg BIG*/INT NOT NULL,
    failures /*pg BIG*/INT NOT NULL,
    input_tokens /*pg BIG*/INT NOT NULL,
    output_tokens /*pg BIG*/INT NOT NULL,
    cost_usd DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (day, model, number)
);

-- When a platform was last read on, by the database's clock.
ALTER TABLE cursors ADD COLUMN moved_at /*pg BIG*/INT;

-- The words of titles and of the names of chats and people, each session's some time after it was named.
ALTER TABLE sessions ADD COLUMN named /*pg BIG*/INT NOT NULL DEFAULT 0;

CREATE INDEX sessions_unnamed ON sessions (id) WHERE named = 0;

CREATE TABLE session_names (
    session_id TEXT NOT NULL,
    word TEXT /*pg COLLATE "C" */ NOT NULL,
    owner TEXT NOT NULL,
    PRIMARY KEY (session_id, word)
);

CREATE INDEX session_names_by_word ON session_names (word, session_id);
CREATE INDEX session_names_by_owner ON session_names (owner, word);
