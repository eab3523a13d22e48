import type { ArchiveJob } from "../../extract/run/archive-run.ts";
import type { ArchiveRunsJob } from "../../extract/run/archive-runs.ts";
import type { Gateway } from "../../gateway/gateway.ts";
import type { ArchiveValues } from "./archive-values.ts";

/** What the command works with: the gateway that its options name, and the time. */
export interface ArchiveMeans extends Pick<ArchiveRunsJob, "clock" | "duckdb" | "retry" | "wait"> {
  readonly gateway: Gateway;
}

/** What a job goes by, as the options say. */
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

/** The instant before which what was last checked is asked again; null where nothing is. */
function recheckBefore(age: ArchiveValues["recheck"], clock: ArchiveJob["clock"]): bigint | null {
  if (age === undefined) return null;
  return clock() - BigInt(age === true ? 0 : age) * 1_000_000n;
}
