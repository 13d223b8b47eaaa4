-- Sessions, their routes and transcripts, and the search index. Times are microseconds since 1970, UTC.

CREATE TABLE sessions (
    id TEXT NOT NULL PRIMARY KEY,
    session_key TEXT NOT NULL,
    owner TEXT NOT NULL,
    peer TEXT NOT NULL,
    platform TEXT,
    chat_type TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    ended_at INTEGER,
    end_reason TEXT,
    parent_id TEXT,
    relation TEXT,
    title TEXT,
    title_key TEXT,
    message_count INTEGER NOT NULL DEFAULT 0,
    counted_from INTEGER NOT NULL DEFAULT 0,
    next_position INTEGER NOT NULL DEFAULT 0,
    revision INTEGER NOT NULL DEFAULT 0,
    redo_depth INTEGER NOT NULL DEFAULT 0,
    open_calls BLOB,
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    last_prompt_tokens INTEGER NOT NULL DEFAULT 0,
    estimated_cost_usd REAL NOT NULL DEFAULT 0,
    cost_status TEXT NOT NULL DEFAULT 'unknown',
    model_turns INTEGER NOT NULL DEFAULT 0,
    was_auto_reset INTEGER NOT NULL DEFAULT 0,
    auto_reset_reason TEXT,
    reset_had_activity INTEGER NOT NULL DEFAULT 0,
    is_fresh_reset INTEGER NOT NULL DEFAULT 0,
    expiry_finalized INTEGER NOT NULL DEFAULT 0,
    suspended INTEGER NOT NULL DEFAULT 0,
    resume_pending INTEGER NOT NULL DEFAULT 0,
    last_resume_marked_at INTEGER,
    details BLOB NOT NULL,
    active_minute INTEGER NOT NULL
) STRICT;

-- A minute is fine enough to find the latest; an exact time would change the index with every message.
CREATE INDEX sessions_by_activity ON sessions (active_minute);
CREATE INDEX sessions_by_key ON sessions (session_key);
CREATE INDEX sessions_by_owner ON sessions (owner);
CREATE INDEX sessions_by_parent ON sessions (parent_id) WHERE parent_id IS NOT NULL;
CREATE UNIQUE INDEX sessions_by_title ON sessions (owner, title_key) WHERE title_key IS NOT NULL;

CREATE TABLE routes (
    session_key TEXT NOT NULL PRIMARY KEY,
    session_id TEXT NOT NULL UNIQUE REFERENCES sessions (id)
) STRICT, WITHOUT ROWID;

CREATE TABLE messages (
    seq INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id),
    position INTEGER NOT NULL,
    role TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    hidden_by INTEGER,
    platform_message_id TEXT,
    source_key TEXT,
    turn_id TEXT,
    turn_position INTEGER,
    body BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX messages_by_position ON messages (session_id, position);
CREATE UNIQUE INDEX messages_by_platform_id ON messages (session_id, platform_message_id, source_key)
    WHERE platform_message_id IS NOT NULL AND hidden_by IS NULL;
CREATE UNIQUE INDEX messages_by_turn ON messages (session_id, turn_id, turn_position)
    WHERE turn_id IS NOT NULL;

CREATE TABLE revisions (
    session_id TEXT NOT NULL REFERENCES sessions (id),
    revision INTEGER NOT NULL,
    kind TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (session_id, revision)
) STRICT, WITHOUT ROWID;

CREATE TABLE aliases (
    identifier TEXT NOT NULL PRIMARY KEY,
    canonical TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX aliases_by_canonical ON aliases (canonical);

CREATE VIRTUAL TABLE words USING fts5 (
    text, owner, content = '', contentless_delete = 1, tokenize = 'ascii'
);

-- Merge the index's parts later than usual and never all at once: filling is faster and holds nobody up for
-- long, asking is no slower.
INSERT INTO words (words, rank) VALUES ('automerge', 16), ('crisismerge', 64);

CREATE TABLE indexed (
    one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    up_to INTEGER NOT NULL
) STRICT;

INSERT INTO indexed VALUES (1, 0);

-- A deleted message leaves the index; its number may be given to another, which is then not indexed yet.
CREATE TRIGGER messages_deleted AFTER DELETE ON messages BEGIN
    DELETE FROM words WHERE rowid = OLD.seq;
    UPDATE indexed SET up_to = MIN(up_to, (SELECT COALESCE(MAX(seq), 0) FROM messages));
END;
