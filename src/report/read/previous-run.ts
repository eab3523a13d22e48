import type { MeasureOptions } from "../../analytics/metrics/measure-runs.ts";
import { measureRuns } from "../../analytics/metrics/measure-runs.ts";
import type { MetricsRun } from "../../analytics/metrics/metrics-document.ts";
import type { Archive } from "../../archive/archive.ts";
import type { Manifest } from "../../archive/manifest/manifest.ts";
import { RunvaultError } from "../../model/error.ts";

/** The figures of the previous run, or why there are none. */
export type PreviousRun = { readonly told: MetricsRun } | { readonly reason: string };

/**
 * The figures of the same instance's previous run, by start, or why they cannot be computed; null if the archive has no
 * such run.
 */
export async function previousRun(
  archive: Archive,
  { instanceId, runId, run }: Manifest,
  options: Omit<MeasureOptions, "onRun">,
): Promise<PreviousRun | null> {
  if (run.started === null) return null;
  const started = BigInt(run.started);
  const earlier = (await archive.manifests())
    .filter((other) => other.instanceId === instanceId && other.runId !== runId && other.run.started !== null)
    .filter((other) => BigInt(other.run.started!) < started)
    .sort((a, b) => Number(BigInt(b.run.started!) - BigInt(a.run.started!)) || (a.runId < b.runId ? 1 : -1));
  const [last] = earlier;
  if (last === undefined) return null;
  try {
    const { runs } = await measureRuns(archive, [last], options);
    return { told: runs[0]! };
  } catch (error) {
    if (!(error instanceof RunvaultError)) throw error;
    if (error.code !== "incomplete" && error.code !== "invalid_argument") throw error;
    return { reason: `the previous run, ${last.runId}, is not compared: ${error.message}` };
  }
}
