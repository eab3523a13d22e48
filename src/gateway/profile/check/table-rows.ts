import { RunvaultError } from "../../../model/error.ts";
import type { RowMap } from "../../../model/profile/row-map.ts";
import type { Table } from "../../../model/profile/table.ts";
import type { RunRef } from "../../../model/source.ts";
import type { RestRoute } from "../profile.ts";
import { type AskedFor, type Asker, type CheckedRoute, NoMoreRequests, type Told } from "./asker.ts";
import { type JsonNode, type JsonObject, nodeAt } from "./json-node.ts";
import type { Finding, HeedCheck } from "./profile-check.ts";
import { type RowPage, rowsOf } from "./row-page.ts";
import { type SampleRow, sampleOf, scalarText } from "./sample.ts";

/** A table of a run under check, and the findings so far. */
export interface TableProbe {
  readonly table: Table;
  readonly route: CheckedRoute;
  readonly map: RowMap;
  readonly run: RunRef;
  readonly asker: Asker;
  /** The table's key in the profile: `tables.fills`. */
  readonly key: string;
  readonly findings: Finding[];
  readonly heeds: HeedCheck[];
  /** Every row received, by its text. */
  readonly seen: Map<string, JsonObject>;
  /** The first row from a run or instance that was not requested, by the column that shows it. */
  readonly strangers: Map<"run_id" | "instance_id", { readonly value: string; readonly asked: string }>;
}

/** An id that does not exist. */
export const nobody = "runvault-no-such-id";

/** An answer to a request for rows. */
export interface Page {
  readonly told: Told;
  readonly rows: readonly SampleRow[];
  readonly around: JsonNode | undefined;
  /** Why an answer with status 200 has no readable rows. */
  readonly fault: Extract<RowPage, { readonly kind: "fault" }> | undefined;
}

/** Some answers have all rows of a run; more of them would show nothing new. */
const mostSeen = 500;

/** The limit of a first request: a screenful of rows shows enough. */
export function sampleLimit({ largestLimit }: RestRoute): number {
  return Math.min(50, largestLimit ?? 50);
}

/** Requests a table's rows from their beginning, or from the page that `more` names. */
export async function askRows(probe: TableProbe, asked: AskedFor): Promise<Page> {
  const { route, run, table, asker } = probe;
  const { pages, rows } = route;
  const limit = asked.limit ?? sampleLimit(route);
  const first: (readonly [string, string])[] =
    pages.by === "offset"
      ? [
          [pages.size, `${limit}`],
          [pages.send, "0"],
        ]
      : pages.by === "number"
        ? [
            [pages.size, `${limit}`],
            [pages.send, `${pages.first}`],
          ]
        : [];
  const told = await asker.ask(
    route,
    { instance: run.instanceId, run: run.runId, limit, ...asked, more: [...first, ...(asked.more ?? [])] },
    rows.mediaTypes.join(", "),
    { instance: run.instanceId, run: run.runId, table: table.name },
  );
  const page = pageOf(probe, told);
  noteStrangers(probe, page.rows, "run_id", asked.run ?? run.runId);
  noteStrangers(probe, page.rows, "instance_id", asked.instance ?? run.instanceId);
  return page;
}

function noteStrangers(
  { map, strangers }: TableProbe,
  rows: readonly SampleRow[],
  column: "run_id" | "instance_id",
  asked: string,
): void {
  const source = map.columns[column];
  // rows for an unknown id are a separate finding
  if (source?.kind !== "field" || asked === nobody || strangers.has(column)) return;
  for (const { node } of rows) {
    const text = scalarText(nodeAt(node, source.path));
    const value = source.words?.find(({ wire }) => String(wire) === text)?.column ?? text;
    if (value !== undefined && value !== asked) strangers.set(column, { value, asked });
  }
}

/** The rows of an answer; none for statuses other than 200 and 204. */
export function pageOf({ route, map, seen }: TableProbe, told: Told): Page {
  if (told.status !== 200 && told.status !== 204)
    return { told, rows: [], around: undefined, fault: undefined };
  const page = rowsOf(told, route.rows);
  if (page.kind === "fault") return { told, rows: [], around: undefined, fault: page };
  for (const row of page.rows.slice(0, mostSeen)) seen.set(row.text, row);
  return { told, rows: sampleOf(page.rows, map), around: page.around, fault: undefined };
}

/** Whether an answer has rows at all. */
export function isGiven({ told, fault }: Page): boolean {
  return (told.status === 200 || told.status === 204) && fault === undefined;
}

/** The parameter for the number of rows; undefined if there is none. */
export function limitName({ pages, parameters }: RestRoute): string | undefined {
  return pages.by === "offset" || pages.by === "number" ? pages.size : parameters.limit;
}

/** Keys of a profile that are named differently for RPC. */
const rpcKeys: Readonly<Record<string, string>> = {
  path: "method",
  // a profile cannot set the order of rows over RPC: it depends on the method
  order: "method",
  "rows.array": "rows",
  "rows.media_types": "rows",
};

/** The profile's key for a property of a table's request. */
export function keyOf({ key, route }: Pick<TableProbe, "key" | "route">, at: string): string {
  // `ties` is configured under tables, not under rpc
  return route.rpc === undefined || at === "ties" ? `${key}.${at}` : `rpc.${key}.${rpcKeys[at] ?? at}`;
}

/** Records whether the gateway obeys part of a request, with a finding if it does not. */
export function tellHeed(
  probe: TableProbe,
  what: string,
  told: string,
  wrong?: Pick<Finding, "kind" | "hint"> & { readonly at: string },
): void {
  probe.heeds.push({ what, result: wrong === undefined ? "ok" : "wrong", told });
  if (wrong === undefined) return;
  probe.findings.push({
    kind: wrong.kind,
    key: keyOf(probe, wrong.at),
    message: `${what}: ${told}`,
    hint: wrong.hint,
  });
}

export function tellUnchecked({ heeds }: TableProbe, what: string, why: string): void {
  heeds.push({ what, result: "not checked", told: why });
}

/** Runs one part of a check; an error of a request becomes its result. */
export async function heed(
  probe: TableProbe,
  what: string,
  at: string,
  part: () => Promise<void>,
): Promise<void> {
  try {
    await part();
  } catch (thrown) {
    if (thrown instanceof NoMoreRequests)
      return tellUnchecked(probe, what, "all twelve requests of the table are used up");
    if (!(thrown instanceof RunvaultError) || ["interrupted", "deadline"].includes(thrown.code)) throw thrown;
    tellHeed(probe, what, thrown.message, {
      kind: "no_answer",
      at,
      hint: thrown.hint ?? "Try again; the gateway's log may say why.",
    });
  }
}
