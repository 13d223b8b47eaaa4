-- The triggers that let nobody change the audit log, as the migration makes them.

-- name: missing_audit_triggers
-- Those that are not there, or do something else.
WITH made (name, sql) AS (
    VALUES
    ('audit_unchanged', 'CREATE TRIGGER audit_unchanged BEFORE UPDATE ON audit BEGIN
    SELECT RAISE(ABORT, ''the audit log is only added to'');
END'),
    ('audit_kept', 'CREATE TRIGGER audit_kept BEFORE DELETE ON audit BEGIN
    SELECT RAISE(ABORT, ''the audit log is only added to'');
END'),
    ('audit_added', 'CREATE TRIGGER audit_added BEFORE INSERT ON audit
WHEN NEW.number IS NOT (SELECT COALESCE(MAX(number), 0) + 1 FROM audit) BEGIN
    SELECT RAISE(ABORT, ''the audit log is only added to'');
END')
)
SELECT m.name FROM made m LEFT JOIN sqlite_schema s
    ON s.type = 'trigger' AND s.tbl_name = 'audit' AND s.name = m.name
WHERE s.sql IS NOT m.sql ORDER BY m.name;

-- name: drop_audit_triggers
-- Take away what is in their place.
DROP TRIGGER IF EXISTS audit_unchanged;
DROP TRIGGER IF EXISTS audit_kept;
DROP TRIGGER IF EXISTS audit_added;

-- name: make_audit_guard
-- Nothing but triggers is needed here.
SELECT 1;

-- name: make_audit_triggers
-- Put them in their place.
CREATE TRIGGER audit_unchanged BEFORE UPDATE ON audit BEGIN
    SELECT RAISE(ABORT, 'the audit log is only added to');
END;

CREATE TRIGGER audit_kept BEFORE DELETE ON audit BEGIN
    SELECT RAISE(ABORT, 'the audit log is only added to');
END;

CREATE TRIGGER audit_added BEFORE INSERT ON audit
WHEN NEW.number IS NOT (SELECT COALESCE(MAX(number), 0) + 1 FROM audit) BEGIN
    SELECT RAISE(ABORT, 'the audit log is only added to');
END;
