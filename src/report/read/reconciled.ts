import type { InstrumentsFile } from "../../analytics/instruments/read-instruments.ts";
import { reconcile } from "../../analytics/reconcile/reconcile.ts";
import type { ReconciledRun } from "../../analytics/reconcile/reconcile-report.ts";
import type { Archive } from "../../archive/archive.ts";
import { RunvaultError } from "../../model/error.ts";
import type { RunRef } from "../../model/source.ts";

/** Errors by which books cannot be reconciled although figures can be computed. */
const told = ["incomplete", "invalid_argument", "malformed_row", "value_out_of_range"];

/** The result of `runvault reconcile` for a run, with its defaults, or why it refuses. */
export async function reconciledRun(
  archive: Archive,
  run: RunRef,
  options: {
    readonly instruments: InstrumentsFile | null;
    readonly memoryLimitMb: number;
    readonly signal?: AbortSignal | undefined;
  },
): Promise<ReconciledRun | string> {
  const { signal, ...others } = options;
  try {
    const { report } = await reconcile(archive, [run], {
      ...others,
      ...{ accounting: "auto", order: "auto", tolerance: null },
      ...(signal === undefined ? {} : { signal }),
    });
    return report.runs[0]!;
  } catch (error) {
    if (error instanceof RunvaultError && told.includes(error.code)) return error.message;
    throw error;
  }
}
