import { createHash } from "node:crypto";
import { lstat, realpath } from "node:fs/promises";
import { dirname, join, resolve, sep } from "node:path";
import { RunvaultError } from "../../model/error.ts";
import { makeFolder, privateFolder, setFolderBits } from "../../model/make-folder.ts";

/**
 * An archive's own folder in a scratch folder, by the archive's identity and path, because copies of an archive share
 * the identity, and two jobs must not share work. A moved archive starts a new one. Throws `invalid_argument` if the
 * scratch folder is in the archive.
 */
export async function scratchArea(scratch: string, dir: string, id: string): Promise<string> {
  const root = await realOf(dir);
  const real = await realOf(scratch);
  if (real === root || real.startsWith(`${root}${sep}`)) {
    throw new RunvaultError("invalid_argument", "the scratch folder is inside the archive", {
      place: { file: scratch },
      hint: "Set --scratch or RUNVAULT_SCRATCH to a folder outside the archive, or leave it out: work then goes to pending/ and staging/.",
    });
  }
  const place = createHash("sha256").update(root).digest("hex").slice(0, 8);
  return join(resolve(scratch), `${id}-${place}`);
}

/** Creates such a folder, private to its owner. Throws `storage_forbidden` if it belongs to someone else. */
export async function makeScratchArea(area: string): Promise<void> {
  await makeFolder(dirname(area), privateFolder);
  await makeFolder(area, privateFolder);
  const found = await lstat(area);
  const user = process.geteuid?.() ?? found.uid;
  if (!found.isDirectory() || found.uid !== user) {
    throw new RunvaultError(
      "storage_forbidden",
      "the scratch folder of this archive belongs to another user",
      {
        place: { file: area },
        hint: "Give each user their own --scratch (RUNVAULT_SCRATCH), or remove this folder if you know whose it is.",
      },
    );
  }
  await setFolderBits(area, privateFolder);
}

/** The real path of a folder, or of its existing part. */
async function realOf(folder: string): Promise<string> {
  let rest = "";
  for (let part = resolve(folder); ; part = dirname(part)) {
    try {
      return join(await realpath(part), rest);
    } catch {
      // creating it reports what is wrong
      if (dirname(part) === part) return resolve(folder);
      rest = join(part.slice(dirname(part).length), rest);
    }
  }
}
