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

/** A table of a run that is being checked, and what was found so far. */
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
  /** Every row that came, whatever was asked for, by its text. */
  readonly seen: Map<string, JsonObject>;
  /** The first row that was of another run, or instance, than the one asked for: by the column that says so. */
  readonly strangers: Map<"run_id" | "instance_id", { readonly value: string; readonly asked: string }>;
}

/** An id that nobody has. */
export const nobody = "runvault-no-such-id";

/** An answer to a request for rows. */
export interface Page {
  readonly told: Told;
  readonly rows: readonly SampleRow[];
  readonly around: JsonNode | undefined;
  /** Why no rows could be read of an answer of status 200. */
  readonly fault: Extract<RowPage, { readonly kind: "fault" }> | undefined;
}

/** More rows of one answer say no more; some answers have all rows there are. */
const mostSeen = 500;

/** What a first request asks: beyond the rows of one screen, more say no more. */
export function sampleLimit({ largestLimit }: RestRoute): number {
  return Math.min(50, largestLimit ?? 50);
}

/** Asks for a table's rows from their beginning, or from the page that `more` names. */
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
  // rows of nobody are a finding of their own
  if (source?.kind !== "field" || asked === nobody || strangers.has(column)) return;
  for (const { node } of rows) {
    const text = scalarText(nodeAt(node, source.path));
    const value = source.words?.find(({ wire }) => String(wire) === text)?.column ?? text;
    if (value !== undefined && value !== asked) strangers.set(column, { value, asked });
  }
}

/** The rows of an answer; of any status but 200 and 204 none. */
export function pageOf({ route, map, seen }: TableProbe, told: Told): Page {
  if (told.status !== 200 && told.status !== 204)
    return { told, rows: [], around: undefined, fault: undefined };
  const page = rowsOf(told, route.rows);
  if (page.kind === "fault") return { told, rows: [], around: undefined, fault: page };
  for (const row of page.rows.slice(0, mostSeen)) seen.set(row.text, row);
  return { told, rows: sampleOf(page.rows, map), around: page.around, fault: undefined };
}

/** Whether an answer gives rows at all. */
export function isGiven({ told, fault }: Page): boolean {
  return (told.status === 200 || told.status === 204) && fault === undefined;
}

/** The parameter by which the number of rows is asked for; undefined where there is none. */
export function limitName({ pages, parameters }: RestRoute): string | undefined {
  return pages.by === "offset" || pages.by === "number" ? pages.size : parameters.limit;
}

/** What a profile calls another thing over RPC. */
const rpcKeys: Readonly<Record<string, string>> = {
  path: "method",
  // no profile says the order of rows over RPC: the method has to have it
  order: "method",
  "rows.array": "rows",
  "rows.media_types": "rows",
};

/** The profile's key for something of how a table is asked for. */
export function keyOf({ key, route }: Pick<TableProbe, "key" | "route">, at: string): string {
  // how rows become canonical is said beside RPC
  return route.rpc === undefined || at === "ties" ? `${key}.${at}` : `rpc.${key}.${rpcKeys[at] ?? at}`;
}

/** Tells whether the gateway heeds something, and what is wrong where it does not. */
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

/** Does one part of a check; what a request fails with becomes its result. */
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
      return tellUnchecked(probe, what, "its twelve requests are used up");
    if (!(thrown instanceof RunvaultError) || ["interrupted", "deadline"].includes(thrown.code)) throw thrown;
    tellHeed(probe, what, thrown.message, {
      kind: "no_answer",
      at,
      hint: thrown.hint ?? "Run the same command again; the gateway's log may say why.",
    });
  }
}
