-- The first of some texts that is not NULL.
CREATE OR REPLACE MACRO first_reason(reasons) AS list_filter(reasons, lambda reason: reason IS NOT NULL)[1];

-- One figure, with the first of the reasons that hold; its formula is for where none does. It stands here once: a macro
-- is text, which DuckDB plans as often as it stands there.
CREATE OR REPLACE MACRO figure(metric, unit, convention, value, reasons) AS {
  'metric': metric,
  'unit': unit,
  'convention': convention,
  'value': CASE WHEN first_reason(reasons) IS NULL THEN CAST(value AS DOUBLE) END,
  'reason': first_reason(reasons)
};

-- What a figure says: its value, or NULL and the reason.
CREATE OR REPLACE MACRO figure_value(figure) AS
  CASE WHEN figure.reason IS NULL AND isfinite(figure.value) THEN figure.value + 0.0 END;
CREATE OR REPLACE MACRO figure_reason(figure) AS
  coalesce(figure.reason, CASE WHEN isfinite(figure.value) THEN NULL ELSE 'not a finite number' END);

CREATE OR REPLACE MACRO unpaired(is_given, pairs) AS
  CASE
    WHEN NOT is_given THEN 'no benchmark'
    WHEN coalesce(pairs, 0) < 2 THEN 'fewer than 2 periods in common with the benchmark'
  END;

-- Every figure of a run's return series, a row each: the value, or NULL and the reason. Formulas are those of the
-- metrics' conventions. x is a return (its logarithm under log_returns), e the return less the rate without risk.
CREATE OR REPLACE MACRO performance(
  instance, run, base := 'deposit', session := 'utc', fill := false, periods := NULL, rf := 0.0,
  log_returns := false, psr_benchmark := 0.0, omega_return := 0.0,
  benchmark := NULL, benchmark_venue := NULL, benchmark_interval := NULL
) AS TABLE
WITH points AS MATERIALIZED (
  SELECT p.series, p.i, p.day, p.ts, p.wealth, p.ret, p.benchmark_ret AS other, p.basis,
    CASE WHEN log_returns THEN ln(nullif(greatest(1 + p.ret, 0), 0)) ELSE p.ret END AS x
  FROM measured_points(instance, run, base := base, session := session, fill := fill, periods := periods, rf := rf,
    benchmark := benchmark, benchmark_venue := benchmark_venue, benchmark_interval := benchmark_interval) p
),
basis AS (
  SELECT p.series, unnest(p.basis[1]), pow(1 + omega_return, 1 / p.basis[1].P) - 1 AS target
  FROM points p
  WHERE p.i = 0
),
waters AS (
  SELECT p.series, p.wealth,
    max(p.wealth) OVER w AS top,
    epoch_ns(lead(p.ts) OVER w) - epoch_ns(p.ts) AS lasts
  FROM points p
  WINDOW w AS (PARTITION BY p.series ORDER BY p.i)
),
depths AS (
  SELECT w.series,
    min(w.wealth / w.top - 1) AS deepest,
    sum(CASE WHEN w.wealth < w.top THEN w.lasts ELSE 0 END) / nullif(sum(w.lasts), 0) AS under_water,
    sum((w.wealth / w.top - 1) * (w.wealth / w.top - 1)) AS squared_below
  FROM waters w
  GROUP BY ALL
),
-- returns that rounding alone sets apart are the same
moments AS (
  SELECT p.series,
    avg(p.x) AS mean,
    CASE WHEN max(p.x) - min(p.x) <= any_value(b.alike) THEN 0 ELSE stddev_samp(p.x) END AS deviation,
    CASE WHEN min(p.x - b.rp) >= -any_value(b.alike) THEN 0 ELSE avg(pow(least(p.x - b.rp, 0), 2)) END AS downside,
    avg(p.x - b.rp) AS mean_excess,
    sum(greatest(p.x - b.target, 0)) AS above_target,
    CASE WHEN min(p.x - b.target) >= -any_value(b.alike) THEN 0 ELSE sum(greatest(b.target - p.x, 0)) END AS below_target,
    quantile_cont(p.x, [0.05, 0.95]) AS tails,
    -- the last of the floor(0.05 (n - 1)) + 1 smallest
    quantile_disc(p.x, 0.05) AS edge,
    count(p.x) AS xs
  FROM points p JOIN basis b USING (series)
  WHERE p.i > 0
  GROUP BY ALL
),
-- separate, because they use the values above
shapes AS (
  SELECT p.series,
    -- around the mean, because sums of powers would lose small returns far from zero
    skewness(p.x - m.mean) FILTER (WHERE m.deviation > 0) AS g1,
    kurtosis(p.x - m.mean) FILTER (WHERE m.deviation > 0) AS g2,
    kurtosis_pop(p.x - m.mean) FILTER (WHERE m.deviation > 0) AS g2_population,
    avg(pow(p.x - m.mean, 3)) / pow(nullif(avg(pow(p.x - m.mean, 2)), 0), 1.5) AS g1_population,
    -- those that tie with the edge count as often as there is room for them
    (coalesce(sum(p.x) FILTER (WHERE p.x < m.edge), 0)
      + (any_value((m.xs - 1) // 20 + 1) - count(*) FILTER (WHERE p.x < m.edge)) * any_value(m.edge))
      / any_value((m.xs - 1) // 20 + 1) AS worst_mean
  FROM points p JOIN moments m USING (series)
  WHERE p.i > 0
  GROUP BY ALL
),
trends AS (
  SELECT p.series, regr_r2(ln(p.wealth), p.i) AS stability
  FROM points p JOIN basis b USING (series)
  WHERE p.i > 0 AND b.final_wealth > 0
  GROUP BY ALL
  HAVING min(p.wealth) < max(p.wealth)
),
days AS (
  SELECT p.series, p.day, max_by(p.wealth, p.i) AS wealth FROM points p WHERE p.i > 0 GROUP BY ALL
),
last_of AS (
  SELECT d.series, unit.name, date_trunc(unit.name, d.day) AS part, max_by(d.wealth, d.day) AS wealth
  FROM days d, (VALUES ('day'), ('month'), ('year')) unit(name)
  GROUP BY ALL
),
part_returns AS (
  SELECT l.series, l.name,
    l.wealth / coalesce(lag(l.wealth) OVER (PARTITION BY l.series, l.name ORDER BY l.part), 1) - 1 AS ret
  FROM last_of l
),
extremes AS (
  SELECT p.series,
    max(p.ret) FILTER (WHERE p.name = 'day') AS best_day, min(p.ret) FILTER (WHERE p.name = 'day') AS worst_day,
    max(p.ret) FILTER (WHERE p.name = 'month') AS best_month, min(p.ret) FILTER (WHERE p.name = 'month') AS worst_month,
    max(p.ret) FILTER (WHERE p.name = 'year') AS best_year, min(p.ret) FILTER (WHERE p.name = 'year') AS worst_year
  FROM part_returns p
  GROUP BY ALL
),
against AS (
  SELECT p.series, count(*) AS paired,
    CASE WHEN max(p.other) - min(p.other) > any_value(b.benchmark_alike) THEN regr_slope(p.ret, p.other) END AS beta,
    avg(p.ret) AS a_mean, avg(p.other) AS other_mean, avg(p.ret - p.other) AS active,
    CASE WHEN max(p.ret - p.other) - min(p.ret - p.other) > any_value(b.alike + b.benchmark_alike)
      THEN stddev_samp(p.ret - p.other) END AS tracking,
    count(*) FILTER (WHERE p.other > 0) AS ups, count(*) FILTER (WHERE p.other < 0) AS downs,
    product(1 + p.ret) FILTER (WHERE p.other > 0) AS up, product(1 + p.other) FILTER (WHERE p.other > 0) AS other_up,
    product(1 + p.ret) FILTER (WHERE p.other < 0) AS down, product(1 + p.other) FILTER (WHERE p.other < 0) AS other_down
  FROM points p JOIN basis b USING (series)
  WHERE p.i > 0 AND p.other IS NOT NULL
  GROUP BY ALL
),
priced AS (
  SELECT EXISTS (FROM benchmark_prices()) OR benchmark IS NOT NULL AS is_given
),
facts AS (
  SELECT b.*, m.* EXCLUDE (series, tails), m.tails[1] AS q05, m.tails[2] AS q95, d.* EXCLUDE (series),
    s.* EXCLUDE (series), t.stability, x.* EXCLUDE (series), a.* EXCLUDE (series), g.is_given,
    m.mean_excess / nullif(m.deviation, 0) AS ratio
  FROM basis b
  LEFT JOIN moments m USING (series)
  LEFT JOIN depths d USING (series)
  LEFT JOIN shapes s USING (series)
  LEFT JOIN trends t USING (series)
  LEFT JOIN extremes x USING (series)
  LEFT JOIN against a USING (series)
  CROSS JOIN priced g
),
reasons AS (
  SELECT f.*,
    'P ' || printf('%.10g', f.P) AS per_year,
    'base ' || f.base_is || CASE WHEN log_returns THEN ', log returns' ELSE '' END AS kind,
    CASE WHEN f.final_wealth <= 0 THEN 'equity reached zero at ' || strftime(f.to_ts, '%Y-%m-%dT%H:%M:%S.%n') || 'Z' END AS zero,
    CASE WHEN f.n < 1 THEN 'no return' END AS none,
    CASE WHEN f.n < 2 THEN 'fewer than 2 returns' END AS few,
    CASE WHEN f.deviation = 0 THEN 'no return differs from another' END AS constant
  FROM facts f
),
-- each with the first reason that there is none
figures AS (
  SELECT r.account, r.portfolio, r.currency, r.n, r.paired, r.from_ts, r.to_ts, r.kind, unnest([
    figure('total_return', 'ratio', 'last wealth / first - 1', r.final_wealth - 1, [r.none]),
    figure('cagr', 'per year', r.per_year || ', years n / P', pow(greatest(r.final_wealth, 0), r.P / nullif(r.n, 0)) - 1,
      [r.none, r.zero]),
    figure('cagr_clock', 'per year', 'years elapsed / 365.25 d', pow(greatest(r.final_wealth, 0), 1 / nullif(r.years, 0)) - 1,
      [r.none, r.zero]),
    figure('volatility', 'per year', 'ddof 1, ' || r.per_year, r.deviation * sqrt(r.P), [r.few, r.zero]),
    figure('downside_deviation', 'per year', 'over all returns, ' || r.per_year, sqrt(r.downside) * sqrt(r.P),
      [r.none, r.zero]),
    figure('sharpe', 'ratio, per year', 'ddof 1, ' || r.per_year || ', rf ' || rf, r.ratio * sqrt(r.P),
      [r.few, r.zero, r.constant]),
    figure('sortino', 'ratio, per year', r.per_year || ', rf ' || rf, r.mean_excess * sqrt(r.P) / nullif(sqrt(r.downside), 0),
      [r.few, r.zero, CASE WHEN r.downside = 0 THEN 'no losing period' END]),
    figure('calmar', 'ratio', r.per_year || ', whole run',
      (pow(greatest(r.final_wealth, 0), r.P / nullif(r.n, 0)) - 1) / nullif(-r.deepest, 0),
      [r.none, r.zero, CASE WHEN r.deepest = 0 THEN 'no drawdown' END]),
    figure('omega', 'ratio', 'required ' || omega_return || ' a year', r.above_target / nullif(r.below_target, 0),
      [r.few, r.zero, CASE WHEN r.below_target = 0 THEN 'no losing period' END]),
    figure('tail_ratio', 'ratio', 'linear quantiles', abs(r.q95) / nullif(abs(r.q05), 0),
      [r.few, r.zero, CASE WHEN r.below_target = 0 AND r.q05 >= 0 THEN 'no losing period' END,
        CASE WHEN r.q05 = 0 THEN 'the 5 % quantile is zero' END]),
    figure('skewness', 'number', 'G1, bias-corrected', r.g1,
      [CASE WHEN r.n < 3 THEN 'fewer than 3 returns' END, r.zero, r.constant]),
    figure('skewness_population', 'number', 'g1', r.g1_population,
      [CASE WHEN r.n < 3 THEN 'fewer than 3 returns' END, r.zero, r.constant]),
    figure('kurtosis', 'number', 'G2, excess, bias-corrected', r.g2,
      [CASE WHEN r.n < 4 THEN 'fewer than 4 returns' END, r.zero, r.constant]),
    figure('kurtosis_population', 'number', 'g2, excess', r.g2_population,
      [CASE WHEN r.n < 4 THEN 'fewer than 4 returns' END, r.zero, r.constant]),
    figure('var', 'ratio', 'historical, 5 %, linear quantile', r.q05, [r.few, r.zero]),
    figure('var_normal', 'ratio', 'mean + z sd, 5 %, ddof 1', r.mean - 1.6448536269514722 * r.deviation, [r.few, r.zero]),
    figure('cvar', 'ratio', 'historical, 5 %', r.worst_mean, [r.few, r.zero]),
    figure('max_drawdown', 'ratio', 'base point included', r.deepest, [r.none]),
    figure('time_under_water', 'ratio', 'of the time, a point counts until the next', r.under_water, [r.none]),
    figure('ulcer_index', 'ratio', 'n - 1', sqrt(r.squared_below / nullif(r.n - 1, 0)), [r.few]),
    figure('stability', 'ratio', 'R² of log wealth', r.stability,
      [r.few, r.zero, CASE WHEN r.stability IS NULL THEN 'wealth does not change' END]),
    figure('psr', 'probability', 'benchmark ' || psr_benchmark || ' a year, G1 and G2',
      normal_cdf((r.ratio - psr_benchmark / sqrt(r.P)) * sqrt(r.n - 1)
        / sqrt(nullif(greatest(1 - r.g1 * r.ratio + (r.g2 + 2) / 4 * r.ratio * r.ratio, 0), 0))),
      [CASE WHEN r.n < 4 THEN 'fewer than 4 returns' END, r.zero, r.constant]),
    figure('best_day', 'ratio', 'compounded', r.best_day, [r.none]),
    figure('worst_day', 'ratio', 'compounded', r.worst_day, [r.none]),
    figure('best_month', 'ratio', 'compounded', r.best_month, [r.none]),
    figure('worst_month', 'ratio', 'compounded', r.worst_month, [r.none]),
    figure('best_year', 'ratio', 'compounded', r.best_year, [r.none]),
    figure('worst_year', 'ratio', 'compounded', r.worst_year, [r.none]),
    figure('alpha', 'per year', 'compounded, ' || r.per_year || ', rf ' || rf,
      pow(1 + (r.a_mean - r.rp) - r.beta * (r.other_mean - r.rp), r.P) - 1, [r.none, unpaired(r.is_given, r.paired), r.zero,
        CASE WHEN r.beta IS NULL THEN 'the benchmark does not change' END]),
    figure('beta', 'ratio', 'paired periods', r.beta,
      [r.none, unpaired(r.is_given, r.paired), r.zero, CASE WHEN r.beta IS NULL THEN 'the benchmark does not change' END]),
    figure('information_ratio', 'ratio', 'ddof 1, per period', r.active / r.tracking,
      [r.none, unpaired(r.is_given, r.paired), r.zero, CASE WHEN r.tracking IS NULL THEN 'no difference from the benchmark varies' END]),
    figure('information_ratio_annualised', 'ratio, per year', 'ddof 1, ' || r.per_year, r.active / r.tracking * sqrt(r.P),
      [r.none, unpaired(r.is_given, r.paired), r.zero, CASE WHEN r.tracking IS NULL THEN 'no difference from the benchmark varies' END]),
    figure('capture_up', 'ratio', r.per_year,
      (pow(greatest(r.up, 0), r.P / nullif(r.ups, 0)) - 1) / nullif(pow(r.other_up, r.P / nullif(r.ups, 0)) - 1, 0),
      [r.none, unpaired(r.is_given, r.paired), r.zero, CASE WHEN r.ups = 0 THEN 'the benchmark never rises' END]),
    figure('capture_down', 'ratio', r.per_year,
      (pow(greatest(r.down, 0), r.P / nullif(r.downs, 0)) - 1) / nullif(pow(r.other_down, r.P / nullif(r.downs, 0)) - 1, 0),
      [r.none, unpaired(r.is_given, r.paired), r.zero, CASE WHEN r.downs = 0 THEN 'the benchmark never falls' END])
  ]) AS f
  FROM reasons r
)
SELECT f.account, f.portfolio, f.currency, f.f.metric, figure_value(f.f) AS value, figure_reason(f.f) AS reason, f.f.unit,
  f.f.convention || ', ' || f.kind AS convention,
  CASE WHEN f.f.metric IN (
    'alpha', 'beta', 'information_ratio', 'information_ratio_annualised', 'capture_up', 'capture_down')
    THEN coalesce(f.paired, 0) ELSE f.n END AS n,
  f.from_ts, f.to_ts
FROM figures f;
