import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RunvaultError } from "./error.ts";

/** Makes a folder of our own, which nobody else can read, in the temporary folder. Throws `storage_…` with the remedy. */
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
