import { RunvaultError } from "../../model/error.ts";
import { requireFilter, requireLimit, requireOrder } from "../../model/profile/row-request.ts";
import { type FilterName, filterNames, type Table, tableNamed } from "../../model/profile/table.ts";
import type { FactsRequest } from "../../model/source.ts";
import { parseTime, type TimeBounds } from "../../model/time.ts";

/** Query parameters as they came; a repeated one is a list. */
export type RawQuery = Readonly<Record<string, unknown>>;

/** A request for rows, before its run is resolved. */
export interface RowQuery {
  readonly instanceId: string;
  /** Empty for the latest run. */
  readonly runId: string;
  readonly bounds: TimeBounds;
  readonly limit: number | undefined;
  readonly filters: Partial<Record<FilterName, string>>;
}

/**
 * Checks parameters against a route's names. Throws `invalid_argument` for unknown and repeated ones; none is ever
 * ignored.
 */
export function checkedQuery(query: RawQuery, names: readonly string[]): Record<string, string> {
  const checked: Record<string, string> = {};
  for (const [name, value] of Object.entries(query)) {
    if (!names.includes(name)) {
      // in the message, because errors of history routes have no hint
      const known = names.length === 0 ? "this route takes none" : `this route takes ${names.join(", ")}`;
      throw new RunvaultError("invalid_argument", `unknown parameter ${JSON.stringify(name)}; ${known}`);
    }
    if (typeof value !== "string")
      throw new RunvaultError("invalid_argument", `${name} is given more than once`);
    checked[name] = value;
  }
  return checked;
}

/** The parameters of a request for rows of a table. */
export function rowParameters({ filters }: Table) {
  return ["instance", "run_id", "from", "to", "limit", ...filters] as const;
}

/** Reads the parameters of a request for rows of a table. Throws `invalid_argument`. */
export function parseRowQuery(table: Table, raw: RawQuery): RowQuery {
  for (const name of filterNames) if (name in raw) requireFilter(table, name);
  const query = checkedQuery(raw, rowParameters(table));
  const given = table.filters.map((name) => [name, query[name]] as const);
  return {
    instanceId: required(query, "instance"),
    runId: query.run_id ?? "",
    bounds: parseBounds(query),
    limit: query.limit === undefined ? undefined : parseLimit(query.limit),
    // an empty filter does not filter
    filters: Object.fromEntries(given.filter(([, value]) => value !== undefined && value !== "")),
  };
}

/** The half-open window of `from` and `to`. Throws `invalid_argument` if one is not a time or they are swapped. */
export function parseBounds(query: Readonly<Record<string, string>>): TimeBounds {
  const from = query.from === undefined ? undefined : parseTime(query.from);
  const to = query.to === undefined ? undefined : parseTime(query.to);
  requireOrder({ from, to });
  return { from, to };
}

/** The options of a request for storage facts, besides the bounds. Throws `invalid_argument`, and `table_unknown`. */
export function parseFactsRequest(query: Readonly<Record<string, string>>): FactsRequest {
  const { with_checksum: withChecksum = "false", table = "" } = query;
  if (withChecksum !== "true" && withChecksum !== "false") {
    throw new RunvaultError(
      "invalid_argument",
      `with_checksum must be true or false, not ${JSON.stringify(withChecksum)}`,
    );
  }
  return { withHash: withChecksum === "true", table: table === "" ? undefined : tableNamed(table).name };
}

/** A parameter that must not be missing or empty. Throws `invalid_argument`. */
export function required(query: Readonly<Record<string, string>>, name: string): string {
  const value = query[name];
  if (value === undefined || value === "") {
    throw new RunvaultError("invalid_argument", `the parameter ${name} is required`);
  }
  return value;
}

function parseLimit(text: string): number {
  const limit = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  requireLimit(limit, JSON.stringify(text));
  return limit;
}
