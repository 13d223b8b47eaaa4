-- Sessions, their routes and transcripts, and the search index. Times are microseconds since 1970, UTC.
-- The columns stand in the same order as in the SQLite schema.

CREATE TABLE meta (
    one BIGINT NOT NULL PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    application TEXT NOT NULL,
    version BIGINT NOT NULL
);

INSERT INTO meta (application, version) VALUES ('frontdesk', 0);

-- Unlogged: recovery after a crash empties it, and so ends a life of the server.
CREATE UNLOGGED TABLE life (
    one BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    token UUID NOT NULL DEFAULT gen_random_uuid()
);

CREATE TABLE lives (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    token UUID NOT NULL UNIQUE,
    recovered_to BIGINT
);

CREATE TABLE sessions (
    id TEXT NOT NULL PRIMARY KEY,
    session_key TEXT NOT NULL,
    owner TEXT NOT NULL,
    peer TEXT NOT NULL,
    platform TEXT,
    chat_type TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    ended_at BIGINT,
    end_reason TEXT,
    parent_id TEXT,
    relation TEXT,
    title TEXT,
    title_key TEXT,
    message_count BIGINT NOT NULL DEFAULT 0,
    counted_from BIGINT NOT NULL DEFAULT 0,
    next_position BIGINT NOT NULL DEFAULT 0,
    revision BIGINT NOT NULL DEFAULT 0,
    redo_depth BIGINT NOT NULL DEFAULT 0,
    open_calls BYTEA,
    input_tokens BIGINT NOT NULL DEFAULT 0,
    output_tokens BIGINT NOT NULL DEFAULT 0,
    cache_read_tokens BIGINT NOT NULL DEFAULT 0,
    cache_write_tokens BIGINT NOT NULL DEFAULT 0,
    last_prompt_tokens BIGINT NOT NULL DEFAULT 0,
    estimated_cost_usd DOUBLE PRECISION NOT NULL DEFAULT 0,
    cost_status TEXT NOT NULL DEFAULT 'unknown',
    model_turns BIGINT NOT NULL DEFAULT 0,
    was_auto_reset BIGINT NOT NULL DEFAULT 0,
    auto_reset_reason TEXT,
    reset_had_activity BIGINT NOT NULL DEFAULT 0,
    is_fresh_reset BIGINT NOT NULL DEFAULT 0,
    expiry_finalized BIGINT NOT NULL DEFAULT 0,
    suspended BIGINT NOT NULL DEFAULT 0,
    resume_pending BIGINT NOT NULL DEFAULT 0,
    last_resume_marked_at BIGINT,
    details BYTEA NOT NULL,
    active_minute BIGINT NOT NULL
);

-- A minute is fine enough to find the latest; an exact time would change the index with every message.
CREATE INDEX sessions_by_activity ON sessions (active_minute);
CREATE INDEX sessions_by_key ON sessions (session_key);
CREATE INDEX sessions_by_owner ON sessions (owner);
CREATE INDEX sessions_by_parent ON sessions (parent_id) WHERE parent_id IS NOT NULL;
CREATE UNIQUE INDEX sessions_by_title ON sessions (owner, title_key) WHERE title_key IS NOT NULL;

CREATE TABLE routes (
    session_key TEXT NOT NULL PRIMARY KEY,
    session_id TEXT NOT NULL UNIQUE REFERENCES sessions (id)
);

CREATE TABLE messages (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id),
    position BIGINT NOT NULL,
    role TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    hidden_by BIGINT,
    platform_message_id TEXT,
    source_key TEXT,
    turn_id TEXT,
    turn_position BIGINT,
    body BYTEA NOT NULL,
    written_by XID8 NOT NULL DEFAULT pg_current_xact_id()
);

CREATE UNIQUE INDEX messages_by_position ON messages (session_id, position);
CREATE UNIQUE INDEX messages_by_platform_id ON messages (session_id, platform_message_id, source_key)
    WHERE platform_message_id IS NOT NULL AND hidden_by IS NULL;
CREATE UNIQUE INDEX messages_by_turn ON messages (session_id, turn_id, turn_position)
    WHERE turn_id IS NOT NULL;

CREATE INDEX messages_by_writer ON messages (written_by);

CREATE TABLE revisions (
    session_id TEXT NOT NULL REFERENCES sessions (id),
    revision BIGINT NOT NULL,
    kind TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (session_id, revision)
);

CREATE TABLE aliases (
    identifier TEXT NOT NULL PRIMARY KEY,
    canonical TEXT NOT NULL
);

CREATE INDEX aliases_by_canonical ON aliases (canonical);

CREATE TABLE words (
    seq BIGINT NOT NULL PRIMARY KEY REFERENCES messages (seq) ON DELETE CASCADE,
    words TSVECTOR NOT NULL
);

CREATE INDEX words_by_word ON words USING gin (words);

CREATE TABLE indexed (
    one BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    up_to XID8 NOT NULL
);

INSERT INTO indexed VALUES (1, '0');
