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

-- The greatest whole number that is not above a / b: DuckDB's own // goes toward zero, which before 1970 is later.
CREATE OR REPLACE MACRO floor_divide(a, b) AS a // b - CASE WHEN a % b < 0 THEN 1 ELSE 0 END;

-- Sessions are (open, close]: a row at the cut belongs to the session that ends. Named after the day that most of it
-- lies in, so that 17:00 in New York ends the day and begins the next.
CREATE OR REPLACE MACRO session_day(moment, session) AS
  CASE
    -- without the zone's calendar, which costs more than everything else done with a row
    WHEN lower(session) IN ('utc', 'bars') THEN CAST(make_timestamp(floor_divide(epoch_ns(moment) - 1, 1000)) AS DATE)
    ELSE CAST(
      timezone(session_zone(session), timezone('UTC', make_timestamp(floor_divide(epoch_ns(moment) - 1, 1000))))
        - to_minutes(session_cut(session)) AS DATE
    ) + CASE WHEN session_cut(session) > 720 THEN 1 ELSE 0 END
  END;

-- The instant at which a session ends.
CREATE OR REPLACE MACRO session_close(day, session) AS
  CAST(
    timezone('UTC', timezone(session_zone(session),
      CAST(day + CASE WHEN session_cut(session) > 720 THEN 0 ELSE 1 END AS TIMESTAMP)
        + to_minutes(session_cut(session)))) AS TIMESTAMP_NS);

-- The double nearest to an exact number. Above eighteen digits DuckDB's own cast rounds several times, and its text is
-- read rightly.
CREATE OR REPLACE MACRO in_double(exact) AS
  CASE WHEN TRY_CAST(regexp_extract(typeof(exact), '\d+') AS INTEGER) > 18 THEN CAST(CAST(exact AS VARCHAR) AS DOUBLE)
    ELSE CAST(exact AS DOUBLE) END;

-- The error for unclear rows. Callers of macros recognize it by this word, and report it in their own.
CREATE OR REPLACE MACRO unclear(message) AS 'unclear: ' || message;

CREATE OR REPLACE MACRO named(what, name) AS CASE WHEN name = '' THEN 'no ' || what ELSE what || ' ' || name END;

-- The sampled equity: the base point (i 0), then the last row of each session, or each instant under 'bars'. Ends at
-- the first point at which equity is not above zero.
--
-- series  number of the account, portfolio and currency, from 1
-- begins  the instant of the point before; NULL at the base point
-- value   equity, in the currency
-- flow    deposits and withdrawals since the point before: no return, taken at the end of its period
-- wealth  what one unit of the base point became, without the flows
-- ret     (value - flow) / the value before - 1; NULL at the base point
-- base_is what the base point is: 'deposit', what was deposited by the first row, at the run's start; else 'first', the
--         first session's last row (under 'bars' the first row), also where there is no such deposit
CREATE OR REPLACE MACRO session_points(instance, run, base := 'deposit', session := 'utc', fill := false) AS TABLE
WITH names AS (
  SELECT n.*, CAST(row_number() OVER (ORDER BY n.account, n.portfolio, n.currency) AS INTEGER) AS series
  FROM (
    SELECT DISTINCT e.account, e.portfolio, e.currency
    FROM equity e
    WHERE e.instance_id = instance AND e.run_id = run
  ) n
),
-- a row a session, under 'bars' a row an instant; of several rows at one instant the last counts
spells AS MATERIALIZED (
  SELECT n.series, session_day(e.ts_event, session) AS day, CASE WHEN session = 'bars' THEN e.ts_event END AS instant,
    min(e.ts_event) AS first_ts, max(e.ts_event) AS ts, max_by(e.equity, (e.ts_event, e.seq)) AS value
  FROM equity e JOIN names n USING (account, portfolio, currency)
  WHERE e.instance_id = instance AND e.run_id = run
  GROUP BY ALL
),
-- usually there is none, and no instant needs a separate look
zeros AS (
  SELECT i.series, min(i.ts) AS ts, min_by(i.value, i.ts) AS value
  FROM (
    SELECT n.series, e.ts_event AS ts, max_by(e.equity, e.seq) AS value
    FROM equity e JOIN names n USING (account, portfolio, currency)
    WHERE e.instance_id = instance AND e.run_id = run AND e.ts_event IN (
      SELECT z.ts_event FROM equity z WHERE z.instance_id = instance AND z.run_id = run AND z.equity <= 0)
    GROUP BY ALL
  ) i
  WHERE i.value <= 0
  GROUP BY ALL
),
ends AS (
  SELECT s.series, min(s.first_ts) AS first_ts FROM spells s GROUP BY ALL
),
portfolios AS (
  SELECT n.account, n.currency, CASE WHEN count(*) = 1 THEN min(n.series) END AS series
  FROM names n
  GROUP BY ALL
),
-- money booked on the account belongs to its only portfolio; money that fits no series must not be left out
transfers AS (
  SELECT e.ts_event AS ts, e.amount,
    CASE
      WHEN n.series IS NOT NULL THEN n.series
      WHEN e.portfolio = '' AND p.series IS NOT NULL THEN p.series
      ELSE error(unclear('the event with seq ' || e.seq || ', ' || e.kind || ', is of ' || named('account', e.account) || ', '
        || named('portfolio', e.portfolio) || ' and ' || named('currency', e.currency)
        || ', which no equity row has (table events, ' || strftime(e.ts_event, '%Y-%m-%dT%H:%M:%S.%n')
        || 'Z); only the gateway can say whose money it is, and without that there are no returns; no option sets it'))
    END AS series
  FROM events e
  LEFT JOIN names n ON n.account = e.account AND n.portfolio = e.portfolio AND n.currency = e.currency
  LEFT JOIN portfolios p ON p.account = e.account AND p.currency = e.currency
  WHERE e.instance_id = instance AND e.run_id = run AND e.amount IS NOT NULL
    AND e.kind IN ('account.deposit', 'account.withdrawal') AND EXISTS (SELECT 1 FROM names)
),
deposits AS (
  SELECT t.series, sum(t.amount) AS value
  FROM transfers t JOIN ends s USING (series)
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
  FROM ends s LEFT JOIN deposits d USING (series)
),
closes AS (
  SELECT s.series, s.day, CASE WHEN s.ts >= z.ts THEN z.ts ELSE s.ts END AS ts,
    CASE WHEN s.ts >= z.ts THEN z.value ELSE s.value END AS value
  FROM spells s LEFT JOIN zeros z USING (series)
  WHERE z.ts IS NULL OR s.first_ts <= z.ts
),
bases AS (
  SELECT s.series, s.is_deposit,
    CASE WHEN s.is_deposit THEN least(s.first_ts, coalesce(s.started, s.first_ts)) ELSE c.ts END AS ts,
    CASE WHEN s.is_deposit THEN s.deposit ELSE c.value END AS value,
    c.day,
    -- until then, transfers are part of the base
    CASE WHEN s.is_deposit THEN s.first_ts ELSE c.ts END AS moved_by
  FROM starts s JOIN (
    SELECT c.series, min(c.ts) AS ts, min(c.day) AS day, min_by(c.value, c.ts) AS value
    FROM closes c
    GROUP BY ALL
  ) c USING (series)
),
-- the point that is the base itself makes no return
after_base AS (
  SELECT c.*
  FROM closes c JOIN bases b USING (series)
  WHERE b.is_deposit OR c.ts > b.ts
),
moves AS (
  SELECT t.* FROM transfers t JOIN bases b USING (series) WHERE t.ts > b.moved_by
),
-- does not sort the points if there is nothing to look up
flows AS (
  SELECT c.series, c.ts, sum(t.amount) AS flow
  FROM moves t
  ASOF JOIN (SELECT c.* FROM after_base c WHERE (SELECT count(*) FROM moves) > 0) c ON t.series = c.series AND t.ts <= c.ts
  GROUP BY ALL
),
-- from the first session that ends after the base point
firsts AS (
  SELECT b.series, b.value,
    CASE WHEN b.is_deposit THEN session_day(make_timestamp_ns(epoch_ns(b.ts) + 1), session) ELSE b.day + 1 END AS first_day
  FROM bases b
),
spans AS (
  SELECT c.series,
    generate_series(CAST(min(f.first_day) AS TIMESTAMP), CAST(max(c.day) AS TIMESTAMP), INTERVAL 1 DAY) AS midnights
  FROM after_base c JOIN firsts f USING (series)
  WHERE fill AND session <> 'bars'
  GROUP BY c.series
),
days AS (
  SELECT s.series, unnest(s.midnights) AS midnight FROM spans s
),
absent AS (
  SELECT d.series, CAST(d.midnight AS DATE) AS day
  FROM days d
  EXCEPT
  SELECT c.series, c.day FROM after_base c
),
filled AS (
  SELECT a.series, a.day, session_close(a.day, session) AS ts, c.value
  FROM absent a
  ASOF JOIN (
    SELECT c.series, c.day, c.value FROM after_base c
    UNION ALL
    SELECT f.series, f.first_day - 1, f.value FROM firsts f
  ) c
    ON a.series = c.series AND a.day >= c.day
),
-- flows are subtracted exactly (net): in doubles a run that stands still would seem to move
points AS (
  SELECT b.series, CAST(NULL AS DATE) AS day, b.ts, in_double(b.value) AS value, 0.0::DOUBLE AS flow,
    in_double(b.value) AS net, false AS is_filled, true AS is_base
  FROM bases b
  UNION ALL
  SELECT c.series, c.day, c.ts, in_double(c.value), CASE WHEN f.flow IS NULL THEN 0 ELSE in_double(f.flow) END,
    CASE WHEN f.flow IS NULL THEN in_double(c.value) ELSE in_double(c.value - f.flow) END, false, false
  FROM after_base c LEFT JOIN flows f USING (series, ts)
  UNION ALL
  SELECT f.series, f.day, f.ts, in_double(f.value), 0, in_double(f.value), true, false FROM filled f
),
ordered AS MATERIALIZED (
  SELECT d.*,
    row_number() OVER w - 1 AS i,
    lag(d.ts) OVER w AS begins,
    lag(d.value) OVER w AS before,
    -- how many flows and base points lie before it; a count with a filter is counted again for each row
    sum(CASE WHEN d.is_base OR d.flow <> 0 THEN 1 ELSE 0 END) OVER (
      w ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS behind
  FROM points d
  WINDOW w AS (PARTITION BY d.series ORDER BY d.is_base DESC, d.ts)
),
lasts AS (
  SELECT o.series, min(o.i) AS i FROM ordered o WHERE o.value <= 0 OR o.net <= 0 GROUP BY ALL
),
breaks AS (
  SELECT o.series, o.i, o.value, o.net / nullif(lag(o.value) OVER (PARTITION BY o.series ORDER BY o.i), 0) AS grown
  FROM ordered o
  WHERE o.is_base OR o.flow <> 0
),
-- from each flow on, equity is compared with its value after it; factor is what one unit had become by then, exactly 1
-- without a flow
stretches AS (
  SELECT b.series, row_number() OVER w AS nth, b.value AS since,
    product(coalesce(b.grown, 1)) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS factor
  FROM breaks b
  WINDOW w AS (PARTITION BY b.series ORDER BY b.i)
)
SELECT n.account, n.portfolio, n.currency, o.series, o.i, o.day, o.begins, o.ts, o.value, o.flow,
  CASE WHEN o.i = 0 THEN 1 ELSE o.net / nullif(s.since, 0) * s.factor END AS wealth,
  CASE WHEN o.i > 0 THEN o.net / nullif(o.before, 0) - 1 END AS ret,
  o.is_filled,
  CASE WHEN b.is_deposit THEN 'deposit' ELSE 'first' END AS base_is
FROM ordered o JOIN bases b USING (series) JOIN names n USING (series)
LEFT JOIN lasts l USING (series)
LEFT JOIN stretches s ON s.series = o.series AND s.nth = o.behind
WHERE l.i IS NULL OR o.i <= l.i;

-- The returns of a run, in order: what to hand to another library.
CREATE OR REPLACE MACRO session_returns(instance, run, base := 'deposit', session := 'utc', fill := false) AS TABLE
SELECT p.account, p.portfolio, p.currency, p.i, p.day, p.ts, p.value, p.flow, p.wealth, p.ret, p.is_filled, p.base_is
FROM session_points(instance, run, base := base, session := session, fill := fill) p
WHERE p.i > 0
ORDER BY p.series, p.i;
