import type { Archive } from "../archive/archive.ts";
import type { ArchiveJob } from "../extract/archive-run.ts";
import { RunvaultError } from "../model/error.ts";
import { tableNamed } from "../model/table.ts";
import type { ArchiveValues } from "./archive-values.ts";

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

/** Throws `invalid_argument` when --decimal asks for other types than an archive made before has. */
export function refuseOtherTypes(archive: Archive, asked: ArchiveValues["decimal"]): void {
  for (const [table, types] of Object.entries(asked ?? {})) {
    for (const [column, type] of Object.entries(types)) {
      const kept = archive.exactTypes(tableNamed(table).name)[column];
      if (kept === type) continue;
      throw new RunvaultError(
        "invalid_argument",
        `--decimal ${table}.${column}: this archive keeps it as ${kept}, not as ${type}`,
        {
          place: { file: archive.dir },
          hint: "Types are fixed when an archive is made: leave --decimal out, or point --archive at a new folder.",
        },
      );
    }
  }
}
