-- Grants that nobody used in time: once that is known, no clock brings them back.

ALTER TABLE confirmations ADD COLUMN lapsed_at /*pg BIG*/INT;

-- The status comes first, though all have the same: SQLite would look through all that was ever approved.
CREATE INDEX confirmations_granted ON confirmations (status, resolved_at)
    WHERE status = 'approved' AND redeemed_at IS NULL AND lapsed_at IS NULL;
