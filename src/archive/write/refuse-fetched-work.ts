import { RunvaultError } from "../../model/error.ts";
import type { Archive } from "../archive.ts";
import type { Manifest } from "../manifest/manifest.ts";
import { holdsFetchedWork } from "./run-journal.ts";

/** Throws `locked` if an interrupted job left rows that another commit would lose. Only under the run's lock. */
export async function refuseFetchedWork({ layout }: Archive, committed: Manifest): Promise<void> {
  if (!(await holdsFetchedWork(layout, committed, committed))) return;
  throw new RunvaultError("locked", "an interrupted job left rows of this run that are not committed yet", {
    place: { instance: committed.instanceId, run: committed.runId, file: layout.pendingDir(committed) },
    hint: "Finish the job with `runvault archive`, or delete that folder; the rows must then be fetched again, if a gateway still has them.",
  });
}
