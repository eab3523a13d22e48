import { compareRuns } from "../../analytics/against/compare-runs.ts";
import { readInstruments } from "../../analytics/instruments/read-instruments.ts";
import { openArchive } from "../../archive/archive.ts";
import { exit } from "../../model/error.ts";
import type { RunRef } from "../../model/source.ts";
import type { ReconcileValues } from "../options/reconcile-values.ts";
import { tellShortfall } from "../output/tell-shortfall.ts";
import type { Session } from "../process/session.ts";
import { comparisonText } from "./comparison-text.ts";

/** Default maximum distance between fills that are matched by time. */
const usualWithinMs = 5_000;

/** Compares two runs, prints the report, and gives the exit status. */
export async function tellComparison(
  run: RunRef,
  against: RunRef,
  values: ReconcileValues,
  session: Session,
): Promise<number> {
  const { instruments, tolerance, allowIncomplete, memory, priceWithin } = values;
  const match = values.match ?? "order";
  const withinMs = values.within ?? (match === "time" ? usualWithinMs : null);
  const archive = await openArchive(values.archive);
  const other = values.againstArchive === undefined ? archive : await openArchive(values.againstArchive);
  const { report, shortfalls } = await compareRuns(
    { archive, run },
    { archive: other, run: against },
    {
      instruments: instruments === undefined ? null : await readInstruments(instruments),
      match,
      withinNs: withinMs === null ? null : BigInt(withinMs) * 1_000_000n,
      priceWithin: priceWithin ?? null,
      tolerance: tolerance ?? null,
      session: values.session ?? "utc",
      allowIncomplete,
      memoryLimitMb: memory,
      signal: session.signal,
    },
  );
  for (const shortfall of shortfalls) await tellShortfall(shortfall, { strict: false }, session);
  await session.print(
    session.json ? `${JSON.stringify(report, null, 2)}\n` : comparisonText(report, session.terminal.columns),
  );
  return report.against.verdict === "DIFFERS" ? exit.incomplete : exit.done;
}
