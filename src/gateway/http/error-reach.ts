import { type ErrorCode, type ErrorPlace, RunvaultError, type Scope } from "../../model/error.ts";

/**
 * Codes that mean the same on every route: a client that may not ask here, or by this host name, may not ask elsewhere
 * either. But a token may lack permission for just one table.
 */
const everywhere: ReadonlySet<ErrorCode> = new Set(["unauthenticated", "permission_denied", "misdirected"]);

const forbiddenTableHint =
  "The token is valid but lacks permission for this table: ask the gateway's operator for it, set another token with --token-file or RUNVAULT_TOKEN_FILE, or name the other tables with --tables.";

const scopes: readonly Scope[] = ["table", "run", "instance", "job"];

/**
 * Limits a route's error to what the route is about. If a gateway has answered before, a 409, a 404 or an HTML page
 * instead of one table's rows says nothing about other tables. Errors without an answer, and refused callers, keep
 * their usual scope.
 */
export function withinReach(thrown: unknown, route: ErrorPlace): unknown {
  if (!(thrown instanceof RunvaultError) || thrown.status === undefined) return thrown;
  const reach = reachOf(route);
  if (thrown.code === "permission_denied" && reach === "table")
    return thrown.concerning(reach).advising(forbiddenTableHint);
  if (everywhere.has(thrown.code) || scopes.indexOf(thrown.scope) <= scopes.indexOf(reach)) return thrown;
  return thrown.concerning(reach);
}

/** The scope of a route, by the place of its requests. */
function reachOf({ table, run, instance }: ErrorPlace): Scope {
  if (table !== undefined) return "table";
  if (run !== undefined) return "run";
  return instance === undefined ? "job" : "instance";
}
