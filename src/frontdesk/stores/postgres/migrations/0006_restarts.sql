-- Begun again a short while ago: if the process dies now, this turn may be the cause.
ALTER TABLE turns ADD COLUMN on_trial BIGINT NOT NULL DEFAULT 0;

-- How often the process died while this turn and others were suspected, so that nobody knew which one it was.
ALTER TABLE turns ADD COLUMN doubts BIGINT NOT NULL DEFAULT 0;

-- When its latest attempt was broken off.
ALTER TABLE turns ADD COLUMN interrupted_at BIGINT;

-- When a node was told to stop; what it leaves behind is no turn's fault.
ALTER TABLE nodes ADD COLUMN stopped_at BIGINT;
