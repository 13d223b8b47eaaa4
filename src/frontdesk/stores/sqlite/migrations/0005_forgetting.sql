-- What is needed to forget what is old or was erased, to keep the log short where something is repeated, to
-- count an action however it is written, and to tell several programs of one decision.

CREATE INDEX confirmations_resolved ON confirmations (resolved_at) WHERE resolved_at IS NOT NULL;
CREATE INDEX confirmations_hasty ON confirmations (created_at) WHERE asked = 0;

-- What the action's name reads like; of older rows, the name as it is.
ALTER TABLE confirmations ADD COLUMN reads_as TEXT NOT NULL DEFAULT '';

UPDATE confirmations SET reads_as = action;

DROP INDEX confirmations_by_action;
CREATE INDEX confirmations_by_reading ON confirmations (reads_as, created_at) WHERE asked = 1;

ALTER TABLE confirmation_keys ADD COLUMN used_at INTEGER NOT NULL DEFAULT 0;

UPDATE confirmation_keys SET used_at = (SELECT created_at FROM confirmations c WHERE c.id = confirmation_id);

CREATE INDEX confirmation_keys_used ON confirmation_keys (used_at);
CREATE INDEX confirmation_keys_of ON confirmation_keys (confirmation_id);

-- The confirmation that a message tells people of.
ALTER TABLE deliveries ADD COLUMN confirmation_id TEXT;

CREATE INDEX deliveries_about ON deliveries (confirmation_id) WHERE confirmation_id IS NOT NULL;

-- What happened again to a confirmation so soon that the log does not tell each time.
CREATE TABLE confirmation_echoes (
    confirmation_id TEXT NOT NULL REFERENCES confirmations (id),
    kind TEXT NOT NULL,
    why TEXT NOT NULL,
    actor TEXT NOT NULL,
    since INTEGER NOT NULL,
    left_out INTEGER NOT NULL,
    PRIMARY KEY (confirmation_id, kind, why, actor)
) STRICT, WITHOUT ROWID;

CREATE INDEX confirmation_echoes_since ON confirmation_echoes (since);

-- The addresses of all programs that want to hear of a decision, a line for each.
ALTER TABLE confirmation_payloads RENAME COLUMN callback_url TO callbacks;

-- Those that are still to be told, each by itself.
CREATE TABLE confirmation_owed (
    confirmation_id TEXT NOT NULL REFERENCES confirmations (id),
    url TEXT NOT NULL,
    due_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    PRIMARY KEY (confirmation_id, url)
) STRICT, WITHOUT ROWID;

INSERT INTO confirmation_owed (confirmation_id, url, due_at, attempts)
SELECT o.confirmation_id, p.callbacks, o.due_at, o.attempts FROM confirmation_callbacks o
JOIN confirmation_payloads p ON p.confirmation_id = o.confirmation_id WHERE p.callbacks IS NOT NULL;

DROP TABLE confirmation_callbacks;
ALTER TABLE confirmation_owed RENAME TO confirmation_callbacks;
CREATE INDEX confirmation_callbacks_due ON confirmation_callbacks (due_at);
