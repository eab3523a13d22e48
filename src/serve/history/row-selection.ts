import type { RowSelection } from "../../gen/example/history/v1/history_service_pb.ts";
import { RunvaultError } from "../../model/error.ts";
import { requireFilter, requireOrder } from "../../model/profile/row-request.ts";
import { type FilterName, filterNames, type Table } from "../../model/profile/table.ts";
import type { HistorySource } from "../../model/source.ts";
import type { TimeBounds } from "../../model/time.ts";
import { resolveRun } from "./history-documents.ts";
import { type Listing, runOfToken } from "./page-token.ts";

const fields: Record<FilterName, keyof RowSelection> = {
  resource_key: "resourceKey",
  symbol: "symbol",
  venue: "venue",
  account: "account",
  portfolio: "portfolio",
};

/** The half-open window of a request; two zeros mean the whole run. Throws `invalid_argument` if they are swapped. */
export function boundsOf(given: { from?: bigint | undefined; to?: bigint | undefined }): TimeBounds {
  const { from, to } = given;
  if (from === 0n && to === 0n) return {};
  requireOrder({ from, to });
  return { from, to };
}

/** A required id. Throws `invalid_argument` if it is empty. */
export function requiredId(name: string, value: string): string {
  if (value === "") throw new RunvaultError("invalid_argument", `${name} is required`);
  return value;
}

/**
 * The listing of a request for rows. An empty run means the page token's, or the latest. Throws `invalid_argument` for
 * a filter that does not apply to the table, and errors of resolving the run.
 */
export async function listingOf(
  source: HistorySource,
  table: Table,
  selection: RowSelection | undefined,
  token: string,
  signal: AbortSignal,
): Promise<Listing> {
  const instanceId = requiredId("selection.instance_id", selection?.instanceId ?? "");
  const { runId = "" } = selection ?? {};
  const filters: Partial<Record<FilterName, string>> = {};
  for (const name of filterNames) {
    const value = String(selection?.[fields[name]] ?? "");
    if (value === "") continue;
    requireFilter(table, name);
    filters[name] = value;
  }
  const bounds = boundsOf(selection ?? {});
  const run = await resolveRun(
    source,
    instanceId,
    runId === "" && token !== "" ? runOfToken(token) : runId,
    signal,
  );
  return { run, table: table.name, ...bounds, filters };
}
