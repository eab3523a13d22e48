import { findArchive } from "../../archive/archive.ts";
import { jobsWithRecords, recordPlaces } from "../../pipeline/record/read-records.ts";
import { defaultArchive } from "../options/default-archive.ts";

/** Most ids that Tab looks for. */
const mostIds = 50;

/** Possible arguments of `runvault jobs`. */
export interface JobWords {
  readonly names: readonly string[];
  /** Of the newest executions, for `show`. */
  readonly ids: readonly string[];
}

/** Jobs and executions in the archive of a command line, from file names alone; empty without an archive. */
export async function jobWords(
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<JobWords> {
  try {
    const archive = await findArchive(archiveIn(words) ?? (env.RUNVAULT_ARCHIVE || defaultArchive));
    if (archive === null) return { names: [], ids: [] };
    const names = await jobsWithRecords(archive.layout);
    if (!words.slice(0, -1).includes("show")) return { names, ids: [] };
    const places = await Promise.all(names.map((name) => recordPlaces(archive.layout, name, () => {})));
    const newest = places.flat().sort((a, b) => b.began.getTime() - a.began.getTime());
    return { names, ids: newest.slice(0, mostIds).map(({ id }) => id) };
  } catch {
    // pressing Tab must not print an error
    return { names: [], ids: [] };
  }
}

function archiveIn(words: readonly string[]): string | undefined {
  const at = words.lastIndexOf("--archive");
  return at < 0 ? undefined : words[at + 1];
}
