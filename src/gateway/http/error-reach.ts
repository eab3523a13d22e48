import { type ErrorCode, type ErrorPlace, RunvaultError, type Scope } from "../../model/error.ts";

/**
 * Codes that mean the same on every route: who may not ask here, or under this name, may not ask elsewhere either. But a token
 * may lack permission for one table.
 */
const everywhere: ReadonlySet<ErrorCode> = new Set(["unauthenticated", "permission_denied", "misdirected"]);

const forbiddenTableHint =
  "The token is valid but lacks permission for this table: ask the gateway's operator for it, set another token with --token-file or RUNVAULT_TOKEN_FILE, or name the other tables with --tables.";

const scopes: readonly Scope[] = ["table", "run", "instance", "job"];

/**
 * Holds what a route answered to those whom the route is about, whatever its code means elsewhere: a gateway that has
 * answered before says nothing of other tables by a 409, a 404 or a page of HTML where one table's rows belong. Errors
 * without an answer, and refusals of whoever asks, go on to whom their code concerns.
 */
export function withinReach(thrown: unknown, route: ErrorPlace): unknown {
  if (!(thrown instanceof RunvaultError) || thrown.status === undefined) return thrown;
  const reach = reachOf(route);
  if (thrown.code === "permission_denied" && reach === "table")
    return thrown.concerning(reach).advising(forbiddenTableHint);
  if (everywhere.has(thrown.code) || scopes.indexOf(thrown.scope) <= scopes.indexOf(reach)) return thrown;
  return thrown.concerning(reach);
}

/** Whom a route is about, by the place of its requests. */
function reachOf({ table, run, instance }: ErrorPlace): Scope {
  if (table !== undefined) return "table";
  if (run !== undefined) return "run";
  return instance === undefined ? "job" : "instance";
}
