import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { exit, RunvaultError } from "../../model/error.ts";

/** A folder from the view of a writer. */
export interface FolderLook {
  /** False if it would have to be created. */
  readonly isThere: boolean;
  /** Why it, or files in it, cannot be created, in words; null if they can. */
  readonly fault: string | null;
  /** The resulting exit status. */
  readonly exit: number;
}

/**
 * Whether files can be created in a folder or, if it does not exist, in its nearest existing parent. Writes nothing.
 */
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
      const fault = isThere ? `cannot be written to (${code})` : `cannot be created (${code})`;
      return { isThere, fault, exit: RunvaultError.from(error).exit };
    }
  }
}
