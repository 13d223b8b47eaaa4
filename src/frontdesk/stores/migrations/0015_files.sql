-- Files of messages and answers: what became of each. Their bytes lie in a folder, by their digests.

CREATE TABLE files (
    turn_id TEXT NOT NULL,
    way TEXT NOT NULL,
    place INT NOT NULL,
    session_id TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    size /*pg BIG*/INT NOT NULL,
    digest TEXT,
    said TEXT,
    why TEXT,
    kept_at /*pg BIG*/INT NOT NULL,
    PRIMARY KEY (turn_id, way, place, session_id)
);

CREATE INDEX files_by_session ON files (session_id);
CREATE INDEX files_by_digest ON files (digest);
CREATE INDEX files_by_time ON files (kept_at);
