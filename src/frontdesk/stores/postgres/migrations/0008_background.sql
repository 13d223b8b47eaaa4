-- Background work of conversations, as long as somebody says that it runs.

CREATE TABLE background (
    session_key TEXT NOT NULL,
    name TEXT NOT NULL,
    begun_at BIGINT NOT NULL,
    until BIGINT NOT NULL,
    PRIMARY KEY (session_key, name)
);
