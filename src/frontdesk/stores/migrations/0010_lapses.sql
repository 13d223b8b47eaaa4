-- Grants that nobody used in time: once that is known, no clock brings them back.

ALTER TABLE confirmations ADD COLUMN lapsed_at /*pg BIG*/INT;

CREATE INDEX confirmations_granted ON confirmations (resolved_at)
    WHERE status = 'approved' AND redeemed_at IS NULL AND lapsed_at IS NULL;
