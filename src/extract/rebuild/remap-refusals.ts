import type { Manifest, TableManifest } from "../../archive/manifest/manifest.ts";
import { holdingsOf } from "../../archive/manifest/table-view.ts";
import { RunvaultError } from "../../model/error.ts";
import type { RowMap } from "../../model/profile/row-map.ts";
import type { TableName } from "../../model/profile/table.ts";

/** Whether two maps take the time of a row from the same place in the same way. */
function isSameTime(from: RowMap, to: RowMap): boolean {
  return JSON.stringify(from.columns.ts_event) === JSON.stringify(to.columns.ts_event);
}

/**
 * Throws `invalid_argument` where the rows that are held do not say enough for another map, or where what was proven would not be
 * proven of the rows it makes.
 */
export function refuseUnsureRemap(
  run: Manifest,
  name: TableName,
  table: TableManifest,
  from: RowMap,
  to: RowMap,
): void {
  const refuse = (why: string) =>
    new RunvaultError("invalid_argument", `${name} cannot be rebuilt by another profile: ${why}`, {
      place: { instance: run.instanceId, run: run.runId, table: name },
      hint: "Nothing of the run has changed. Remove the run with `runvault rm` and archive it anew by the corrected profile.",
    });
  const lossy = Object.entries(from.columns).find(([, source]) => source.kind === "field" && source.lossy);
  if (lossy !== undefined) throw refuse(`${lossy[0]} is lossy in the profile that it came by`);
  const { outcome, holding } = table.attempt;
  if (holding !== null && outcome !== "QUARANTINED") {
    throw refuse(
      outcome === "ok"
        ? "rows of it that are kept were never proven"
        : `rows of its latest attempt, which is ${outcome}, are not proven`,
    );
  }
  const isSame = isSameTime(from, to);
  const isByArrival = to.columns.seq?.kind === "derived" && to.ties === "arrival";
  const wasByArrival = from.columns.seq?.kind === "derived" && from.ties === "arrival";
  if (isByArrival && !(wasByArrival && isSame)) {
    throw refuse("in which order rows of one time arrived is not known any more (ties: arrival)");
  }
  if (isSame) return;
  for (const { certificate } of holdingsOf(table)) {
    if (certificate?.until != null)
      throw refuse("ts_event changes, and the run still goes on: up to which time it is whole is not known");
    if (certificate?.gatewayFrom != null)
      throw refuse(
        "ts_event changes, and the gateway no longer has its first rows: where they end is not known",
      );
  }
}
