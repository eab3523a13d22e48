-- What rows do not say about a market's instrument, by run. Empty until the caller makes it read a table:
-- CREATE OR REPLACE MACRO instrument_values() AS TABLE FROM instrument_rows
CREATE OR REPLACE MACRO instrument_values() AS TABLE
SELECT CAST(NULL AS VARCHAR) AS instance_id, CAST(NULL AS VARCHAR) AS run_id, CAST(NULL AS VARCHAR) AS symbol,
  CAST(NULL AS VARCHAR) AS venue, CAST(NULL AS VARCHAR) AS currency, CAST(NULL AS DOUBLE) AS multiplier, CAST(NULL AS BOOLEAN) AS is_inverse, CAST(NULL AS VARCHAR) AS bar_symbol,
  CAST(NULL AS VARCHAR) AS bar_venue, CAST(NULL AS BIGINT) AS bar_interval
WHERE false;

-- The bars of a symbol, where the run has them of one venue and one interval alone; else how many sources there are.
CREATE OR REPLACE MACRO bar_sources(instance, run) AS TABLE
SELECT s.symbol, min(s.venue) AS venue, min(s.interval_ns) AS interval_ns, count(*) AS sources
FROM (
  SELECT DISTINCT b.symbol, b.venue, b.interval_ns FROM bars b WHERE b.instance_id = instance AND b.run_id = run
) s
GROUP BY s.symbol;

-- The markets of a run's orders and fills, or under 'factors' of its factors, with their instruments: what
-- instrument_values says of them, else
-- linear, multiplier 1, the only currency of the equity rows and the only bars of the symbol. Where there are several,
-- currency is '' and bar_symbol NULL, and `currencies` and `sources` say how many.
CREATE OR REPLACE MACRO run_markets(instance, run, of := 'orders') AS TABLE
WITH markets AS (
  SELECT o.symbol, o.venue FROM orders o WHERE of = 'orders' AND o.instance_id = instance AND o.run_id = run
  UNION
  SELECT f.symbol, f.venue FROM fills f WHERE of = 'orders' AND f.instance_id = instance AND f.run_id = run
  UNION
  SELECT f.symbol, f.venue FROM factors f WHERE of = 'factors' AND f.instance_id = instance AND f.run_id = run
),
currencies AS (
  SELECT coalesce(CASE WHEN count(DISTINCT e.currency) = 1 THEN min(e.currency) END, '') AS currency,
    count(DISTINCT e.currency) AS currencies
  FROM equity e
  WHERE e.instance_id = instance AND e.run_id = run
)
SELECT m.symbol, m.venue,
  coalesce(v.currency, c.currency) AS currency,
  CASE WHEN v.symbol IS NULL THEN c.currencies ELSE 1 END AS currencies,
  coalesce(v.multiplier, 1.0) AS multiplier,
  coalesce(v.is_inverse, false) AS is_inverse,
  CASE WHEN v.symbol IS NOT NULL THEN v.bar_symbol WHEN b.sources = 1 THEN b.symbol END AS bar_symbol,
  CASE WHEN v.symbol IS NOT NULL THEN v.bar_venue WHEN b.sources = 1 THEN b.venue END AS bar_venue,
  CASE WHEN v.symbol IS NOT NULL THEN v.bar_interval WHEN b.sources = 1 THEN b.interval_ns END AS bar_interval,
  CASE WHEN v.symbol IS NOT NULL THEN CASE WHEN v.bar_symbol IS NULL THEN 0 ELSE 1 END ELSE coalesce(b.sources, 0) END
    AS sources
FROM markets m CROSS JOIN currencies c
LEFT JOIN instrument_values() v
  ON v.instance_id = instance AND v.run_id = run AND v.symbol = m.symbol AND v.venue = m.venue
LEFT JOIN bar_sources(instance, run) b ON b.symbol = m.symbol;
