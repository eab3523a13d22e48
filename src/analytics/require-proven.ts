import { RunvaultError } from "../model/error.ts";
import { formatRun } from "../model/run-argument.ts";
import { type Shortfall, shortfallNotes } from "./shortfall.ts";

/**
 * Refuses tables of which nothing is proven, or not as of the latest attempt: `incomplete`. What was never archived is
 * told where it is missed. `need` begins the message, such as `figures need rows that are proven`.
 */
export function requireProven(shortfall: Shortfall, need: string): void {
  const { withheld, behind, ...rest } = shortfall;
  const begun = withheld.filter(({ state }) => state !== null);
  const first = begun[0] ?? behind[0];
  if (first === undefined) return;
  const notes = shortfallNotes({ ...rest, runs: 1, withheld: begun, behind, setAside: [], unproven: [] });
  const run = formatRun({ instanceId: first.instance, runId: first.run });
  throw new RunvaultError("incomplete", `${need}: ${notes.join("; ")}`, {
    place: { instance: first.instance, run: first.run, table: first.table },
    hint: `\`runvault archive ${run}\` tries again; --allow-incomplete computes from what there is, and says so.`,
  });
}
