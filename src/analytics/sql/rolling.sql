-- Sharpe ratio and volatility of the last `window_size` returns, a year's; NULL before there are so many, and the ratio
-- where they do not differ.
CREATE OR REPLACE MACRO rolling(
  instance, run, window_size := 126, base := 'deposit', session := 'utc', fill := false, periods := NULL, rf := 0.0,
  log_returns := false
) AS TABLE
WITH basis AS (
  FROM series_basis(instance, run, base := base, session := session, fill := fill, periods := periods, rf := rf)
),
excess AS (
  SELECT p.account, p.portfolio, p.currency, p.i, p.day, p.ts, b.P, b.rp,
    CASE WHEN log_returns THEN ln(nullif(greatest(1 + p.ret, 0), 0)) ELSE p.ret END AS x
  FROM session_returns(instance, run, base := base, session := session, fill := fill) p
  JOIN basis b USING (account, portfolio, currency)
),
windows AS (
  SELECT e.*, row_number() OVER w AS nth,
    avg(e.x) OVER (w ROWS BETWEEN window_size - 1 PRECEDING AND CURRENT ROW) AS mean,
    stddev_samp(e.x) OVER (w ROWS BETWEEN window_size - 1 PRECEDING AND CURRENT ROW) AS deviation,
    min(e.x) OVER (w ROWS BETWEEN window_size - 1 PRECEDING AND CURRENT ROW) AS lowest,
    max(e.x) OVER (w ROWS BETWEEN window_size - 1 PRECEDING AND CURRENT ROW) AS highest
  FROM excess e
  WINDOW w AS (PARTITION BY e.account, e.portfolio, e.currency ORDER BY e.i)
)
SELECT w.account, w.portfolio, w.currency, w.i, w.day, w.ts,
  CASE WHEN w.nth >= window_size AND w.lowest < w.highest
    THEN (w.mean - w.rp) / nullif(w.deviation, 0) * sqrt(w.P) END AS sharpe,
  CASE WHEN w.nth >= window_size
    THEN CASE WHEN w.lowest = w.highest THEN 0.0 ELSE w.deviation * sqrt(w.P) END END AS volatility
FROM windows w
ORDER BY w.account, w.portfolio, w.currency, w.i;
