import type { ArchiveJob } from "../../extract/run/archive-run.ts";
import type { ArchiveRunsJob } from "../../extract/run/archive-runs.ts";
import type { Gateway } from "../../gateway/gateway.ts";
import type { ArchiveValues } from "./archive-values.ts";

/** What the command works with: the gateway from its options, and the clock. */
export interface ArchiveMeans extends Pick<ArchiveRunsJob, "clock" | "duckdb" | "retry" | "wait"> {
  readonly gateway: Gateway;
}

/** The settings of a job, from the options. */
export function settingsOf(values: ArchiveValues, clock: ArchiveJob["clock"]) {
  return {
    concurrency: values.concurrency,
    settleNs: BigInt(values.settle) * 1_000_000n,
    require: values.require,
    acceptShrink: values.acceptShrink,
    acceptQuarantine: values.acceptQuarantine,
    finalPass: values.finalPass,
    sourceMoved: values.sourceMoved,
    close: values.close,
    recheckBefore: recheckBefore(values.recheck, clock),
    fingerprint: values.fingerprint,
    ...(values.segmentBytes === undefined ? {} : { segmentBytes: values.segmentBytes }),
    ...(values.sliceRows === undefined ? {} : { sliceRows: values.sliceRows }),
  };
}

/** Runs last checked before this instant are checked again; null for none. */
function recheckBefore(age: ArchiveValues["recheck"], clock: ArchiveJob["clock"]): bigint | null {
  if (age === undefined) return null;
  return clock() - BigInt(age === true ? 0 : age) * 1_000_000n;
}
