import type { Archive } from "../../archive/archive.ts";
import type { Manifest } from "../../archive/manifest/manifest.ts";
import { filesOf } from "../../archive/manifest/manifest-files.ts";
import { sizeOf } from "../../archive/storage/fsync-files.ts";
import type { Table } from "../../model/profile/table.ts";
import type { RunDescription } from "./run-description.ts";
import { isOfListedVersion, type WantedProof } from "./run-horizon.ts";
import { isSameBeginning } from "./same-beginning.ts";
import { listedAcceptances } from "./standing-acceptances.ts";

/**
 * What is known about an archived run from its list, its manifest and its file names alone. `current`: there is nothing to
 * do. `unvouched`: the same, but no version says that its rows are unchanged. `behind`: there is something to do.
 */
export type HeldStanding = "current" | "unvouched" | "behind";

/** Compares an archived run with what its source lists. */
export async function heldStanding(
  archive: Archive,
  committed: Manifest,
  run: RunDescription,
  wanted: readonly Table[],
  asked: WantedProof,
): Promise<HeldStanding> {
  const { open, isVouched } = listedAcceptances(committed, run, wanted);
  const isOfVersion = open.length === 0 || isOfListedVersion(committed, run, open, asked);
  if (isOfVersion === false) return "behind";
  // a run that began at another time is another run
  const { started } = committed.run;
  const isKnown = started !== null && run.started !== undefined;
  if (isKnown && !isSameBeginning(BigInt(started), run.started)) return "behind";
  // work of an interrupted job, or left by a commit that was killed
  if ((await sizeOf(archive.layout.pendingDir(run))) !== null) return "behind";
  if (!(await isWhole(archive, committed, run))) return "behind";
  return isOfVersion === null || !isVouched ? "unvouched" : "current";
}

/** Whether each file that a manifest names exists. */
export async function isWhole(
  { layout, store }: Archive,
  committed: Manifest,
  run: RunDescription,
): Promise<boolean> {
  const named = filesOf(committed);
  for (const folder of ["data", "quarantine"] as const) {
    if (named[folder].size === 0) continue;
    const present = new Set(await store.names(layout.committedKey(run, folder)));
    for (const name of named[folder]) if (!present.has(name)) return false;
  }
  return true;
}
