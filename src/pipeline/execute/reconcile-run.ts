import { exactOf } from "../../analytics/instruments/instrument.ts";
import { reconcile } from "../../analytics/reconcile/reconcile.ts";
import type { Archive } from "../../archive/archive.ts";
import { RunvaultError } from "../../model/error.ts";
import { formatRun } from "../../model/run-argument.ts";
import type { RunRef } from "../../model/source.ts";
import { countText } from "../../model/text/plural.ts";
import type { JobReconciliation } from "../file/job-schema.ts";
import type { AfterLine } from "../record/job-record.ts";
import { jobInstruments } from "./job-instruments.ts";

/** The result of a reconciliation for the record. */
export type Reconciled = Required<Pick<AfterLine, "verdict" | "rows">> & {
  readonly error: RunvaultError | null;
};

/**
 * Reconciles a run like `runvault reconcile`. Unbalanced books are an `incomplete` error; throws if they cannot be
 * read.
 */
export async function reconcileRun(
  archive: Archive,
  run: RunRef,
  { tolerance, accounting, fill_order: order, instruments }: JobReconciliation,
  signal: AbortSignal,
): Promise<Reconciled> {
  const { report } = await reconcile(archive, [run], {
    instruments: await jobInstruments("after.reconcile.instruments", instruments),
    ...{ accounting, order, signal },
    tolerance: tolerance === undefined ? null : exactOf(tolerance),
    memoryLimitMb: 512,
  });
  const { verdict, checks } = report.runs[0]!;
  const rows = checks.reduce((most, check) => Math.max(most, check.rows), 0);
  const wrong = checks.filter(({ breaks }) => breaks > 0);
  if (wrong.length === 0) return { verdict, rows, error: null };
  const said = wrong.map(
    ({ number, name, breaks }) => `check ${number}, ${name}: ${countText(breaks, "break")}`,
  );
  const { instanceId, runId } = run;
  const error = new RunvaultError(
    "incomplete",
    `the books of ${formatRun(run)} do not balance: ${said.join("; ")}`,
    {
      place: { instance: instanceId, run: runId },
      hint: `\`runvault reconcile ${formatRun(run)}\` names the rows to look at.`,
    },
  );
  return { verdict, rows, error };
}
