-- What a run returned in each calendar month of its sessions. A month without rows is there, with NULL; the first and
-- the last, which may be cut by the run's ends, are marked.
CREATE OR REPLACE MACRO monthly(instance, run, base := 'deposit', session := 'utc', fill := false) AS TABLE
WITH points AS (
  SELECT p.account, p.portfolio, p.currency, p.ts, p.i, p.wealth, CAST(date_trunc('month', p.day) AS DATE) AS first_day
  FROM session_points(instance, run, base := base, session := session, fill := fill) p
  WHERE p.i > 0
),
closes AS (
  SELECT p.account, p.portfolio, p.currency, p.first_day, max_by(p.wealth, p.i) AS wealth, count(*) AS n,
    min(p.ts) AS from_ts, max(p.ts) AS to_ts
  FROM points p
  GROUP BY ALL
),
returns AS (
  SELECT c.*,
    -- not lag's own default: DuckDB 2.0 loses it in a file that 1.5 wrote
    c.wealth / coalesce(lag(c.wealth) OVER (
      PARTITION BY c.account, c.portfolio, c.currency ORDER BY c.first_day), 1) - 1 AS ret
  FROM closes c
),
spans AS (
  SELECT c.account, c.portfolio, c.currency, min(c.first_day) AS first_month, max(c.first_day) AS last_month,
    generate_series(CAST(min(c.first_day) AS TIMESTAMP), CAST(max(c.first_day) AS TIMESTAMP), INTERVAL 1 MONTH) AS months
  FROM closes c
  GROUP BY c.account, c.portfolio, c.currency
),
months AS (
  SELECT s.account, s.portfolio, s.currency, s.first_month, s.last_month, CAST(unnest(s.months) AS DATE) AS first_day
  FROM spans s
)
SELECT m.account, m.portfolio, m.currency, CAST(year(m.first_day) AS INTEGER) AS year,
  CAST(month(m.first_day) AS INTEGER) AS month, r.ret, coalesce(r.n, 0) AS n,
  m.first_day IN (m.first_month, m.last_month) AS is_partial, r.from_ts, r.to_ts
FROM months m LEFT JOIN returns r USING (account, portfolio, currency, first_day)
ORDER BY ALL;
