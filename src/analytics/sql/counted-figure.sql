-- A figure that says of itself how many values it is of, and from when to when.
CREATE OR REPLACE MACRO counted_figure(metric, unit, convention, value, reasons, n, from_ts, to_ts) AS {
  'told': figure(metric, unit, convention, value, reasons),
  'n': coalesce(n, 0),
  'from_ts': from_ts,
  'to_ts': to_ts
};
