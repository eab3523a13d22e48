-- The times that a run was below an earlier high, deepest first. The peak is the last point at the high, the recovery
-- the first point that reaches it again; one that is open has no recovery and lasts to the last point.
--
-- depth    wealth at the trough / wealth at the peak - 1
-- seconds  from the peak to the recovery, or the last point; points the same in points
CREATE OR REPLACE MACRO drawdowns(instance, run, base := 'deposit', session := 'utc', fill := false) AS TABLE
WITH high AS (
  SELECT p.account, p.portfolio, p.currency, p.series, p.i, p.ts, p.wealth,
    max(p.wealth) OVER (PARTITION BY p.series ORDER BY p.i) AS top
  FROM session_points(instance, run, base := base, session := session, fill := fill) p
),
spells AS (
  SELECT h.*,
    -- no count with a filter, which DuckDB counts again for each row
    sum(CASE WHEN h.wealth >= h.top THEN 1 ELSE 0 END) OVER (PARTITION BY h.series ORDER BY h.i) AS spell
  FROM high h
),
spans AS (
  SELECT s.account, s.portfolio, s.currency, s.series, s.spell, min(s.i) AS peak_i, min_by(s.ts, s.i) AS peak_ts,
    max(s.top) AS top, min(s.wealth) AS bottom, min_by(s.ts, (s.wealth, s.i)) AS trough_ts,
    max(s.i) AS last_i, max_by(s.ts, s.i) AS last_ts
  FROM spells s
  GROUP BY ALL
),
followed AS (
  SELECT s.*,
    lead(s.peak_ts) OVER w AS recovery_ts,
    lead(s.peak_i) OVER w AS recovery_i
  FROM spans s
  WINDOW w AS (PARTITION BY s.series ORDER BY s.spell)
)
SELECT f.account, f.portfolio, f.currency,
  row_number() OVER (PARTITION BY f.series ORDER BY f.bottom / f.top, f.peak_ts) AS rank,
  f.bottom / f.top - 1 AS depth, f.peak_ts, f.trough_ts, f.recovery_ts,
  (epoch_ns(coalesce(f.recovery_ts, f.last_ts)) - epoch_ns(f.peak_ts)) / 1e9 AS seconds,
  coalesce(f.recovery_i, f.last_i) - f.peak_i AS points,
  f.recovery_ts IS NULL AS is_open
FROM followed f
WHERE f.bottom < f.top
ORDER BY f.series, rank;
