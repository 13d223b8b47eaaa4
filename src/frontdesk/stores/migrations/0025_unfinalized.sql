-- Whoever looks for sessions whose end has not been dealt with looks at all of them: no message need move one among them.

DROP INDEX sessions_unfinalized;
CREATE INDEX sessions_unfinalized ON sessions (id) WHERE expiry_finalized = 0 AND ended_at IS NULL;
