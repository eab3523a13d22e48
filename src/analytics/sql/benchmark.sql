-- Benchmark prices that are not bars of the run. Empty until the caller makes it read a table:
-- CREATE OR REPLACE MACRO benchmark_prices() AS TABLE SELECT ts, price FROM benchmark
CREATE OR REPLACE MACRO benchmark_prices() AS TABLE
SELECT CAST(NULL AS TIMESTAMP_NS) AS ts, CAST(NULL AS DOUBLE) AS price WHERE false;

-- The prices that a run is compared with: closes of the benchmark's symbol among the bars of the run, else those of
-- benchmark_prices. Bars of several venues or intervals are an error unless one is named (an interval in nanoseconds).
CREATE OR REPLACE MACRO benchmark_series(
  instance, run, benchmark := NULL, benchmark_venue := NULL, benchmark_interval := NULL
) AS TABLE
WITH bars_of AS (
  SELECT b.ts_event AS ts, b.close AS price, b.interval_ns, b.venue, b.seq
  FROM bars_f b
  WHERE benchmark IS NOT NULL AND b.instance_id = instance AND b.run_id = run AND b.symbol = benchmark
    AND (benchmark_venue IS NULL OR b.venue = benchmark_venue)
    AND (benchmark_interval IS NULL OR b.interval_ns = benchmark_interval)
),
chosen AS (
  SELECT
    CASE
      WHEN min(b.venue) < max(b.venue) THEN error('the bars of the benchmark are of several venues: '
        || string_agg(DISTINCT b.venue, ', ' ORDER BY b.venue) || '; name one with benchmark_venue')
      WHEN min(b.interval_ns) < max(b.interval_ns) THEN error('the bars of the benchmark are of several intervals, in ns: '
        || string_agg(DISTINCT b.interval_ns, ', ' ORDER BY b.interval_ns) || '; name one with benchmark_interval')
      ELSE true
    END AS is_clear
  FROM bars_of b
)
SELECT b.ts, max_by(b.price, b.seq) AS price
FROM bars_of b CROSS JOIN chosen c
WHERE c.is_clear
GROUP BY b.ts
UNION ALL
SELECT p.ts, p.price FROM benchmark_prices() p
WHERE benchmark IS NULL AND isfinite(p.price) AND p.price > 0;

-- The points of a run with what its figures rest on, from equity that is sampled once.
--
-- benchmark_ret  what the benchmark returned over the same period, between the last prices at both ends, as a price
--                counts from its instant; NULL at the base point, without such prices, and of periods that begin at or
--                after the last price
-- basis          at the base point what there is once of its series, a list of one; NULL at all others:
--   n, from_ts, to_ts, years, final_wealth  number of returns, and the ends of the series
--   P               periods of a year: `periods` is a number or 'data', which divides the returns by the years between
--                   the first point and the last; without it P is 252 for session days, 365 for filled ones, and under
--                   'bars' what 365 days hold of the step that is met most often
--   rp              the risk-free rate of one period
--   alike           how far apart two equal returns may come out: equity is known to the ninth decimal, and a double to
--                   its last bits
--   benchmark_alike the same of the benchmark's
CREATE OR REPLACE MACRO measured_points(
  instance, run, base := 'deposit', session := 'utc', fill := false, periods := NULL, rf := 0.0,
  benchmark := NULL, benchmark_venue := NULL, benchmark_interval := NULL
) AS TABLE
WITH points AS MATERIALIZED (
  FROM session_points(instance, run, base := base, session := session, fill := fill)
),
common AS (
  SELECT c.series, arg_min(c.step, (-c.times, c.step)) AS step
  FROM (
    SELECT p.series, epoch_ns(p.ts) - epoch_ns(p.begins) AS step, count(*) AS times
    FROM points p
    WHERE session = 'bars' AND periods IS NULL AND p.ts > p.begins
    GROUP BY ALL
  ) c
  GROUP BY ALL
),
sums AS (
  SELECT p.series, max(p.i) AS n, min(p.ts) AS from_ts, max(p.ts) AS to_ts, max_by(p.wealth, p.i) AS final_wealth,
    2 * (1e-9 / min(CASE WHEN p.value > 0 THEN p.value END) + pow(2, -50)) AS alike,
    (epoch_ns(max(p.ts)) - epoch_ns(min(p.ts))) / 31557600e9 AS years
  FROM points p
  GROUP BY ALL
),
yearly AS (
  SELECT s.*,
    CASE
      WHEN CAST(periods AS VARCHAR) = 'data' THEN s.n / nullif(s.years, 0)
      WHEN periods IS NOT NULL THEN CAST(periods AS DOUBLE)
      WHEN session = 'bars' THEN 31536000e9 / c.step
      WHEN fill THEN 365
      ELSE 252
    END AS P
  FROM sums s LEFT JOIN common c USING (series)
),
prices AS MATERIALIZED (
  FROM benchmark_series(instance, run, benchmark := benchmark, benchmark_venue := benchmark_venue,
    benchmark_interval := benchmark_interval)
),
last_of AS (
  SELECT max(b.ts) AS ts, 2 * (1e-9 / min(b.price) + pow(2, -50)) AS alike FROM prices b
),
-- without prices nothing is looked up
instants AS (
  SELECT DISTINCT p.ts FROM points p WHERE (SELECT l.ts FROM last_of l) IS NOT NULL
),
priced AS (
  SELECT i.ts, b.price FROM instants i ASOF JOIN prices b ON i.ts >= b.ts
)
SELECT p.*,
  CASE WHEN p.begins < l.ts THEN e.price / nullif(b.price, 0) - 1 END AS benchmark_ret,
  CASE WHEN p.i = 0 THEN [{
    'account': p.account, 'portfolio': p.portfolio, 'currency': p.currency, 'base_is': p.base_is, 'n': y.n,
    'from_ts': y.from_ts, 'to_ts': y.to_ts, 'years': y.years, 'final_wealth': y.final_wealth, 'P': y.P,
    'rp': pow(1 + rf, 1 / y.P) - 1, 'alike': y.alike, 'benchmark_alike': l.alike
  }] END AS basis
FROM points p JOIN yearly y USING (series) CROSS JOIN last_of l
LEFT JOIN priced b ON p.begins = b.ts
LEFT JOIN priced e ON p.ts = e.ts;

-- The returns of a run paired with those of a benchmark.
CREATE OR REPLACE MACRO benchmark_returns(
  instance, run, base := 'deposit', session := 'utc', fill := false,
  benchmark := NULL, benchmark_venue := NULL, benchmark_interval := NULL
) AS TABLE
SELECT p.account, p.portfolio, p.currency, p.i, p.ts, p.ret, p.benchmark_ret
FROM measured_points(instance, run, base := base, session := session, fill := fill,
  benchmark := benchmark, benchmark_venue := benchmark_venue, benchmark_interval := benchmark_interval) p
WHERE p.i > 0 AND p.benchmark_ret IS NOT NULL
ORDER BY p.series, p.i;
