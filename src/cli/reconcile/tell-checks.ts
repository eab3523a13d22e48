import { readInstruments } from "../../analytics/instruments/read-instruments.ts";
import { reconcile } from "../../analytics/reconcile/reconcile.ts";
import { openArchive } from "../../archive/archive.ts";
import { exit } from "../../model/error.ts";
import type { RunRef } from "../../model/source.ts";
import type { ReconcileValues } from "../options/reconcile-values.ts";
import { tellShortfall } from "../output/tell-shortfall.ts";
import type { Session } from "../process/session.ts";
import { reconcileText } from "./reconcile-text.ts";

/** Runs the checks, prints their report, and gives the exit status. */
export async function tellChecks(
  runs: readonly RunRef[],
  values: ReconcileValues,
  session: Session,
): Promise<number> {
  const { instruments, accounting, fillOrder, tolerance, allowIncomplete, memory } = values;
  const { report, shortfall } = await reconcile(await openArchive(values.archive), runs, {
    instruments: instruments === undefined ? null : await readInstruments(instruments),
    accounting: accounting ?? "auto",
    order: fillOrder ?? "auto",
    tolerance: tolerance ?? null,
    allowIncomplete,
    memoryLimitMb: memory,
    signal: session.signal,
  });
  await tellShortfall(shortfall, { strict: false }, session);
  await session.print(
    session.json ? `${JSON.stringify(report, null, 2)}\n` : reconcileText(report, session.terminal.columns),
  );
  return report.runs.some(({ verdict }) => verdict === "BREAKS") ? exit.incomplete : exit.done;
}
