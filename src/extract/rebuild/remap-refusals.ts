import type { Manifest, TableManifest } from "../../archive/manifest/manifest.ts";
import { holdingsOf } from "../../archive/manifest/table-view.ts";
import { RunvaultError } from "../../model/error.ts";
import type { RowMap } from "../../model/profile/row-map.ts";
import type { TableName } from "../../model/profile/table.ts";

function isSameTime(from: RowMap, to: RowMap): boolean {
  return JSON.stringify(from.columns.ts_event) === JSON.stringify(to.columns.ts_event);
}

/**
 * Throws `invalid_argument` if the stored rows do not say enough for another map, or if what was proven would not hold
 * for the new rows.
 */
export function refuseUnsureRemap(
  run: Manifest,
  name: TableName,
  table: TableManifest,
  from: RowMap,
  to: RowMap,
): void {
  const refuse = (why: string) =>
    new RunvaultError("invalid_argument", `${name} cannot be rebuilt with another profile: ${why}`, {
      place: { instance: run.instanceId, run: run.runId, table: name },
      hint: "The run is unchanged. Remove it with `runvault rm` and archive it again with the corrected profile.",
    });
  const lossy = Object.entries(from.columns).find(([, source]) => source.kind === "field" && source.lossy);
  if (lossy !== undefined) throw refuse(`${lossy[0]} is lossy in the profile that it was fetched with`);
  const { outcome, holding } = table.attempt;
  if (holding !== null && outcome !== "QUARANTINED") {
    throw refuse(
      outcome === "ok"
        ? "some of its stored rows were never proven"
        : `its latest attempt is ${outcome}, and the rows of that are not proven`,
    );
  }
  const isSame = isSameTime(from, to);
  const isByArrival = to.columns.seq?.kind === "derived" && to.ties === "arrival";
  const wasByArrival = from.columns.seq?.kind === "derived" && from.ties === "arrival";
  if (isByArrival && !(wasByArrival && isSame)) {
    throw refuse("the order in which rows with the same time arrived is no longer known (ties: arrival)");
  }
  if (isSame) return;
  for (const { certificate } of holdingsOf(table)) {
    if (certificate?.until != null)
      throw refuse(
        "ts_event changes while the run still goes on: it is not known up to which time it is complete",
      );
    if (certificate?.gatewayFrom != null)
      throw refuse(
        "ts_event changes, and the gateway no longer has the first rows: it is not known where those end",
      );
  }
}
