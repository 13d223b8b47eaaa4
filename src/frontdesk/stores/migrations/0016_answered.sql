-- What was taken in lately to be answered, where a platform bounds how much that may be.

CREATE TABLE answered (
    chat TEXT NOT NULL,
    event TEXT NOT NULL,
    at /*pg BIG*/INT NOT NULL,
    PRIMARY KEY (chat, event)
);

CREATE INDEX answered_by_time ON answered (at);
