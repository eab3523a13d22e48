-- A figure with its number of values, and their first and last time.
CREATE OR REPLACE MACRO counted_figure(metric, unit, convention, value, reasons, n, from_ts, to_ts) AS {
  'told': figure(metric, unit, convention, value, reasons),
  'n': coalesce(n, 0),
  'from_ts': from_ts,
  'to_ts': to_ts
};
