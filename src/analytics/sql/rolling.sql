-- Sharpe ratio and volatility of the last `window_size` returns, a year's; NULL before there are so many, and the ratio
-- where they do not differ.
CREATE OR REPLACE MACRO rolling(
  instance, run, window_size := 126, base := 'deposit', session := 'utc', fill := false, periods := NULL, rf := 0.0,
  log_returns := false
) AS TABLE
WITH points AS MATERIALIZED (
  FROM measured_points(instance, run, base := base, session := session, fill := fill, periods := periods, rf := rf)
),
excess AS (
  SELECT p.account, p.portfolio, p.currency, p.series, p.i, p.day, p.ts, b.P, b.rp, b.alike,
    CASE WHEN log_returns THEN ln(nullif(greatest(1 + p.ret, 0), 0)) ELSE p.ret END AS x
  FROM points p JOIN (SELECT o.series, unnest(o.basis[1]) FROM points o WHERE o.i = 0) b USING (series)
  WHERE p.i > 0
),
windows AS (
  SELECT e.*,
    avg(e.x) OVER w AS mean,
    stddev_samp(e.x) OVER w AS deviation,
    -- returns that differ only by rounding are equal
    max(e.x) OVER w - min(e.x) OVER w <= e.alike AS is_constant
  FROM excess e
  WINDOW w AS (PARTITION BY e.series ORDER BY e.i ROWS BETWEEN window_size - 1 PRECEDING AND CURRENT ROW)
)
SELECT w.account, w.portfolio, w.currency, w.i, w.day, w.ts,
  CASE WHEN w.i >= window_size AND NOT w.is_constant
    THEN (w.mean - w.rp) / nullif(w.deviation, 0) * sqrt(w.P) END AS sharpe,
  CASE WHEN w.i >= window_size
    THEN CASE WHEN w.is_constant THEN 0.0 ELSE w.deviation * sqrt(w.P) END END AS volatility
FROM windows w
ORDER BY w.series, w.i;
