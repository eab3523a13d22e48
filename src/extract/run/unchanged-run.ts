import type { Archive } from "../../archive/archive.ts";
import type { Manifest } from "../../archive/manifest/manifest.ts";
import { sizeOf } from "../../archive/storage/fsync-files.ts";
import type { Table } from "../../model/profile/table.ts";
import { isWhole } from "./held-standing.ts";
import type { RunDescription } from "./run-description.ts";
import { isOfListedVersion, type WantedProof } from "./run-horizon.ts";
import { isSameBeginning } from "./same-beginning.ts";
import { listedAcceptances } from "./standing-acceptances.ts";

/**
 * The manifest of a run that needs no work, judged by its list, its manifest and its file names alone, without its lock or
 * a request. Null if these do not settle it: then a job looks closer under the lock.
 */
export async function unchangedRun(
  archive: Archive,
  run: RunDescription,
  source: string,
  wanted: readonly Table[],
  asked: WantedProof,
): Promise<Manifest | null> {
  const { layout } = archive;
  const committed = await archive.manifest(run);
  if (committed === null || committed.source !== source || committed.former !== undefined) return null;
  // a run that began at another time is another run
  const { started } = committed.run;
  if (!run.started || started === null || !isSameBeginning(BigInt(started), run.started)) return null;
  const { open, isVouched } = listedAcceptances(committed, run, wanted);
  if (!isVouched) return null;
  if (open.length > 0 && isOfListedVersion(committed, run, open, asked) !== true) return null;
  // work of an interrupted job, or left by a commit that was killed
  if ((await sizeOf(layout.pendingDir(run))) !== null) return null;
  return (await isWhole(archive, committed, run)) ? committed : null;
}
