import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { exit, RunvaultError } from "../../model/error.ts";

/** What a folder is, for whoever wants to write into it. */
export interface FolderLook {
  /** False where it would have to be made first. */
  readonly isThere: boolean;
  /** What keeps files from being made in it, or the folder itself from being made, in words; null where nothing does. */
  readonly fault: string | null;
  /** The exit status that this would lead to. */
  readonly exit: number;
}

/** Whether files can be made in a folder, or, where it is not there, in the nearest above it. Writes nothing. */
export async function lookAtFolder(folder: string): Promise<FolderLook> {
  let isThere = true;
  for (let at = folder; ; at = dirname(at)) {
    try {
      if (!(await stat(at)).isDirectory())
        return { isThere, fault: isThere ? "is a file, not a folder" : "is below a file", exit: exit.usage };
      await access(at, constants.W_OK | constants.X_OK);
      return { isThere, fault: null, exit: exit.done };
    } catch (error) {
      const { code = "unknown error" } = error as NodeJS.ErrnoException;
      if (code === "ENOENT" && dirname(at) !== at) {
        isThere = false;
        continue;
      }
      if (code === "ENOTDIR") return { isThere: false, fault: "is below a file", exit: exit.usage };
      const fault = isThere ? `cannot be written to (${code})` : `cannot be made (${code})`;
      return { isThere, fault, exit: RunvaultError.from(error).exit };
    }
  }
}
