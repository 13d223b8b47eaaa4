-- What is needed to bound how often people are asked, whatever an action or its requester is called, and to
-- count refusals that are about no request.

-- Whose budget it uses, and what a denial of it mutes; of older rows, the digest.
ALTER TABLE confirmations ADD COLUMN credential TEXT NOT NULL DEFAULT '';
ALTER TABLE confirmations ADD COLUMN subject TEXT NOT NULL DEFAULT '';

UPDATE confirmations SET subject = digest,
    credential = CASE WHEN requester LIKE '%:%' THEN requester ELSE 'anybody' END;

CREATE INDEX confirmations_prompted ON confirmations (credential, created_at) WHERE asked = 1;
CREATE INDEX confirmations_muting ON confirmations (credential, subject) WHERE status = 'denied' AND asked = 1;

DROP INDEX confirmations_at_once;
DROP INDEX confirmations_hasty;
CREATE INDEX confirmations_hasty ON confirmations (credential, created_at) WHERE asked = 0;

-- Denials in a row, and since when their requester is paused.
CREATE TABLE confirmation_pauses (
    credential TEXT NOT NULL PRIMARY KEY,
    denials INTEGER NOT NULL,
    paused_at INTEGER
) STRICT, WITHOUT ROWID;

-- What happened again, to a confirmation or to none (an empty id).
CREATE TABLE repeated_events (
    confirmation_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    why TEXT NOT NULL,
    actor TEXT NOT NULL,
    since INTEGER NOT NULL,
    left_out INTEGER NOT NULL,
    PRIMARY KEY (confirmation_id, kind, why, actor)
) STRICT, WITHOUT ROWID;

INSERT INTO repeated_events (confirmation_id, kind, why, actor, since, left_out)
SELECT confirmation_id, kind, why, actor, since, left_out FROM confirmation_echoes;

DROP TABLE confirmation_echoes;
ALTER TABLE repeated_events RENAME TO confirmation_echoes;
CREATE INDEX confirmation_echoes_since ON confirmation_echoes (since);
