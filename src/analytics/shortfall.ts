import { acceptanceJson } from "../archive/manifest/acceptance.ts";
import { codeBeside } from "../archive/manifest/attempt-text.ts";
import type { Manifest, TableState } from "../archive/manifest/manifest.ts";
import { latestView, shownView } from "../archive/manifest/table-view.ts";
import { type TableName, tableNames } from "../model/profile/table.ts";
import { countText } from "../model/text/plural.ts";
import { formatTime } from "../model/time.ts";

/** A table of a run. */
export interface TableOfRun {
  readonly instance: string;
  readonly run: string;
  readonly table: TableName;
}

/** A table that is not as proven as it could be. */
interface LackingTable extends TableOfRun {
  /** Who accepted it, when and why; left out if nobody did. */
  readonly accepted?: { readonly at: string; readonly by: string; readonly reason: string };
}

/** A table that readers leave out. */
export interface WithheldTable extends LackingTable {
  /** Null if the run was archived without the table. */
  readonly state: TableState | null;
  /** Unproven rows, which are shown if that is allowed. */
  readonly rows: number;
}

/** A table whose latest attempts failed: readers show what was proven before. */
export interface BehindTable extends LackingTable {
  readonly state: TableState;
  /** Since when attempts have gone wrong. */
  readonly since: string;
  /** Code of the latest one's error; null if rows were set aside, or the proof was weaker than required. */
  readonly error: string | null;
  /** The ts_event up to which it is proven, in nanoseconds; null unless that is OPEN. */
  readonly until: string | null;
}

/** A table whose unproven latest attempt is shown. */
export interface UnprovenTable extends LackingTable {
  readonly state: TableState;
  readonly rows: number;
  /** Code of the latest attempt's error; null as above, and for rows kept of a run that its gateway forgot. */
  readonly error: string | null;
}

/** A table shown without the rows set aside, although proven. */
export interface AsideTable extends TableOfRun {
  readonly rows: number;
}

/** What readers must report: where they show less than the archive should have, or more than is proven. */
export interface Shortfall {
  /** Runs that were looked at. */
  readonly runs: number;
  readonly withheld: readonly WithheldTable[];
  readonly behind: readonly BehindTable[];
  /** Only if unproven rows are allowed. */
  readonly unproven: readonly UnprovenTable[];
  readonly setAside: readonly AsideTable[];
}

/** The shortfall of these tables. With `allowIncomplete` only tables without any row are withheld. */
export function shortfallOf(
  manifests: readonly Manifest[],
  tables: readonly TableName[],
  allowIncomplete: boolean,
): Shortfall {
  const withheld: WithheldTable[] = [];
  const behind: BehindTable[] = [];
  const unproven: UnprovenTable[] = [];
  const setAside: AsideTable[] = [];
  for (const manifest of manifests) {
    for (const name of tableNames.filter((own) => tables.includes(own))) {
      const of = { instance: manifest.instanceId, run: manifest.runId, table: name };
      const table = manifest.tables[name];
      const rows = latestView(table)?.parquet.reduce((sum, file) => sum + file.rows, 0) ?? 0;
      const accepted = acceptanceJson(table);
      const beside = accepted === null ? {} : { accepted };
      if (table === undefined || (table.proven === null && !(allowIncomplete && rows > 0))) {
        withheld.push({ ...of, state: table?.state ?? null, rows, ...beside });
        continue;
      }
      const { behindSince: since, holding } = table.attempt;
      const error = table.attempt.error?.code ?? null;
      if (allowIncomplete && holding !== null) {
        unproven.push({ ...of, state: latestView(table).state, rows, error, ...beside });
      } else if (since !== null) {
        const until = table.proven?.certificate?.until ?? null;
        behind.push({ ...of, state: table.state, since, error, until, ...beside });
      }
      const aside = shownView(table, allowIncomplete)?.certificate?.quarantined ?? 0;
      if (aside > 0) setAside.push({ ...of, rows: aside });
    }
  }
  return { runs: manifests.length, withheld, behind, unproven, setAside };
}

/** Whether readers show less than everything requested, proven as of the latest attempt. */
export function isShort({ runs, withheld, behind }: Shortfall): boolean {
  return runs === 0 || withheld.length > 0 || behind.length > 0;
}

/** A line for each kind of shortfall there is. */
export function shortfallNotes({ runs, withheld, behind, unproven, setAside }: Shortfall): string[] {
  const notes: string[] = [];
  if (runs === 0) notes.push("the archive holds no runs");
  const never = withheld.filter(({ state }) => state === null);
  const incomplete = withheld.filter(({ state }) => state !== null);
  if (incomplete.length > 0) {
    const were = incomplete.length === 1 ? "was" : "were";
    const wayOut = incomplete.some(({ rows }) => rows > 0) ? "; --allow-incomplete includes them" : "";
    const which = listed(incomplete, ({ state, accepted }) => `${state}${besideAccepted(accepted)}`);
    notes.push(`${tablesAre(incomplete)} not complete and ${were} left out: ${which}${wayOut}`);
  }
  if (never.length > 0) {
    const [was, is] = never.length === 1 ? ["was", "is"] : ["were", "are"];
    const which = listed(never, () => null);
    notes.push(`${countText(never.length, "table")} ${was} never archived and ${is} left out: ${which}`);
  }
  if (behind.length > 0) {
    const why = ({ state, since, error, until, accepted }: BehindTable) => {
      const upTo = until === null ? "" : `; proven up to ts_event ${formatTime(BigInt(until))}`;
      return `${state} since ${since}${besideState(state, error)}${besideAccepted(accepted)}${upTo}`;
    };
    notes.push(`${tablesAre(behind)} out of date and shown as proven earlier: ${listed(behind, why)}`);
  }
  if (unproven.length > 0) {
    const why = ({ state, error, accepted }: UnprovenTable) =>
      `${state}${besideState(state, error)}${besideAccepted(accepted)}`;
    notes.push(`${tablesAre(unproven)} shown although not proven: ${listed(unproven, why)}`);
  }
  if (setAside.length > 0) {
    const rows = ({ rows: aside }: AsideTable) => String(aside);
    notes.push(`${tablesAre(setAside)} shown without the rows set aside: ${listed(setAside, rows)}`);
  }
  return notes;
}

function tablesAre({ length }: readonly TableOfRun[]): string {
  return `${countText(length, "table")} ${length === 1 ? "is" : "are"}`;
}

function besideAccepted(accepted: LackingTable["accepted"]): string {
  return accepted === undefined ? "" : `, accepted by ${accepted.by}: ${accepted.reason}`;
}

function besideState(state: TableState, error: string | null): string {
  const code = error === null ? null : codeBeside(state, error);
  return code === null ? "" : `, ${code}`;
}

/** The first few tables by name, each with a remark if there is one. */
function listed<T extends TableOfRun>(tables: readonly T[], say: (table: T) => string | null): string {
  const most = 3;
  const named = tables.slice(0, most).map((table) => {
    const said = say(table);
    return `${table.table} of ${table.instance}/${table.run}${said === null ? "" : ` (${said})`}`;
  });
  const more = tables.length > most ? ` and ${tables.length - most} more` : "";
  return `${named.join(", ")}${more}`;
}
