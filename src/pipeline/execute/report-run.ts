import { join } from "node:path";
import type { Archive } from "../../archive/archive.ts";
import { pathName } from "../../archive/layout.ts";
import type { RunvaultError } from "../../model/error.ts";
import type { RunRef } from "../../model/source.ts";
import { notArchived } from "../../model/usual-errors.ts";
import { ReportFiles } from "../../report/report-files.ts";
import { reportRuns } from "../../report/report-runs.ts";
import type { JobReports } from "../file/job-schema.ts";
import type { Trouble } from "../record/job-record.ts";
import { jobInstruments } from "./job-instruments.ts";
import type { JobMeans } from "./job-means.ts";

/** Writes a run's page like `runvault report` with defaults, and replaces the old page. */
export async function reportRun(
  archive: Archive,
  run: RunRef,
  { out, fill, instruments: file }: JobReports,
  { signal, tool, at }: Pick<JobMeans, "signal" | "tool"> & { readonly at: string },
): Promise<{ readonly error: RunvaultError | null }> {
  const instruments = await jobInstruments("after.reports.instruments", file);
  const manifest = await archive.manifest(run);
  if (manifest === null) throw notArchived(run);
  const target = { out: pageOf(out, run), specs: null, force: true, outside: archive.dir };
  await using files = await ReportFiles.open(target);
  const report = await reportRuns(archive, [manifest], {
    ...{ session: "utc", fill, periods: null, rf: 0, log: false, base: "deposit", benchmark: null },
    ...{ rates: null, psrBenchmark: 0, omegaReturn: 0, group: "flat", fillOrder: "auto", window: null },
    ...{ instruments, bookAgeMs: 60_000, horizons: [1, 5, 20], allowIncomplete: false },
    ...{ memoryLimitMb: 512, signal, reconcile: true, made: `Made ${at} by ${tool}.` },
  });
  await files.write(report);
  return { error: null };
}

/** `OUT/INSTANCE/RUN.html`, with ids made safe for file names. */
function pageOf(out: string, { instanceId, runId }: RunRef): string {
  return join(out, pathName(instanceId), `${pathName(runId)}.html`);
}

/** Runs whose page an earlier execution could not write. */
export function unreported(troubles: readonly Trouble[]): readonly RunRef[] {
  return troubles.flatMap(({ key, instance, run }) =>
    key.startsWith("after:report:") && instance !== null && run !== null
      ? [{ instanceId: instance, runId: run }]
      : [],
  );
}
