import type { RunRef } from "../../model/source.ts";
import { type Nanoseconds, wallClock } from "../../model/time.ts";
import type { Archive } from "../archive.ts";
import { consistentRuns, type FoundRun } from "../manifest/found-runs.ts";
import type { Manifest, TableState } from "../manifest/manifest.ts";
import { holdingsOf } from "../manifest/table-view.ts";
import { pendingWork } from "../write/pending-work.ts";

export interface OldRunsChoice {
  /** Milliseconds since the runs ended. */
  readonly ageMs: number;
  /** All if empty. */
  readonly instances: readonly string[];
  /** Whether to include runs that are not COMPLETE. */
  readonly anyState: boolean;
}

export type OldRun =
  | { readonly kind: "remove"; readonly run: RunRef; readonly end: Nanoseconds }
  /** Old enough, but kept because of its state. */
  | { readonly kind: "spared"; readonly run: RunRef; readonly state: TableState | "pending" }
  /** A run whose end is in the future. */
  | { readonly kind: "future" }
  /** A run of unknown age. */
  | { readonly kind: "unreadable"; readonly found: FoundRun };

/** Clocks and time zones differ by less. */
const nsPerDay = 86_400_000_000_000n;

/**
 * Runs that ended so long ago, and whether they may be removed. Only COMPLETE runs go by age alone: a growing or
 * incomplete run may still be needed. Unreadable or contradictory manifests never count as COMPLETE. Throws the
 * signal's reason.
 */
export async function* oldRuns(
  archive: Archive,
  { ageMs, instances, anyState }: OldRunsChoice,
  signal: AbortSignal,
): AsyncGenerator<OldRun, void> {
  // throws if a folder is a link
  await archive.manifestFiles();
  const now = wallClock();
  const before = now - BigInt(ageMs) * 1_000_000n;
  // with such a link, jobs refuse to remove anything
  const pending = new Set((await pendingWork(archive, () => {})).map(keyOf));
  const choices = [...new Set(instances)].map((instanceId) => ({ instanceId }));
  for await (const found of consistentRuns(archive, choices)) {
    signal.throwIfAborted();
    const { manifest } = found;
    if (manifest === null) {
      yield { kind: "unreadable", found };
      continue;
    }
    const end = endOf(manifest);
    if (end > now + nsPerDay) yield { kind: "future" };
    if (end > before) continue;
    const { instanceId, runId } = manifest;
    const run = { instanceId, runId };
    const state = pending.has(keyOf(run)) ? "pending" : manifest.state;
    yield anyState || state === "COMPLETE" ? { kind: "remove", run, end } : { kind: "spared", run, state };
  }
}

/**
 * When a run ended, in nanoseconds: the end by its gateway, but not before its start or its newest row. So a gateway
 * that says 1970 for lack of an end makes no run old. Without a plausible end, when the run was last committed.
 */
function endOf({ run, tables, committedAt }: Manifest): bigint {
  const held = Object.values(tables).flatMap(holdingsOf);
  const newest = held.flatMap(({ parquet }) => parquet.map(({ last }) => last.ts));
  const shown = [...(run.started === null ? [] : [run.started]), ...newest];
  if (run.ended !== null && shown.length > 0) {
    return [run.ended, ...shown].map(BigInt).reduce((a, b) => (a > b ? a : b));
  }
  const committedMs = Date.parse(committedAt);
  // an unreadable time never counts as old
  return Number.isNaN(committedMs) ? wallClock() : BigInt(committedMs) * 1_000_000n;
}

function keyOf({ instanceId, runId }: RunRef): string {
  return JSON.stringify([instanceId, runId]);
}
