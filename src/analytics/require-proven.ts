import { RunvaultError } from "../model/error.ts";
import { formatRun } from "../model/run-argument.ts";
import { type Shortfall, shortfallNotes, type TableOfRun } from "./shortfall.ts";

/** A needed table of a run that is not fully proven. */
export interface LackingTable extends TableOfRun {
  readonly state: string;
}

/** The tables that are not proven, and the error that says so. */
export interface Refusal {
  readonly tables: readonly LackingTable[];
  readonly error: RunvaultError;
}

/**
 * An `incomplete` error for tables that are not proven, or not as of the latest attempt; null if all are. Tables that
 * were never archived count if they are needed. `need` begins the message, such as `figures need rows that are proven`.
 */
export function refusalOf(shortfall: Shortfall, need: string): Refusal | null {
  const { withheld, behind, ...rest } = shortfall;
  const begun = withheld.filter(({ state }) => state !== null);
  const tables = [...begun, ...behind].map(({ state, ...table }) => ({ ...table, state: String(state) }));
  const [first] = tables;
  if (first === undefined) return null;
  const notes = shortfallNotes({ ...rest, runs: 1, withheld: begun, behind, setAside: [], unproven: [] });
  const run = formatRun({ instanceId: first.instance, runId: first.run });
  const error = new RunvaultError("incomplete", `${need}: ${notes.join("; ")}`, {
    place: { instance: first.instance, run: first.run, table: first.table },
    hint: `\`runvault archive ${run}\` tries again; --allow-incomplete uses the rows that are there, and says so.`,
  });
  return { tables, error };
}

/** Refuses tables that are not proven: throws what `refusalOf` finds. */
export function requireProven(shortfall: Shortfall, need: string): void {
  const refusal = refusalOf(shortfall, need);
  if (refusal !== null) throw refusal.error;
}
