-- Requests with an idempotency key: which it was, and what it was answered.

CREATE TABLE keyed_calls (
    id TEXT PRIMARY KEY,
    request TEXT NOT NULL,
    status /*pg BIG*/INT,
    answer BYTEA,
    at /*pg BIG*/INT NOT NULL
);

CREATE INDEX keyed_calls_by_time ON keyed_calls (at);
