import { filterNames } from "../../model/profile/table.ts";
import type { RequestScope } from "../auth/request-scope.ts";
import type { RequestLogEntry } from "./request-log.ts";

/** Parameters of the interface. Others are mistakes, and may be secrets. */
const shownParameters: ReadonlySet<string> = new Set([
  "instance",
  "run_id",
  "from",
  "to",
  "limit",
  "tail",
  "follow",
  ...filterNames,
]);

/** An access log entry: the caller, the request, and its end. Never any header. */
export function accessEntry(
  entry: RequestLogEntry,
  scope: RequestScope | undefined,
): Readonly<Record<string, unknown>> {
  const query = Object.entries(entry.query).map(([name, value]) => [
    name,
    shownParameters.has(name) ? value : "***",
  ]);
  return {
    ...(scope === undefined ? {} : { client: scope.client }),
    ...(scope?.caller?.name ? { token: scope.caller.name } : {}),
    ...entry,
    query: Object.fromEntries(query),
    ...(scope === undefined ? {} : { ms: Math.round(performance.now() - scope.startedMs) }),
  };
}
