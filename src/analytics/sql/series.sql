-- The return series of a run, one for each account, portfolio and currency. Times are UTC; the names of parameters
-- hide columns of the same name, which is why no column here has one of theirs.

-- 'utc', 'bars', 'America/New_York' or 'America/New_York 17:00': the zone, and where in the day a session ends.
CREATE OR REPLACE MACRO session_zone(session) AS
  CASE WHEN lower(session) IN ('utc', 'bars') THEN 'UTC' ELSE regexp_replace(session, '\s+([01]\d|2[0-3]):[0-5]\d$', '') END;

CREATE OR REPLACE MACRO session_cut(session) AS
  CASE
    WHEN regexp_matches(session, '\s([01]\d|2[0-3]):[0-5]\d$')
      THEN CAST(session[-5:-4] AS INTEGER) * 60 + CAST(session[-2:] AS INTEGER)
    ELSE 0
  END;

-- Sessions are (open, close]: a row at the cut belongs to the session that ends. Named after the day that most of it
-- lies in, so that 17:00 in New York ends the day and begins the next.
CREATE OR REPLACE MACRO session_day(moment, session) AS
  CAST(
    timezone(session_zone(session), timezone('UTC', make_timestamp((epoch_ns(moment) - 1) // 1000)))
      - to_minutes(session_cut(session)) AS DATE
  ) + CASE WHEN session_cut(session) > 720 THEN 1 ELSE 0 END;

-- The instant at which a session ends.
CREATE OR REPLACE MACRO session_close(day, session) AS
  CAST(
    timezone('UTC', timezone(session_zone(session),
      CAST(day + CASE WHEN session_cut(session) > 720 THEN 0 ELSE 1 END AS TIMESTAMP)
        + to_minutes(session_cut(session)))) AS TIMESTAMP_NS);

-- The sampled equity: the base point (i 0), then the last row of each session, or each instant under 'bars'. Ends at
-- the first point at which equity is not above zero.
--
-- value   equity, in the currency
-- flow    deposits and withdrawals since the point before: no return, taken at the end of its period
-- wealth  what one unit of the base point became, without the flows
-- ret     (value - flow) / the value before - 1; NULL at the base point
-- base_is what the base point is: 'deposit', what was deposited by the first row, at the run's start; else 'first', the
--         first session's last row (under 'bars' the first row), also where there is no such deposit
CREATE OR REPLACE MACRO session_points(instance, run, base := 'deposit', session := 'utc', fill := false) AS TABLE
WITH instants AS (
  SELECT e.account, e.portfolio, e.currency, e.ts_event AS ts, max_by(e.equity, e.seq) AS value
  FROM equity_f e
  WHERE e.instance_id = instance AND e.run_id = run
  GROUP BY ALL
),
ends AS (
  SELECT i.account, i.portfolio, i.currency, min(i.ts) AS first_ts,
    min(i.ts) FILTER (WHERE i.value <= 0) AS zero_ts
  FROM instants i
  GROUP BY ALL
),
transfers AS (
  SELECT e.account, e.portfolio, e.currency, e.ts_event AS ts, e.amount
  FROM events e
  WHERE e.instance_id = instance AND e.run_id = run AND e.amount IS NOT NULL
    AND e.kind IN ('account.deposit', 'account.withdrawal')
),
deposits AS (
  SELECT t.account, t.portfolio, t.currency, CAST(CAST(sum(t.amount) AS VARCHAR) AS DOUBLE) AS value
  FROM transfers t JOIN ends s USING (account, portfolio, currency)
  WHERE t.ts <= s.first_ts
  GROUP BY ALL
),
starts AS (
  SELECT s.*,
    CASE base
      WHEN 'deposit' THEN coalesce(d.value > 0, false)
      WHEN 'first' THEN false
      ELSE error('base must be ''deposit'' or ''first''')
    END AS is_deposit, d.value AS deposit,
    (SELECT min(r.started) FROM runs r WHERE r.instance_id = instance AND r.run_id = run) AS started
  FROM ends s LEFT JOIN deposits d USING (account, portfolio, currency)
),
dated AS (
  SELECT i.*, session_day(i.ts, session) AS day
  FROM instants i JOIN ends s USING (account, portfolio, currency)
  WHERE s.zero_ts IS NULL OR i.ts <= s.zero_ts
),
keyed AS (
  SELECT d.*, CASE WHEN session = 'bars' THEN epoch_ns(d.ts) ELSE 0 END AS part FROM dated d
),
closes AS (
  SELECT k.account, k.portfolio, k.currency, k.day, max(k.ts) AS ts, max_by(k.value, k.ts) AS value
  FROM keyed k
  GROUP BY k.account, k.portfolio, k.currency, k.day, k.part
),
bases AS (
  SELECT s.account, s.portfolio, s.currency, s.is_deposit,
    CASE WHEN s.is_deposit THEN least(s.first_ts, coalesce(s.started, s.first_ts)) ELSE c.ts END AS ts,
    CASE WHEN s.is_deposit THEN s.deposit ELSE c.value END AS value,
    c.day,
    -- up to when transfers are part of the base
    CASE WHEN s.is_deposit THEN s.first_ts ELSE c.ts END AS moved_by
  FROM starts s JOIN (
    SELECT c.account, c.portfolio, c.currency, min(c.ts) AS ts, min(c.day) AS day, min_by(c.value, c.ts) AS value
    FROM closes c
    GROUP BY ALL
  ) c USING (account, portfolio, currency)
),
-- the point that is the base itself makes no return
after_base AS (
  SELECT c.*
  FROM closes c JOIN bases b USING (account, portfolio, currency)
  WHERE b.is_deposit OR c.ts > b.ts
),
flows AS (
  SELECT c.account, c.portfolio, c.currency, c.ts, CAST(CAST(sum(t.amount) AS VARCHAR) AS DOUBLE) AS flow
  FROM (
    SELECT t.* FROM transfers t JOIN bases b USING (account, portfolio, currency) WHERE t.ts > b.moved_by
  ) t
  ASOF JOIN after_base c
    ON t.account = c.account AND t.portfolio = c.portfolio AND t.currency = c.currency AND t.ts <= c.ts
  GROUP BY ALL
),
-- from the first session that ends behind the base point
firsts AS (
  SELECT b.account, b.portfolio, b.currency, b.value,
    CASE WHEN b.is_deposit THEN session_day(make_timestamp_ns(epoch_ns(b.ts) + 1), session) ELSE b.day + 1 END AS first_day
  FROM bases b
),
spans AS (
  SELECT c.account, c.portfolio, c.currency,
    generate_series(CAST(min(f.first_day) AS TIMESTAMP), CAST(max(c.day) AS TIMESTAMP), INTERVAL 1 DAY) AS midnights
  FROM after_base c JOIN firsts f USING (account, portfolio, currency)
  GROUP BY c.account, c.portfolio, c.currency
),
days AS (
  SELECT s.account, s.portfolio, s.currency, unnest(s.midnights) AS midnight FROM spans s
),
absent AS (
  SELECT d.account, d.portfolio, d.currency, CAST(d.midnight AS DATE) AS day
  FROM days d
  WHERE fill AND session <> 'bars'
  EXCEPT
  SELECT c.account, c.portfolio, c.currency, c.day FROM after_base c
),
filled AS (
  SELECT a.account, a.portfolio, a.currency, a.day, session_close(a.day, session) AS ts, c.value
  FROM absent a
  ASOF JOIN (
    SELECT c.account, c.portfolio, c.currency, c.day, c.value FROM after_base c
    UNION ALL
    SELECT f.account, f.portfolio, f.currency, f.first_day - 1, f.value FROM firsts f
  ) c
    ON a.account = c.account AND a.portfolio = c.portfolio AND a.currency = c.currency AND a.day >= c.day
),
points AS (
  SELECT b.account, b.portfolio, b.currency, CAST(NULL AS DATE) AS day, b.ts, b.value, 0.0::DOUBLE AS flow,
    false AS is_filled, true AS is_base
  FROM bases b
  UNION ALL
  SELECT c.account, c.portfolio, c.currency, c.day, c.ts, c.value, coalesce(f.flow, 0), false, false
  FROM after_base c LEFT JOIN flows f USING (account, portfolio, currency, ts)
  UNION ALL
  SELECT f.account, f.portfolio, f.currency, f.day, f.ts, f.value, 0, true, false FROM filled f
),
ordered AS (
  SELECT p.*,
    row_number() OVER w - 1 AS i,
    lag(p.value) OVER w AS before,
    first_value(p.value) OVER w AS first_value,
    -- equity under flows: what came in is taken out again by the factor of its period; exactly 1 without a flow
    coalesce(product(CASE WHEN p.flow = 0 THEN 1 ELSE (p.value - p.flow) / nullif(p.value, 0) END) OVER (
      w ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 1) AS factor,
    coalesce(max(CASE WHEN p.value <= 0 OR p.value - p.flow <= 0 THEN 1 ELSE 0 END) OVER (
      w ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS ended
  FROM points p
  WINDOW w AS (PARTITION BY p.account, p.portfolio, p.currency ORDER BY p.is_base DESC, p.ts)
)
SELECT o.account, o.portfolio, o.currency, o.i, o.day, o.ts, o.value, o.flow,
  (o.value - o.flow) / nullif(o.first_value, 0) * o.factor AS wealth,
  CASE WHEN o.i > 0 THEN (o.value - o.flow) / nullif(o.before, 0) - 1 END AS ret,
  o.is_filled,
  CASE WHEN b.is_deposit THEN 'deposit' ELSE 'first' END AS base_is
FROM ordered o JOIN bases b USING (account, portfolio, currency)
WHERE o.ended = 0;

-- The returns of a run, in order: what to hand to another library.
CREATE OR REPLACE MACRO session_returns(instance, run, base := 'deposit', session := 'utc', fill := false) AS TABLE
SELECT p.account, p.portfolio, p.currency, p.i, p.day, p.ts, p.value, p.flow, p.wealth, p.ret, p.is_filled, p.base_is
FROM session_points(instance, run, base := base, session := session, fill := fill) p
WHERE p.i > 0
ORDER BY p.account, p.portfolio, p.currency, p.i;

-- What every figure of a series rests on: its returns and ends, the periods of a year (P) and the rate without risk of
-- one period (rp). `periods` is a number or 'data', which divides the returns by the years between the first point and
-- the last; without it P is 252 for session days, 365 for filled ones, and under 'bars' what 365 days hold of the step
-- that is met most often.
CREATE OR REPLACE MACRO series_basis(
  instance, run, base := 'deposit', session := 'utc', fill := false, periods := NULL, rf := 0.0
) AS TABLE
WITH steps AS (
  SELECT p.*, epoch_ns(p.ts) - epoch_ns(lag(p.ts) OVER (
    PARTITION BY p.account, p.portfolio, p.currency ORDER BY p.i)) AS step
  FROM session_points(instance, run, base := base, session := session, fill := fill) p
),
common AS (
  SELECT c.account, c.portfolio, c.currency, arg_min(c.step, (-c.times, c.step)) AS step
  FROM (
    SELECT s.account, s.portfolio, s.currency, s.step, count(*) AS times
    FROM steps s
    WHERE s.step > 0
    GROUP BY ALL
  ) c
  GROUP BY ALL
),
sums AS (
  SELECT s.account, s.portfolio, s.currency, max(s.i) AS n, min(s.ts) AS from_ts, max(s.ts) AS to_ts,
    max_by(s.wealth, s.i) AS final_wealth, min(s.base_is) AS base_is,
    (epoch_ns(max(s.ts)) - epoch_ns(min(s.ts))) / 31557600e9 AS years
  FROM steps s
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
  FROM sums s LEFT JOIN common c USING (account, portfolio, currency)
)
SELECT y.*, pow(1 + rf, 1 / y.P) - 1 AS rp FROM yearly y;
