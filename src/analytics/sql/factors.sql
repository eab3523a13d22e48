-- The factors of a run by symbol, each with two small numbers that stand for its names: sorting and grouping by numbers
-- takes half the time. gid is of portfolio and factor, mid of symbol and venue.
CREATE OR REPLACE MACRO factor_names(instance, run) AS TABLE
SELECT n.portfolio, n.factor, n.symbol, n.venue, dense_rank() OVER (ORDER BY n.portfolio, n.factor) AS gid,
  dense_rank() OVER (ORDER BY n.symbol, n.venue) AS mid
FROM (
  SELECT DISTINCT f.portfolio, f.factor, f.symbol, f.venue FROM factors f WHERE f.instance_id = instance AND f.run_id = run
) n;

-- The closes that the factors of a market are judged by, numbered in the order of time.
CREATE OR REPLACE MACRO factor_closes(instance, run) AS TABLE
WITH markets AS (
  SELECT DISTINCT n.mid, m.bar_symbol, m.bar_venue, m.bar_interval
  FROM factor_names(instance, run) n JOIN run_markets(instance, run, of := 'factors') m USING (symbol, venue)
),
closes AS (
  SELECT m.mid, b.ts_event AS ts, max_by(b.close, b.seq) AS close
  FROM bars_f b
  JOIN markets m ON m.bar_symbol = b.symbol AND m.bar_venue = b.venue AND m.bar_interval = b.interval_ns
  WHERE b.instance_id = instance AND b.run_id = run
  GROUP BY m.mid, b.ts_event
)
SELECT c.mid, row_number() OVER (PARTITION BY c.mid ORDER BY c.ts) AS i, c.ts, c.close FROM closes c;

-- Horizons in bars: 1, 5 and 20 unless they are given. (No list is a default here: DuckDB 1.4 takes none.)
CREATE OR REPLACE MACRO horizon_values(horizons) AS TABLE
SELECT CASE WHEN h.horizon >= 1 THEN h.horizon ELSE error('horizons must be whole numbers of bars from 1') END AS horizon
FROM (SELECT DISTINCT unnest(CAST(coalesce(horizons, [1, 5, 20]) AS BIGINT[])) AS horizon) h;

-- The finite values of factors by the bar that they belong to: the first that closes at their instant or later, of several
-- values the last.
--
-- i   number of the bar, by symbol and venue
-- ts  its close
CREATE OR REPLACE MACRO factor_at_bars(instance, run) AS TABLE
WITH closes AS (
  FROM factor_closes(instance, run)
),
finite AS (
  SELECT n.gid, n.mid, c.i, c.ts, f.value, f.ts_event, f.seq
  FROM factors f
  JOIN factor_names(instance, run) n USING (portfolio, factor, symbol, venue)
  -- most values are of a close itself, which is found without sorting
  LEFT JOIN closes c ON c.mid = n.mid AND c.ts = f.ts_event
  WHERE f.instance_id = instance AND f.run_id = run AND isfinite(f.value)
),
placed AS (
  FROM finite f WHERE f.i IS NOT NULL
  UNION ALL
  SELECT f.gid, f.mid, c.i, c.ts, f.value, f.ts_event, f.seq
  FROM (FROM finite f WHERE f.i IS NULL) f ASOF JOIN closes c ON f.mid = c.mid AND f.ts_event <= c.ts
)
SELECT p.gid, p.mid, p.i, p.ts, max_by(p.value, CAST(epoch_ns(p.ts_event) AS HUGEINT) * 18446744073709551616 + p.seq) AS value
FROM placed p
GROUP BY p.gid, p.mid, p.i, p.ts;

-- The finite values of factors with the return that follows, over each of the horizons, in bars. It is counted from the
-- close of the bar that a value belongs to, so that no value knows any of it.
--
-- forward  close of the bar `horizon` bars later / close of the bar - 1
CREATE OR REPLACE MACRO factor_pairs(instance, run, horizons := NULL) AS TABLE
WITH moves AS (
  -- not a join of closes with closes, which a planner may begin by symbol alone
  SELECT c.mid, c.i, h.horizon,
    lead(c.close, h.horizon) OVER (PARTITION BY c.mid, h.horizon ORDER BY c.i) / nullif(c.close, 0) - 1 AS forward
  FROM factor_closes(instance, run) c CROSS JOIN horizon_values(horizons) h
)
SELECT v.gid, m.horizon, v.mid, v.i, v.ts, v.value, m.forward
FROM factor_at_bars(instance, run) v JOIN moves m USING (mid, i)
WHERE isfinite(m.forward);

-- The rank correlation of a factor with the return that follows, across symbols, at each instant at which min_symbols of
-- them or more have both. NULL where one of the two is the same for all.
CREATE OR REPLACE MACRO factor_ic_series(instance, run, horizons := NULL, min_symbols := 5) AS TABLE
WITH ranked AS (
  SELECT p.gid, p.horizon, p.ts, count(*) OVER (PARTITION BY p.gid, p.horizon, p.ts) AS symbols,
    rank() OVER v + (count(*) OVER (v RANGE BETWEEN CURRENT ROW AND CURRENT ROW) - 1) / 2 AS value_rank,
    rank() OVER f + (count(*) OVER (f RANGE BETWEEN CURRENT ROW AND CURRENT ROW) - 1) / 2 AS forward_rank
  FROM factor_pairs(instance, run, horizons := horizons) p
  WINDOW v AS (PARTITION BY p.gid, p.horizon, p.ts ORDER BY p.value),
    f AS (PARTITION BY p.gid, p.horizon, p.ts ORDER BY p.forward)
),
instants AS (
  SELECT r.gid, r.horizon, r.ts, count(*) AS symbols,
    CASE WHEN min(r.value_rank) < max(r.value_rank) AND min(r.forward_rank) < max(r.forward_rank)
      THEN corr(r.value_rank, r.forward_rank) END AS ic
  FROM ranked r
  WHERE r.symbols >= min_symbols
  GROUP BY r.gid, r.horizon, r.ts
)
SELECT n.portfolio, n.factor, i.horizon, i.ts, i.symbols, i.ic
FROM instants i JOIN (SELECT DISTINCT n.gid, n.portfolio, n.factor FROM factor_names(instance, run) n) n USING (gid)
ORDER BY n.portfolio, n.factor, i.horizon, i.ts;

-- The factors of a run by symbol, with why there is no return to compare them with, where there is none.
CREATE OR REPLACE MACRO factor_markets(instance, run) AS TABLE
SELECT f.portfolio, f.factor, f.symbol, f.venue, count(*) AS samples, count(*) FILTER (isnan(f.value)) AS nans,
  count(*) FILTER (isinf(f.value)) AS infinities, min(f.ts_event) AS from_ts, max(f.ts_event) AS to_ts,
  CASE
    WHEN any_value(m.sources) = 0 THEN 'no bars of the symbol'
    WHEN any_value(m.sources) > 1 THEN 'several bars of the symbol, and no row says which are meant'
    WHEN count(*) FILTER (isfinite(f.value)) = 0 THEN 'no finite value'
  END AS without
FROM factors f JOIN run_markets(instance, run, of := 'factors') m USING (symbol, venue)
WHERE f.instance_id = instance AND f.run_id = run
GROUP BY f.portfolio, f.factor, f.symbol, f.venue;

-- The information coefficient of each factor over each horizon, in bars, a row a figure. Across symbols where at any
-- instant min_symbols or more of them have the factor and the return: the mean over instants, with a Newey-West error, as
-- returns over several bars overlap. Else through time, for each symbol by itself, over returns that do not overlap.
CREATE OR REPLACE MACRO factor_ic(instance, run, horizons := NULL, min_symbols := 5) AS TABLE
WITH series AS (
  FROM factor_ic_series(instance, run, horizons := horizons, min_symbols := min_symbols)
),
instants AS (
  SELECT s.*, row_number() OVER (PARTITION BY s.portfolio, s.factor, s.horizon ORDER BY s.ts) AS k
  FROM series s
  WHERE s.ic IS NOT NULL
),
means AS (
  SELECT s.portfolio, s.factor, s.horizon, count(s.ic) AS n, avg(s.ic) AS mean,
    CASE WHEN min(s.ic) < max(s.ic) THEN stddev_samp(s.ic) ELSE 0 END AS deviation,
    avg(CASE WHEN s.ic > 0 THEN 1 WHEN s.ic <= 0 THEN 0 END) AS positive, min(s.ts) AS from_ts, max(s.ts) AS to_ts
  FROM series s
  GROUP BY ALL
),
deviations AS (
  SELECT i.portfolio, i.factor, i.horizon, i.k, i.ic - m.mean AS d
  FROM instants i JOIN means m USING (portfolio, factor, horizon)
),
lags AS (
  SELECT d.portfolio, d.factor, d.horizon, l.lag, d.d,
    lag(d.d, l.lag) OVER (PARTITION BY d.portfolio, d.factor, d.horizon, l.lag ORDER BY d.k) AS before
  FROM deviations d CROSS JOIN (SELECT unnest(range(1, list_max(coalesce(horizons, [1, 5, 20])))) AS lag) l
  WHERE l.lag < d.horizon
),
lagged AS (
  SELECT l.portfolio, l.factor, l.horizon, sum(2 * (1 - l.lag / l.horizon) * l.d * l.before) AS covariance
  FROM lags l
  GROUP BY ALL
),
across AS (
  SELECT m.*, sqrt(greatest((m.deviation * m.deviation * (m.n - 1) + coalesce(l.covariance, 0)) / nullif(m.n - 1, 0) / m.n, 0))
    AS error
  FROM means m LEFT JOIN lagged l USING (portfolio, factor, horizon)
),
across_figures AS (
  SELECT a.portfolio, a.factor, a.horizon, CAST(NULL AS VARCHAR) AS symbol, CAST(NULL AS VARCHAR) AS venue, unnest([
    counted_figure('ic', 'ratio', 'rank, mean over instants across symbols', a.mean,
      [CASE WHEN a.n = 0 THEN 'no time at which both factor and return vary' END], a.n, a.from_ts, a.to_ts),
    counted_figure('ic_deviation', 'ratio', 'rank, across symbols, ddof 1', a.deviation,
      [CASE WHEN a.n < 2 THEN 'fewer than 2 instants' END], a.n, a.from_ts, a.to_ts),
    counted_figure('ic_ratio', 'ratio', 'mean / deviation of the IC, across symbols, ddof 1', a.mean / nullif(a.deviation, 0),
      [CASE WHEN a.n < 2 THEN 'fewer than 2 instants' WHEN a.deviation = 0 THEN 'no IC differs from another' END], a.n,
      a.from_ts, a.to_ts),
    counted_figure('ic_t', 'ratio', CASE WHEN a.horizon = 1 THEN 'mean / its error, across symbols'
        ELSE 'mean / its Newey-West error with lag ' || (a.horizon - 1) || ', across symbols' END,
      a.mean / nullif(a.error, 0),
      [CASE WHEN a.n < 2 THEN 'fewer than 2 instants' WHEN a.deviation = 0 THEN 'no IC differs from another'
        WHEN a.n <= a.horizon THEN 'no more instants than bars of the horizon' END], a.n, a.from_ts, a.to_ts),
    counted_figure('ic_positive', 'ratio', 'share of instants with an IC above zero', a.positive,
      [CASE WHEN a.n = 0 THEN 'no time at which both factor and return vary' END], a.n, a.from_ts, a.to_ts)
  ]) AS f
  FROM across a
),
singles AS (
  SELECT n.gid, n.mid, h.horizon, n.portfolio, n.factor, n.symbol, n.venue
  FROM factor_names(instance, run) n CROSS JOIN horizon_values(horizons) h
  ANTI JOIN means m ON m.portfolio = n.portfolio AND m.factor = n.factor AND m.horizon = h.horizon
),
single AS (
  SELECT p.*, p.i - min(p.i) OVER (PARTITION BY p.gid, p.horizon, p.mid) AS since
  FROM factor_pairs(instance, run, horizons := horizons) p SEMI JOIN singles s USING (gid, horizon, mid)
),
ranked AS (
  SELECT s.gid, s.horizon, s.mid, s.ts,
    rank() OVER v + (count(*) OVER (v RANGE BETWEEN CURRENT ROW AND CURRENT ROW) - 1) / 2 AS value_rank,
    rank() OVER f + (count(*) OVER (f RANGE BETWEEN CURRENT ROW AND CURRENT ROW) - 1) / 2 AS forward_rank
  FROM single s
  WHERE s.since % s.horizon = 0
  WINDOW v AS (PARTITION BY s.gid, s.horizon, s.mid ORDER BY s.value),
    f AS (PARTITION BY s.gid, s.horizon, s.mid ORDER BY s.forward)
),
through AS (
  SELECT r.gid, r.horizon, r.mid, count(*) AS n,
    CASE WHEN min(r.value_rank) < max(r.value_rank) AND min(r.forward_rank) < max(r.forward_rank)
      THEN corr(r.value_rank, r.forward_rank) END AS ic,
    min(r.value_rank) = max(r.value_rank) AS is_constant, min(r.ts) AS from_ts, max(r.ts) AS to_ts
  FROM ranked r
  GROUP BY ALL
),
through_rows AS (
  SELECT s.portfolio, s.factor, s.horizon, s.symbol, s.venue, t.n, t.ic, coalesce(t.from_ts, f.from_ts) AS from_ts,
    coalesce(t.to_ts, f.to_ts) AS to_ts,
    CASE WHEN s.horizon = 1 THEN 'rank, through time'
      ELSE 'rank, through time, one bar in ' || s.horizon || ', so that returns do not overlap' END AS how,
    coalesce(f.without, CASE WHEN coalesce(t.n, 0) < 3 THEN 'fewer than 3 values with a return'
      WHEN t.is_constant THEN 'no value differs from another' WHEN t.ic IS NULL THEN 'no return differs from another' END) AS none
  FROM singles s
  JOIN factor_markets(instance, run) f USING (portfolio, factor, symbol, venue)
  LEFT JOIN through t USING (gid, horizon, mid)
),
through_figures AS (
  SELECT t.portfolio, t.factor, t.horizon, t.symbol, t.venue, unnest([
    counted_figure('ic', 'ratio', t.how, t.ic, [t.none], t.n, t.from_ts, t.to_ts),
    counted_figure('ic_t', 'ratio', t.how || ', IC √((n - 2) / (1 - IC²))',
      t.ic * sqrt((t.n - 2) / nullif(1 - t.ic * t.ic, 0)), [t.none,
        CASE WHEN abs(t.ic) > 1 - 1e-12 THEN 'the ranks are the same' END], t.n, t.from_ts, t.to_ts)
  ]) AS f
  FROM through_rows t
),
figures AS (
  FROM across_figures UNION ALL FROM through_figures
)
SELECT f.portfolio, f.factor, f.horizon, f.symbol, f.venue, f.f.told.metric AS metric, figure_value(f.f.told) AS value,
  figure_reason(f.f.told) AS reason, f.f.told.unit AS unit, f.f.told.convention AS convention, f.f.n AS n, f.f.from_ts AS from_ts,
  f.f.to_ts AS to_ts
FROM figures f
ORDER BY f.portfolio, f.factor, f.horizon, f.symbol, f.venue;

-- What followed on the lowest to the highest values of each factor: ntile(quantiles) across symbols at each instant at which
-- min_symbols, and as many as there are quantiles, or more have the factor and the return. A row a figure; those of no
-- quantile are of all. Instants count alike.
CREATE OR REPLACE MACRO factor_quantiles(instance, run, horizons := NULL, quantiles := 5, min_symbols := 5) AS TABLE
WITH counted AS (
  SELECT p.*, count(*) OVER (PARTITION BY p.gid, p.horizon, p.ts) AS symbols
  FROM factor_pairs(instance, run, horizons := horizons) p
),
placed AS (
  SELECT c.gid, c.horizon, c.mid, c.ts, c.forward,
    dense_rank() OVER (PARTITION BY c.gid, c.horizon ORDER BY c.ts) AS k,
    ntile(quantiles) OVER (PARTITION BY c.gid, c.horizon, c.ts ORDER BY c.value, c.mid) AS quantile,
    rank() OVER v + (count(*) OVER (v RANGE BETWEEN CURRENT ROW AND CURRENT ROW) - 1) / 2 AS value_rank
  FROM counted c
  WHERE c.symbols >= greatest(min_symbols, quantiles)
  WINDOW v AS (PARTITION BY c.gid, c.horizon, c.ts ORDER BY c.value)
),
followed AS (
  SELECT p.*, p.k > p.horizon AS has_before, b.quantile AS before, b.value_rank AS rank_before
  FROM placed p
  LEFT JOIN (SELECT b.*, b.k + b.horizon AS later FROM placed b) b
    ON b.gid = p.gid AND b.horizon = p.horizon AND b.mid = p.mid AND b.later = p.k
),
factor_of AS (
  SELECT DISTINCT n.gid, n.portfolio, n.factor FROM factor_names(instance, run) n
),
instants AS (
  SELECT f.gid, f.horizon, f.quantile, f.ts, avg(f.forward) AS forward,
    avg(CASE WHEN NOT f.has_before THEN NULL WHEN f.before IS DISTINCT FROM f.quantile THEN 1 ELSE 0 END) AS turnover
  FROM followed f
  GROUP BY ALL
),
sums AS (
  SELECT n.portfolio, n.factor, i.horizon, i.quantile, count(*) AS n, avg(i.forward) AS forward, count(i.turnover) AS turns,
    avg(i.turnover) AS turnover, min(i.ts) AS from_ts, max(i.ts) AS to_ts
  FROM instants i JOIN factor_of n USING (gid)
  GROUP BY ALL
),
spreads AS (
  SELECT s.portfolio, s.factor, s.horizon, max(s.n) AS n, max_by(s.forward, s.quantile) - min_by(s.forward, s.quantile) AS spread,
    min(s.from_ts) AS from_ts, max(s.to_ts) AS to_ts
  FROM sums s
  GROUP BY ALL
),
kept AS (
  SELECT f.gid, f.horizon, f.ts,
    CASE WHEN min(f.value_rank) < max(f.value_rank) AND min(f.rank_before) < max(f.rank_before)
      THEN corr(f.value_rank, f.rank_before) END AS correlation
  FROM followed f
  WHERE f.rank_before IS NOT NULL
  GROUP BY f.gid, f.horizon, f.ts
),
keeps AS (
  SELECT n.portfolio, n.factor, k.horizon, count(k.correlation) AS keeps, avg(k.correlation) AS correlation
  FROM kept k JOIN factor_of n USING (gid)
  GROUP BY ALL
),
named AS (
  SELECT f.portfolio, f.factor, h.horizon, min(f.from_ts) AS from_ts, max(f.to_ts) AS to_ts
  FROM factor_markets(instance, run) f CROSS JOIN horizon_values(horizons) h
  GROUP BY f.portfolio, f.factor, h.horizon
),
wholes AS (
  SELECT n.portfolio, n.factor, n.horizon, CAST(NULL AS BIGINT) AS quantile, s.n, s.spread, k.keeps, k.correlation,
    coalesce(s.from_ts, n.from_ts) AS from_ts, coalesce(s.to_ts, n.to_ts) AS to_ts,
    CASE WHEN s.n IS NULL
      THEN 'no time has ' || greatest(min_symbols, quantiles) || ' symbols with both factor and return' END AS none
  FROM named n LEFT JOIN spreads s USING (portfolio, factor, horizon) LEFT JOIN keeps k USING (portfolio, factor, horizon)
),
parts AS (
  SELECT w.portfolio, w.factor, w.horizon, q.quantile, s.n, s.forward, s.turns, s.turnover,
    coalesce(s.from_ts, w.from_ts) AS from_ts, coalesce(s.to_ts, w.to_ts) AS to_ts, w.none
  FROM wholes w CROSS JOIN (SELECT unnest(range(1, quantiles + 1)) AS quantile) q
  LEFT JOIN sums s ON s.portfolio = w.portfolio AND s.factor = w.factor AND s.horizon = w.horizon AND s.quantile = q.quantile
),
figures AS (
  SELECT w.portfolio, w.factor, w.horizon, w.quantile, unnest([
    counted_figure('quantile_spread', 'ratio', 'mean return of the highest quantile minus that of the lowest', w.spread,
      [w.none], w.n, w.from_ts, w.to_ts),
    counted_figure('rank_autocorrelation', 'ratio', 'mean over instants, with the ranks ' || w.horizon || ' before',
      w.correlation, [w.none, CASE WHEN coalesce(w.keeps, 0) = 0
        THEN 'no instants so far apart at which the factor varies' END], w.keeps, w.from_ts, w.to_ts)
  ]) AS f
  FROM wholes w
  UNION ALL
  SELECT p.portfolio, p.factor, p.horizon, p.quantile, unnest([
    counted_figure('quantile_return', 'ratio', 'mean over instants of the mean over symbols', p.forward, [p.none], p.n,
      p.from_ts, p.to_ts),
    counted_figure('quantile_turnover', 'ratio', 'share that was not in it at the instant ' || p.horizon || ' before, mean over instants', p.turnover,
      [p.none, CASE WHEN p.turns = 0 THEN 'no instants so far apart' END], p.turns, p.from_ts, p.to_ts)
  ]) AS f
  FROM parts p
)
SELECT f.portfolio, f.factor, f.horizon, f.quantile, f.f.told.metric AS metric, figure_value(f.f.told) AS value,
  figure_reason(f.f.told) AS reason, f.f.told.unit AS unit, f.f.told.convention AS convention, f.f.n AS n, f.f.from_ts AS from_ts,
  f.f.to_ts AS to_ts
FROM figures f
ORDER BY f.portfolio, f.factor, f.horizon, f.quantile NULLS FIRST;

-- What values a factor has, a row a figure: for each symbol, and for all of them where symbol is NULL. Coverage is of the
-- bars of the symbol; the distribution is of finite values.
CREATE OR REPLACE MACRO factor_coverage(instance, run) AS TABLE
WITH markets AS (
  FROM factor_markets(instance, run)
),
names AS (
  FROM factor_names(instance, run)
),
bars_of AS (
  SELECT n.symbol, n.venue, any_value(c.bars) AS bars
  FROM (SELECT c.mid, count(*) AS bars FROM factor_closes(instance, run) c GROUP BY c.mid) c JOIN names n USING (mid)
  GROUP BY n.symbol, n.venue
),
stepped AS (
  SELECT v.*, lag(v.i) OVER w AS i_before, lag(v.value) OVER w AS value_before
  FROM factor_at_bars(instance, run) v
  WINDOW w AS (PARTITION BY v.gid, v.mid ORDER BY v.i)
),
steps AS (
  SELECT s.gid, s.mid, s.value, CASE WHEN s.i_before = s.i - 1 THEN s.value_before END AS before
  FROM stepped s
),
stepped_by AS (
  SELECT s.gid, s.mid, count(*) AS covered, count(s.before) AS pairs,
    -- beyond, squares are no doubles
    CASE WHEN min(s.value) FILTER (s.before IS NOT NULL) < max(s.value) FILTER (s.before IS NOT NULL) AND min(s.before) < max(s.before)
      THEN corr(s.value, s.before) FILTER (greatest(abs(s.value), abs(s.before)) < 1e70) END AS autocorrelation
  FROM steps s
  GROUP BY s.gid, s.mid
),
covers AS (
  SELECT n.portfolio, n.factor, n.symbol, n.venue, s.* FROM stepped_by s JOIN names n USING (gid, mid)
),
counts AS (
  SELECT m.portfolio, m.factor, m.symbol, m.venue, sum(m.samples) AS samples, sum(m.nans) AS nans,
    sum(m.infinities) AS infinities, sum(b.bars) AS bars, sum(coalesce(c.covered, 0)) AS covered, any_value(c.pairs) AS pairs,
    any_value(c.autocorrelation) AS autocorrelation, min(m.from_ts) AS from_ts, max(m.to_ts) AS to_ts,
    CASE WHEN count(b.bars) < count(*) THEN max(m.without) END AS without
  FROM markets m
  LEFT JOIN bars_of b USING (symbol, venue)
  LEFT JOIN covers c USING (portfolio, factor, symbol, venue)
  GROUP BY GROUPING SETS ((m.portfolio, m.factor), (m.portfolio, m.factor, m.symbol, m.venue))
),
finite AS (
  SELECT f.portfolio, f.factor, f.symbol, f.venue, f.value
  FROM factors f
  WHERE f.instance_id = instance AND f.run_id = run AND isfinite(f.value)
),
ranges AS (
  SELECT f.portfolio, f.factor, f.symbol, f.venue, count(*) AS n, min(f.value) AS lowest, max(f.value) AS highest,
    quantile_cont(f.value, [0.05, 0.5, 0.95]) AS at, avg(f.value) FILTER (abs(f.value) < 1e70) AS mean
  FROM finite f
  GROUP BY GROUPING SETS ((f.portfolio, f.factor), (f.portfolio, f.factor, f.symbol, f.venue))
),
-- centred, because DuckDB sums powers of its input, which would lose all precision for values that are large and close
-- together, such as moving averages
centred AS (
  SELECT r.portfolio, r.factor, r.symbol, r.venue, f.value - r.mean AS value
  FROM ranges r JOIN finite f ON f.portfolio = r.portfolio AND f.factor = r.factor
    AND (r.symbol IS NULL OR (f.symbol = r.symbol AND f.venue = r.venue))
  WHERE abs(f.value) < 1e70
),
-- separate, because they are undefined if all values are equal, and overflow doubles for very large values
shapes AS (
  SELECT c.portfolio, c.factor, c.symbol, c.venue, stddev_samp(c.value) AS deviation, skewness(c.value) AS g1,
    kurtosis(c.value) AS g2
  FROM centred c
  GROUP BY c.portfolio, c.factor, c.symbol, c.venue
  HAVING min(c.value) < max(c.value)
),
facts AS (
  SELECT c.*, r.n AS finite, r.lowest, r.highest, r.at, r.mean, s.deviation, s.g1, s.g2,
    CASE WHEN coalesce(r.n, 0) = 0 THEN 'no finite value' END AS none,
    CASE WHEN r.lowest = r.highest THEN 'no value differs from another' END AS constant,
    CASE WHEN greatest(abs(r.lowest), abs(r.highest)) >= 1e70 THEN 'values beyond 1e70' END AS large
  FROM counts c
  LEFT JOIN ranges r ON r.portfolio = c.portfolio AND r.factor = c.factor AND r.symbol IS NOT DISTINCT FROM c.symbol
    AND r.venue IS NOT DISTINCT FROM c.venue
  LEFT JOIN shapes s ON s.portfolio = c.portfolio AND s.factor = c.factor AND s.symbol IS NOT DISTINCT FROM c.symbol
    AND s.venue IS NOT DISTINCT FROM c.venue
),
figures AS (
  SELECT f.portfolio, f.factor, f.symbol, f.venue, unnest([
    counted_figure('samples', 'values', 'all', f.samples, [NULL], f.samples, f.from_ts, f.to_ts),
    counted_figure('nan_values', 'values', 'not a number', f.nans, [NULL], f.samples, f.from_ts, f.to_ts),
    counted_figure('infinite_values', 'values', 'infinite', f.infinities, [NULL], f.samples, f.from_ts, f.to_ts),
    counted_figure('coverage', 'ratio', 'bars with a finite value / bars of the symbol', f.covered / nullif(f.bars, 0),
      [f.without], f.bars, f.from_ts, f.to_ts),
    counted_figure('mean', 'number', 'of finite values', f.mean, [f.none, f.large], f.finite, f.from_ts, f.to_ts),
    counted_figure('deviation', 'number', 'of finite values, ddof 1', CASE WHEN f.constant IS NULL THEN f.deviation ELSE 0 END,
      [f.none, CASE WHEN f.finite < 2 THEN 'fewer than 2 finite values' END, f.large], f.finite, f.from_ts, f.to_ts),
    counted_figure('minimum', 'number', 'of finite values', f.lowest, [f.none], f.finite, f.from_ts, f.to_ts),
    counted_figure('p05', 'number', 'of finite values, linear quantile', f.at[1], [f.none], f.finite, f.from_ts, f.to_ts),
    counted_figure('median', 'number', 'of finite values', f.at[2], [f.none], f.finite, f.from_ts, f.to_ts),
    counted_figure('p95', 'number', 'of finite values, linear quantile', f.at[3], [f.none], f.finite, f.from_ts, f.to_ts),
    counted_figure('maximum', 'number', 'of finite values', f.highest, [f.none], f.finite, f.from_ts, f.to_ts),
    counted_figure('skewness', 'number', 'of finite values, G1, bias-corrected', f.g1,
      [f.none, CASE WHEN f.finite < 3 THEN 'fewer than 3 finite values' END, f.constant, f.large], f.finite, f.from_ts, f.to_ts),
    counted_figure('kurtosis', 'number', 'of finite values, G2, excess, bias-corrected', f.g2,
      [f.none, CASE WHEN f.finite < 4 THEN 'fewer than 4 finite values' END, f.constant, f.large], f.finite, f.from_ts, f.to_ts),
    counted_figure('autocorrelation', 'ratio', 'from one bar to the next', f.autocorrelation,
      [f.without, f.none,
        CASE WHEN coalesce(f.pairs, 0) < 3 THEN 'fewer than 3 bars with a value beside another' END, f.constant, f.large,
        CASE WHEN f.autocorrelation IS NULL THEN 'no value differs from another' END], f.pairs, f.from_ts, f.to_ts)
  ]) AS f
  FROM facts f
)
SELECT f.portfolio, f.factor, f.symbol, f.venue, f.f.told.metric AS metric, figure_value(f.f.told) AS value,
  figure_reason(f.f.told) AS reason, f.f.told.unit AS unit, f.f.told.convention AS convention, f.f.n AS n, f.f.from_ts AS from_ts,
  f.f.to_ts AS to_ts
FROM figures f
-- from the last value of one symbol to the first of another is no step
WHERE f.symbol IS NOT NULL OR f.f.told.metric <> 'autocorrelation'
ORDER BY f.portfolio, f.factor, f.symbol NULLS FIRST, f.venue;
