-- Whose turns are: when there are more than places, nobody has more than an even part of those.

ALTER TABLE turns ADD COLUMN party TEXT NOT NULL DEFAULT '';
ALTER TABLE lanes ADD COLUMN party TEXT NOT NULL DEFAULT '';

CREATE INDEX turns_of_party ON turns (party) WHERE state = 'queued' AND kind <> 'observed' AND party <> '';

DROP INDEX lanes_by_due;
CREATE INDEX lanes_by_due ON lanes (kind, due_at, party) WHERE due_at IS NOT NULL;
