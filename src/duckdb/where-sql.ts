import type { FilterValue } from "../model/profile/row-request.ts";
import { type TimeBounds, timestampMax, timestampMin } from "../model/time.ts";
import { identifier, literal } from "./sql.ts";

/** The WHERE clause for rows within bounds and filters, with a leading blank; empty for all rows. */
export function whereSql(bounds: TimeBounds, filters: readonly FilterValue[] = []): string {
  const tests = [...boundsSql(bounds), ...filters.map(filterSql)];
  return tests.length === 0 ? "" : ` WHERE ${tests.join(" AND ")}`;
}

/** Bounds outside a timestamp's range are open, or leave nothing. */
function boundsSql({ from, to }: TimeBounds): string[] {
  const tests: string[] = [];
  if (from !== undefined && from > timestampMin) {
    tests.push(from > timestampMax ? "false" : `ts_event >= make_timestamp_ns(${from})`);
  }
  if (to !== undefined && to <= timestampMax) {
    tests.push(to < timestampMin ? "false" : `ts_event < make_timestamp_ns(${to})`);
  }
  return tests;
}

function filterSql([name, value]: FilterValue): string {
  return `${identifier(name)} = ${literal(value)}`;
}
