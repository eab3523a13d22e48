import { readdir } from "node:fs/promises";
import { RunvaultError } from "../../model/error.ts";
import { isMissing } from "./fsync-files.ts";

/** Names in a folder, sorted; none where there is no such folder. */
export async function namesIn(dir: string): Promise<string[]> {
  try {
    return (await readdir(dir)).sort();
  } catch (error) {
    if (isMissing(error)) return [];
    throw RunvaultError.from(error, { place: { file: dir } });
  }
}
