import { RunvaultError } from "../../model/error.ts";
import type { TableName } from "../../model/profile/table.ts";
import { acceptanceOf } from "./acceptance.ts";
import type { Manifest, TableManifest } from "./manifest.ts";
import { isPresent, shownView, type TableView } from "./table-view.ts";

/**
 * A table as its rows are served. Throws `incomplete` if nothing is proven, `history_unavailable` if the run has no
 * such table.
 */
export function servedTable(manifest: Manifest, name: TableName, allowIncomplete: boolean): TableView {
  const table = manifest.tables[name];
  const shown = shownView(table, allowIncomplete);
  if (isPresent(shown)) return shown;
  const why =
    table === undefined
      ? `${name} of this run is not archived`
      : shown !== undefined
        ? `the run has no ${name}`
        : `${name} of this run is ${table.state}, and nothing of it is proven${acceptedSo(table)}`;
  const isHeld = table !== undefined && shown === undefined;
  const hint = isHeld
    ? "Archive the run again; with --allow-incomplete the server serves unfinished tables as they are."
    : "The run's storage facts list its tables.";
  throw new RunvaultError(isHeld ? "incomplete" : "history_unavailable", why, {
    place: { instance: manifest.instanceId, run: manifest.runId, table: name },
    hint,
  });
}

function acceptedSo(table: TableManifest): string {
  const accepted = acceptanceOf(table);
  return accepted === null ? "" : `; its operator keeps it so: ${accepted.reason}`;
}
