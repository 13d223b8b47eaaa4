-- Queries of both dialects. A comment of the form /*pg ... */ is SQL for PostgreSQL alone.

-- part: tallies
-- What is not added up yet.
SELECT t.number, t.platform, COALESCE(t.finished_at, t.started_at, t.received_at), t.state, t.tally
FROM turns t WHERE t.tally IS NOT NULL ORDER BY t.number LIMIT :limit

-- name: tallies
-- What turns came to that is not added up yet.
{tallies};

-- name: tallies_locked
-- The same, to be added up in this transaction.
{tallies} /*pg FOR UPDATE SKIP LOCKED */;

-- name: add_usage_day
-- Add what turns of a day came to.
INSERT INTO usage_days (
    day, platform, profile, model, turns, failed, messages, tools, failures, input_tokens, output_tokens,
    cache_read_tokens, cache_write_tokens, cost_usd
) VALUES (
    :day, :platform, :profile, :model, :turns, :failed, :messages, :tools, :failures, :input_tokens, :output_tokens,
    :cache_read_tokens, :cache_write_tokens, :cost_usd
) ON CONFLICT (day, platform, profile, model) DO UPDATE SET
    turns = usage_days.turns + excluded.turns, failed = usage_days.failed + excluded.failed,
    messages = usage_days.messages + excluded.messages, tools = usage_days.tools + excluded.tools,
    failures = usage_days.failures + excluded.failures,
    input_tokens = usage_days.input_tokens + excluded.input_tokens,
    output_tokens = usage_days.output_tokens + excluded.output_tokens,
    cache_read_tokens = usage_days.cache_read_tokens + excluded.cache_read_tokens,
    cache_write_tokens = usage_days.cache_write_tokens + excluded.cache_write_tokens,
    cost_usd = usage_days.cost_usd + excluded.cost_usd
/*pg RETURNING pg_current_xact_id() AS xid */;

-- name: add_usage_curve
-- Add what turns came to whose sessions had so many messages.
INSERT INTO usage_curve (day, model, number, turns, tools, failures, input_tokens, output_tokens, cost_usd)
VALUES (:day, :model, :number, :turns, :tools, :failures, :input_tokens, :output_tokens, :cost_usd)
ON CONFLICT (day, model, number) DO UPDATE SET
    turns = usage_curve.turns + excluded.turns, tools = usage_curve.tools + excluded.tools,
    failures = usage_curve.failures + excluded.failures,
    input_tokens = usage_curve.input_tokens + excluded.input_tokens,
    output_tokens = usage_curve.output_tokens + excluded.output_tokens,
    cost_usd = usage_curve.cost_usd + excluded.cost_usd;

-- name: forget_tally
-- It has been added up.
UPDATE turns SET tally = NULL WHERE number = :number;

-- name: usage_days
-- What turns came to from one day to another.
SELECT {d.usage_day} FROM usage_days d WHERE d.day >= :first AND d.day <= :last
ORDER BY d.day, d.platform, d.profile, d.model;

-- name: usage_curve
-- What turns came to from one day to another, by how many messages their sessions had; of one model, or of all.
SELECT c.number, SUM(c.turns), SUM(c.tools), SUM(c.failures), SUM(c.input_tokens), SUM(c.output_tokens),
    SUM(c.cost_usd)
FROM usage_curve c
WHERE c.day >= :first AND c.day <= :last AND (CAST(:model AS text) IS NULL OR c.model = :model)
GROUP BY c.number ORDER BY c.number;
