import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RunvaultError } from "./error.ts";

/** Creates a private folder in the temporary folder. Throws `storage_…` with a hint. */
export async function makeTemporaryFolder(name: string): Promise<string> {
  try {
    return await mkdtemp(join(tmpdir(), `runvault-${name}-`));
  } catch (cause) {
    const { code } = RunvaultError.from(cause);
    throw new RunvaultError(code, "the temporary folder is not writable", {
      cause,
      place: { file: tmpdir() },
      hint: "Set TMPDIR to a writable folder on a disk with free space.",
    });
  }
}
