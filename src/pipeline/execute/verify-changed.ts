import type { Archive } from "../../archive/archive.ts";
import { type FoundRun, foundRuns } from "../../archive/manifest/found-runs.ts";
import { verifyArchive } from "../../archive/verify/verify.ts";
import type { JobDuckDB } from "../../duckdb/job-duckdb.ts";
import { RunvaultError, usualHints } from "../../model/error.ts";
import { formatRun } from "../../model/run-argument.ts";
import type { RunRef } from "../../model/source.ts";
import { countText } from "../../model/text/plural.ts";

/**
 * Verifies runs like `runvault verify`, but counts only damage: missing proof was already reported. Returns null if
 * there is none; throws if the archive cannot be read.
 */
export async function verifyChanged(
  archive: Archive,
  runs: readonly RunRef[],
  options: { readonly deep: boolean; readonly duckdb: JobDuckDB; readonly signal: AbortSignal },
): Promise<RunvaultError | null> {
  const found: FoundRun[] = [];
  for await (const one of foundRuns(archive, [...runs])) found.push({ ...one, manifest: null });
  const damaged: { readonly run: RunRef; readonly why: string }[] = [];
  for await (const { run, checks } of verifyArchive(archive, { ...options, runs: found, leftovers: false })) {
    const first = checks.find(({ level }) => level === "damaged");
    if (first === undefined) continue;
    const { table, check, detail } = first;
    damaged.push({ run, why: `${table === null ? "" : `${table} `}${check}: ${detail}` });
  }
  const [worst] = damaged;
  if (worst === undefined) return null;
  const more = damaged.length === 1 ? "" : `; ${countText(damaged.length, "run")} in all`;
  const { instanceId, runId } = worst.run;
  const message = `${formatRun(worst.run)} is damaged: ${worst.why}${more}`;
  return new RunvaultError("archive_damaged", message, {
    place: { instance: instanceId, run: runId },
    hint: `\`runvault verify --repair\` rebuilds damaged Parquet. ${usualHints.archive_damaged}`,
  });
}
