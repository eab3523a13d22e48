-- (ts_event, seq) as one number, which is compared faster than a row of two. The rows before an instant are those below
-- place_of(instant, 0).
CREATE OR REPLACE MACRO place_of(ts, seq) AS CAST(epoch_ns(ts) AS HUGEINT) * 18446744073709551616 + seq;

-- The orders of a run, one row each: what its latest row says, and when it was submitted and accepted. The rows of one
-- client_order_id in key order are an order's life.
--
-- state  the status after the latest row, in small letters; a partly filled order is accepted
CREATE OR REPLACE MACRO run_orders(instance, run) AS TABLE
WITH steps AS (
  SELECT o.client_order_id AS order_id, o.ts_event AS ts, o.kind,
    place_of(o.ts_event, o.seq) AS place,
    {
      'account': o.account, 'portfolio': o.portfolio, 'symbol': o.symbol, 'venue': o.venue, 'side': o.side,
      'order_type': o.type, 'status': o.status, 'quantity': o.quantity, 'filled_quantity': o.filled_quantity,
      'limit_price': o.price, 'arrival_price': o.arrival_price
    } AS said
  FROM orders o
  WHERE o.instance_id = instance AND o.run_id = run
),
lives AS (
  SELECT s.order_id, max_by(s.said, s.place) AS said, min(s.ts) AS first_ts, max(s.ts) AS last_ts,
    min(CASE WHEN s.kind = 'SUBMITTED' THEN s.ts END) AS submitted_ts,
    min(CASE WHEN s.kind = 'ACCEPTED' THEN s.ts END) AS accepted_ts
  FROM steps s
  GROUP BY s.order_id
)
SELECT l.order_id, l.said.account AS account, l.said.portfolio AS portfolio, l.said.symbol AS symbol,
  l.said.venue AS venue, l.said.side AS side, l.said.order_type AS order_type,
  CASE WHEN l.said.status = 'PARTIALLY_FILLED' THEN 'accepted' ELSE lower(l.said.status) END AS state,
  l.said.quantity AS quantity, coalesce(l.said.filled_quantity, 0) AS filled_quantity,
  coalesce(l.said.filled_quantity > 0 AND l.said.filled_quantity < l.said.quantity, false) AS is_partly,
  in_double(l.said.limit_price) AS limit_price, in_double(l.said.arrival_price) AS arrival_price,
  l.first_ts, l.submitted_ts, l.accepted_ts, l.last_ts
FROM lives l;

-- Where a run's orders ended: by the state of their latest row, so that `orders` adds up to all that were submitted.
-- partly_filled are those of them that were filled in part; quantities are exact, in units of the symbol.
CREATE OR REPLACE MACRO order_funnel(instance, run) AS TABLE
SELECT o.account, o.portfolio, o.symbol, o.venue, o.order_type, o.state, count(*) AS orders,
  count(*) FILTER (o.is_partly) AS partly_filled, sum(o.quantity) AS quantity, sum(o.filled_quantity) AS filled_quantity
FROM run_orders(instance, run) o
GROUP BY ALL
ORDER BY ALL;

-- What each order is compared with, all as of its SUBMITTED row: the arrival price that it says itself, the close of the
-- last bar closed before, and the middle of the last book at or before that has both sides, no older than max_age. The book
-- is that of the order's venue, or else of the only venue that has books of the symbol.
CREATE OR REPLACE MACRO order_references(instance, run, max_age := '1 minute') AS TABLE
WITH book_venues AS (
  SELECT DISTINCT b.symbol, b.venue
  FROM order_book b
  -- without orders no book is looked at
  SEMI JOIN (SELECT DISTINCT o.symbol FROM orders o WHERE o.instance_id = instance AND o.run_id = run) o
    ON o.symbol = b.symbol
  WHERE b.instance_id = instance AND b.run_id = run
),
-- with small numbers for their bars and books, which are matched faster than names
markets AS (
  SELECT m.*, coalesce(own.venue, any_venue.venue) AS book_venue,
    CASE WHEN m.bar_symbol IS NOT NULL THEN dense_rank() OVER (ORDER BY m.bar_symbol, m.bar_venue, m.bar_interval) END AS bar_nr,
    dense_rank() OVER (ORDER BY m.symbol, coalesce(own.venue, any_venue.venue)) AS book_nr
  FROM run_markets(instance, run) m
  LEFT JOIN book_venues own ON own.symbol = m.symbol AND own.venue = m.venue
  LEFT JOIN (
    SELECT b.symbol, min(b.venue) AS venue FROM book_venues b GROUP BY b.symbol HAVING count(*) = 1
  ) any_venue ON any_venue.symbol = m.symbol
),
placed AS MATERIALIZED (
  SELECT o.*, m.currency, m.currencies, m.sources, m.book_venue, m.bar_nr, m.book_nr
  FROM run_orders(instance, run) o JOIN markets m USING (symbol, venue)
),
-- of several bars or books at one instant the last counts, which needs no grouping where the order of all is looked up
closes AS (
  SELECT m.bar_nr, place_of(b.ts_event, b.seq) AS place, b.close AS bar
  FROM bars_f b
  JOIN (
    SELECT DISTINCT m.bar_symbol, m.bar_venue, m.bar_interval, m.bar_nr FROM markets m SEMI JOIN placed p USING (bar_nr)
  ) m ON m.bar_symbol = b.symbol AND m.bar_venue = b.venue AND m.bar_interval = b.interval_ns
  WHERE b.instance_id = instance AND b.run_id = run
),
with_bars AS (
  SELECT p.*, c.bar
  FROM placed p ASOF LEFT JOIN closes c ON p.bar_nr = c.bar_nr AND place_of(p.submitted_ts, 0) > c.place
),
-- stretches of a little more than max_age: a book that is young enough is of its order's stretch or of the one before
ages AS (
  SELECT CAST(least(epoch(CAST(max_age AS INTERVAL)) * 1.001 + 1, 9.2e9) * 1e9 AS BIGINT) AS stretch
),
wanted AS MATERIALIZED (
  SELECT DISTINCT unnest([epoch_ns(p.submitted_ts) // a.stretch, epoch_ns(p.submitted_ts) // a.stretch - 1]) AS nth
  FROM placed p CROSS JOIN ages a
  WHERE p.book_venue IS NOT NULL
),
touches AS (
  SELECT m.book_nr, b.ts_event AS ts, b.snapshot_id,
    max(CASE WHEN b.side = 'BID' THEN b.price END) AS bid, min(CASE WHEN b.side = 'ASK' THEN b.price END) AS ask
  FROM (
    SELECT b.symbol, b.venue, b.ts_event, b.snapshot_id, b.side, b.price,
      epoch_ns(b.ts_event) // (SELECT a.stretch FROM ages a) AS nth
    FROM order_book_f b
    WHERE b.instance_id = instance AND b.run_id = run AND b.level = 0
  ) b
  SEMI JOIN wanted w USING (nth)
  JOIN (SELECT DISTINCT m.symbol, m.book_venue, m.book_nr FROM markets m) m ON m.symbol = b.symbol AND m.book_venue = b.venue
  GROUP BY ALL
),
mids AS (
  SELECT t.book_nr, t.ts, place_of(t.ts, t.snapshot_id) AS place, (t.bid + t.ask) / 2 AS mid
  FROM touches t
  WHERE t.bid IS NOT NULL AND t.ask IS NOT NULL
),
with_books AS (
  SELECT p.*, k.mid,
    CAST(epoch_ns(p.submitted_ts) - epoch_ns(k.ts) AS DOUBLE) / 1e9 AS age
  FROM with_bars p ASOF LEFT JOIN mids k
    ON p.book_nr = k.book_nr AND place_of(p.submitted_ts, 18446744073709551615) >= k.place
)
SELECT b.* EXCLUDE (mid, age, bar_nr, book_nr),
  CASE WHEN b.age <= epoch(CAST(max_age AS INTERVAL)) THEN b.mid END AS mid, CASE WHEN b.age <= epoch(CAST(max_age AS INTERVAL)) THEN b.age END AS book_age
FROM with_books b;

CREATE OR REPLACE MACRO per_fill(name) AS name || ', weighted by notional, costs are positive';

-- Figures of a run's execution, a row each: the value, or NULL and the reason. A column that a figure is not by is NULL:
-- those of all orders have no order_type, symbol, liquidity and venue. Sums of fees are exact in `amount`.
-- max_age is of the oldest book that a fill is compared with.
CREATE OR REPLACE MACRO execution(instance, run, max_age := '1 minute') AS TABLE
WITH placed AS (
  FROM order_references(instance, run, max_age := max_age)
),
executed AS (
  SELECT f.account, f.portfolio, f.symbol, f.venue, f.client_order_id AS order_id, f.ts_event AS ts, f.liquidity,
    CASE f.side WHEN 'BUY' THEN 1 WHEN 'SELL' THEN -1 END AS sign, f.price, m.currency, m.currencies,
    place_of(f.ts_event, f.seq) AS place,
    CASE WHEN m.is_inverse THEN f.quantity * m.multiplier / nullif(f.price, 0) ELSE abs(f.price) * f.quantity * m.multiplier
    END AS notional
  FROM fills_f f JOIN run_markets(instance, run) m USING (symbol, venue)
  WHERE f.instance_id = instance AND f.run_id = run
),
groups AS (
  SELECT p.account, p.portfolio, p.currency, max(p.currencies) AS currencies FROM (
    SELECT p.account, p.portfolio, p.currency, p.currencies FROM placed p
    UNION ALL
    SELECT e.account, e.portfolio, e.currency, e.currencies FROM executed e
  ) p
  GROUP BY ALL
),
first_fills AS (
  SELECT e.order_id, min(e.ts) AS ts, min_by(e.liquidity, e.place) AS liquidity FROM executed e GROUP BY e.order_id
),
lived AS (
  SELECT p.*,
    CAST(epoch_ns(p.accepted_ts) - epoch_ns(p.submitted_ts) AS DOUBLE) / 1e9 AS to_accept,
    -- a resting order's time to a fill depends on the market, not the venue
    CASE
      WHEN p.order_type = 'MARKET' OR p.order_type = 'LIMIT' AND (
        f.liquidity = 'TAKER' OR f.liquidity = '' AND CASE p.side
          WHEN 'BUY' THEN p.limit_price > p.arrival_price WHEN 'SELL' THEN p.limit_price < p.arrival_price END)
        THEN CAST(epoch_ns(f.ts) - epoch_ns(p.submitted_ts) AS DOUBLE) / 1e9
    END AS to_fill,
    in_double(p.filled_quantity) / nullif(in_double(p.quantity), 0) AS filled_share
  FROM placed p LEFT JOIN first_fills f USING (order_id)
),
order_sums AS (
  SELECT l.account, l.portfolio, l.currency, l.order_type, l.symbol, count(*) AS orders,
    count(*) FILTER (l.state = 'filled') AS filled, count(*) FILTER (l.is_partly) AS partly,
    min(l.symbol) AS symbol_from, max(l.symbol) AS symbol_to,
    sum(l.quantity) AS quantity, sum(l.filled_quantity) AS filled_quantity, avg(l.filled_share) AS mean_share,
    count(l.to_accept) AS accepts, avg(l.to_accept) AS accept_mean,
    quantile_cont(l.to_accept, [0.5, 0.95, 0.99]) AS accept_at, max(l.to_accept) AS accept_max,
    count(l.to_fill) AS fills, avg(l.to_fill) AS fill_mean, quantile_cont(l.to_fill, [0.5, 0.95, 0.99]) AS fill_at,
    max(l.to_fill) AS fill_max, min(l.first_ts) AS from_ts, max(l.last_ts) AS to_ts
  FROM lived l
  GROUP BY GROUPING SETS (
    (l.account, l.portfolio, l.currency),
    (l.account, l.portfolio, l.currency, l.order_type),
    (l.account, l.portfolio, l.currency, l.symbol))
),
-- a group without orders has their figures too, with the reason
order_rows AS (
  SELECT g.account, g.portfolio, g.currency, s.* EXCLUDE (account, portfolio, currency),
    CASE WHEN s.orders IS NULL THEN 'no orders' END AS none,
    CASE WHEN coalesce(s.accepts, 0) = 0 THEN 'no order was accepted' END AS unaccepted,
    CASE WHEN coalesce(s.fills, 0) = 0 THEN 'no market or marketable order was filled' END AS unfilled
  FROM groups g LEFT JOIN order_sums s USING (account, portfolio, currency)
),
order_figures AS (
  SELECT r.account, r.portfolio, r.currency, CAST(NULL AS VARCHAR) AS venue, r.order_type, CAST(NULL AS VARCHAR) AS liquidity,
    r.symbol, unnest([
    counted_figure('orders', 'orders', 'all submitted orders', r.orders, [r.none], r.orders, r.from_ts, r.to_ts),
    counted_figure('partly_filled', 'orders', 'filled in part at their latest row', r.partly, [r.none], r.orders, r.from_ts,
      r.to_ts),
    counted_figure('fill_ratio_orders', 'ratio', 'orders filled whole / submitted', r.filled / r.orders, [r.none], r.orders,
      r.from_ts, r.to_ts),
    counted_figure('fill_ratio_quantity', 'ratio', 'quantity filled / submitted, of one symbol',
      in_double(r.filled_quantity) / nullif(in_double(r.quantity), 0),
      [r.none, CASE WHEN r.symbol_from < r.symbol_to THEN 'quantities of several symbols are not added' END,
        CASE WHEN r.quantity = 0 THEN 'no quantity was ordered' END], r.orders, r.from_ts, r.to_ts),
    counted_figure('fill_ratio_mean', 'ratio', 'mean over orders of quantity filled / submitted', r.mean_share,
      [r.none, CASE WHEN r.mean_share IS NULL THEN 'no quantity was ordered' END], r.orders, r.from_ts, r.to_ts),
    counted_figure('accept_latency_mean', 's', 'SUBMITTED to ACCEPTED', r.accept_mean, [r.none, r.unaccepted], r.accepts,
      r.from_ts, r.to_ts),
    counted_figure('accept_latency_p50', 's', 'SUBMITTED to ACCEPTED, linear quantile', r.accept_at[1], [r.none, r.unaccepted],
      r.accepts, r.from_ts, r.to_ts),
    counted_figure('accept_latency_p95', 's', 'SUBMITTED to ACCEPTED, linear quantile', r.accept_at[2], [r.none, r.unaccepted],
      r.accepts, r.from_ts, r.to_ts),
    counted_figure('accept_latency_p99', 's', 'SUBMITTED to ACCEPTED, linear quantile', r.accept_at[3], [r.none, r.unaccepted],
      r.accepts, r.from_ts, r.to_ts),
    counted_figure('accept_latency_max', 's', 'SUBMITTED to ACCEPTED', r.accept_max, [r.none, r.unaccepted], r.accepts,
      r.from_ts, r.to_ts),
    counted_figure('fill_latency_mean', 's', 'SUBMITTED to the first fill, market and marketable orders', r.fill_mean,
      [r.none, r.unfilled], r.fills, r.from_ts, r.to_ts),
    counted_figure('fill_latency_p50', 's', 'SUBMITTED to the first fill, market and marketable orders, linear quantile',
      r.fill_at[1], [r.none, r.unfilled], r.fills, r.from_ts, r.to_ts),
    counted_figure('fill_latency_p95', 's', 'SUBMITTED to the first fill, market and marketable orders, linear quantile',
      r.fill_at[2], [r.none, r.unfilled], r.fills, r.from_ts, r.to_ts),
    counted_figure('fill_latency_p99', 's', 'SUBMITTED to the first fill, market and marketable orders, linear quantile',
      r.fill_at[3], [r.none, r.unfilled], r.fills, r.from_ts, r.to_ts),
    counted_figure('fill_latency_max', 's', 'SUBMITTED to the first fill, market and marketable orders', r.fill_max,
      [r.none, r.unfilled], r.fills, r.from_ts, r.to_ts)
  ]) AS f
  FROM order_rows r
),
compared AS (
  SELECT e.*, p.order_type, p.arrival_price AS arrival, p.bar, p.mid, p.book_age, p.sources, p.book_venue,
    p.order_id IS NULL AS is_orderless
  FROM executed e LEFT JOIN placed p USING (order_id)
),
-- what is paid above the reference when buying, below it when selling, in basis points
slipped AS (
  SELECT c.*,
    CASE WHEN c.arrival > 0 THEN c.sign * (c.price - c.arrival) / c.arrival * 1e4 END AS at_arrival,
    CASE WHEN c.bar > 0 THEN c.sign * (c.price - c.bar) / c.bar * 1e4 END AS at_bar,
    CASE WHEN c.mid > 0 THEN c.sign * (c.price - c.mid) / c.mid * 1e4 END AS at_mid
  FROM compared c
),
fill_sums AS (
  SELECT s.account, s.portfolio, s.currency, s.order_type, s.liquidity, grouping(s.liquidity) = 1 AS is_all,
    count(*) AS fills, sum(s.notional) AS notional, count(*) FILTER (s.is_orderless) AS orderless,
    sum(s.notional) FILTER (s.liquidity = 'MAKER') AS made, sum(s.notional) FILTER (s.liquidity = 'TAKER') AS taken,
    count(s.at_arrival) AS arrivals, sum(s.notional * s.at_arrival) AS arrival_cost,
    sum(s.notional) FILTER (s.at_arrival IS NOT NULL) AS arrival_notional,
    count(s.at_bar) AS bars, sum(s.notional * s.at_bar) AS bar_cost, sum(s.notional) FILTER (s.at_bar IS NOT NULL) AS bar_notional,
    count(s.at_mid) AS mids, sum(s.notional * s.at_mid) AS mid_cost, sum(s.notional) FILTER (s.at_mid IS NOT NULL) AS mid_notional,
    avg(s.book_age) AS age_mean, quantile_cont(s.book_age, [0.5, 0.95]) AS age_at, max(s.book_age) AS age_max,
    max(s.sources) AS sources, count(s.book_venue) AS with_books, min(s.ts) AS from_ts, max(s.ts) AS to_ts
  FROM slipped s
  GROUP BY GROUPING SETS (
    (s.account, s.portfolio, s.currency), (s.account, s.portfolio, s.currency, s.order_type, s.liquidity))
),
fill_rows AS (
  SELECT g.account, g.portfolio, g.currency, s.* EXCLUDE (account, portfolio, currency),
    CASE WHEN s.fills IS NULL THEN 'no fills' END AS none,
    CASE WHEN g.currency = '' AND g.currencies > 1
      THEN 'notional of several currencies is not added, and no row says which a symbol is traded in' END AS mixed,
    CASE WHEN s.orderless = s.fills THEN 'no row of their orders' END AS unknown,
    CASE WHEN s.sources > 1 THEN 'several bars of a symbol, and no row says which are meant' END AS ambiguous
  FROM groups g LEFT JOIN fill_sums s USING (account, portfolio, currency)
),
share_figures AS (
  SELECT r.account, r.portfolio, r.currency, CAST(NULL AS VARCHAR) AS venue, CAST(NULL AS VARCHAR) AS order_type,
    CAST(NULL AS VARCHAR) AS liquidity, CAST(NULL AS VARCHAR) AS symbol, unnest([
    counted_figure('fills', 'fills', 'all', r.fills, [r.none], r.fills, r.from_ts, r.to_ts),
    counted_figure('fills_without_order', 'fills', 'no row of their order', r.orderless, [r.none], r.fills, r.from_ts, r.to_ts),
    counted_figure('maker_share', 'ratio', 'of notional', coalesce(r.made, 0) / nullif(r.notional, 0), [r.none, r.mixed,
      CASE WHEN r.notional = 0 THEN 'no notional' END], r.fills, r.from_ts, r.to_ts),
    counted_figure('taker_share', 'ratio', 'of notional', coalesce(r.taken, 0) / nullif(r.notional, 0), [r.none, r.mixed,
      CASE WHEN r.notional = 0 THEN 'no notional' END], r.fills, r.from_ts, r.to_ts)
  ]) AS f
  FROM fill_rows r
  WHERE r.is_all IS DISTINCT FROM false
),
slippage_figures AS (
  SELECT r.account, r.portfolio, r.currency, CAST(NULL AS VARCHAR) AS venue, r.order_type, r.liquidity,
    CAST(NULL AS VARCHAR) AS symbol, unnest([
    counted_figure('slippage_arrival', 'bp', per_fill('against the arrival price of the order'),
      r.arrival_cost / nullif(r.arrival_notional, 0), [r.none, r.mixed, r.unknown,
        CASE WHEN r.arrivals = 0 THEN 'no order has an arrival price' END], r.arrivals, r.from_ts, r.to_ts),
    counted_figure('slippage_bar', 'bp', per_fill('against the close of the last bar before SUBMITTED'),
      r.bar_cost / nullif(r.bar_notional, 0), [r.none, r.mixed, r.unknown, r.ambiguous,
        CASE WHEN r.bars = 0 THEN 'no bar closed before' END], r.bars, r.from_ts, r.to_ts),
    counted_figure('slippage_mid', 'bp',
      per_fill('against the middle of the last book by SUBMITTED, at most ' || epoch(CAST(max_age AS INTERVAL)) || ' s old'),
      r.mid_cost / nullif(r.mid_notional, 0), [r.none, r.mixed, r.unknown,
        CASE WHEN r.with_books = 0 THEN 'no books' WHEN r.mids = 0 THEN 'no book was recent enough' END], r.mids, r.from_ts,
      r.to_ts),
    counted_figure('book_age_mean', 's', 'of the books compared with, by fill', r.age_mean, [r.none, r.unknown,
      CASE WHEN r.with_books = 0 THEN 'no books' WHEN r.mids = 0 THEN 'no book was recent enough' END], r.mids, r.from_ts,
      r.to_ts),
    counted_figure('book_age_p50', 's', 'of the books compared with, by fill, linear quantile', r.age_at[1], [r.none, r.unknown,
      CASE WHEN r.with_books = 0 THEN 'no books' WHEN r.mids = 0 THEN 'no book was recent enough' END], r.mids, r.from_ts,
      r.to_ts),
    counted_figure('book_age_p95', 's', 'of the books compared with, by fill, linear quantile', r.age_at[2], [r.none, r.unknown,
      CASE WHEN r.with_books = 0 THEN 'no books' WHEN r.mids = 0 THEN 'no book was recent enough' END], r.mids, r.from_ts,
      r.to_ts),
    counted_figure('book_age_max', 's', 'of the books compared with, by fill', r.age_max, [r.none, r.unknown,
      CASE WHEN r.with_books = 0 THEN 'no books' WHEN r.mids = 0 THEN 'no book was recent enough' END], r.mids, r.from_ts,
      r.to_ts)
  ]) AS f
  FROM fill_rows r
  WHERE r.is_all IS DISTINCT FROM true
),
charged AS (
  SELECT f.account, f.portfolio, f.venue, f.fee_currency AS currency, count(f.fee) AS fills,
    sum(CASE WHEN f.fee > 0 THEN f.fee ELSE 0 END) AS paid, sum(CASE WHEN f.fee < 0 THEN -f.fee ELSE 0 END) AS back,
    min(f.ts_event) AS from_ts, max(f.ts_event) AS to_ts
  FROM fills f
  WHERE f.instance_id = instance AND f.run_id = run
  GROUP BY ALL
),
fees AS (
  SELECT c.*, unnest(['fees', 'rebates']) AS metric,
    unnest(['what was charged, without rebates', 'what was paid back, positive']) AS convention,
    unnest([c.paid, c.back]) AS amount
  FROM charged c
),
figures AS (
  FROM order_figures UNION ALL FROM share_figures UNION ALL FROM slippage_figures
)
SELECT f.account, f.portfolio, f.currency, f.venue, f.order_type, f.liquidity, f.symbol, f.f.told.metric AS metric,
  figure_value(f.f.told) AS value, NULL AS amount, figure_reason(f.f.told) AS reason, f.f.told.unit AS unit,
  f.f.told.convention AS convention, f.f.n AS n, f.f.from_ts AS from_ts, f.f.to_ts AS to_ts
FROM figures f
UNION ALL
SELECT f.account, f.portfolio, f.currency, f.venue, NULL, NULL, NULL, f.metric,
  CASE WHEN f.fills > 0 THEN in_double(f.amount) END, CASE WHEN f.fills > 0 THEN f.amount END,
  CASE WHEN f.fills = 0 THEN 'no fill has a fee' END, f.currency, f.convention, f.fills, f.from_ts, f.to_ts
FROM fees f;
