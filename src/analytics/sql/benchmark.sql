-- Prices to compare with that are no bars of the run. Nothing until somebody makes it read a table of theirs:
-- CREATE OR REPLACE MACRO benchmark_prices() AS TABLE SELECT ts, price FROM benchmark
CREATE OR REPLACE MACRO benchmark_prices() AS TABLE
SELECT CAST(NULL AS TIMESTAMP_NS) AS ts, CAST(NULL AS DOUBLE) AS price WHERE false;

-- The prices that a run is compared with: closes of the benchmark's symbol among the bars of the run (those of the
-- shortest interval; of several venues is an error), else those of benchmark_prices.
CREATE OR REPLACE MACRO benchmark_series(instance, run, benchmark := NULL) AS TABLE
WITH bars_of AS (
  SELECT b.ts_event AS ts, b.close AS price, b.interval_ns, b.venue, b.seq
  FROM bars_f b
  WHERE benchmark IS NOT NULL AND b.instance_id = instance AND b.run_id = run AND b.symbol = benchmark
),
chosen AS (
  SELECT b.interval_ns,
    CASE WHEN min(b.venue) = max(b.venue) THEN min(b.venue)
      ELSE error('the bars of the benchmark are of several venues: ' || string_agg(DISTINCT b.venue, ', ' ORDER BY b.venue))
    END AS venue
  FROM bars_of b
  WHERE b.interval_ns = (SELECT min(o.interval_ns) FROM bars_of o)
  GROUP BY b.interval_ns
)
SELECT b.ts, max_by(b.price, b.seq) AS price
FROM bars_of b JOIN chosen USING (interval_ns, venue)
GROUP BY b.ts
UNION ALL
SELECT p.ts, p.price FROM benchmark_prices() p
WHERE benchmark IS NULL AND isfinite(p.price) AND p.price > 0;

-- The returns of a run paired with those of a benchmark. A price counts from its instant, so that the returns are
-- between the last prices at both ends of a period.
CREATE OR REPLACE MACRO benchmark_returns(
  instance, run, benchmark := NULL, base := 'deposit', session := 'utc', fill := false
) AS TABLE
WITH points AS (
  SELECT p.account, p.portfolio, p.currency, p.i, p.ts, p.ret, b.price,
    lag(b.price) OVER (PARTITION BY p.account, p.portfolio, p.currency ORDER BY p.i) AS before
  FROM session_points(instance, run, base := base, session := session, fill := fill) p
  ASOF LEFT JOIN benchmark_series(instance, run, benchmark := benchmark) b ON p.ts >= b.ts
)
SELECT p.account, p.portfolio, p.currency, p.i, p.ts, p.ret, p.price / nullif(p.before, 0) - 1 AS benchmark_ret
FROM points p
WHERE p.i > 0 AND p.price IS NOT NULL AND p.before IS NOT NULL;
