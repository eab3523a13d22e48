import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { type Archive, findArchive } from "../../archive/archive.ts";
import { diskRoom, hasRoom, leastRoom, roomText } from "../../extract/fetch/disk-need.ts";
import { exit, RunvaultError } from "../../model/error.ts";
import type { JobFile } from "../file/job-files.ts";
import { type Finding, failed, wrong } from "./finding.ts";
import { lookAtFolder } from "./look-at-folder.ts";

/** A job's archive before an execution. */
export interface ArchiveLook {
  /** Null if it does not exist yet or cannot be used. */
  readonly archive: Archive | null;
  readonly isUsable: boolean;
  /** On the fullest disk; null if unknown. */
  readonly freeBytes: number | null;
  readonly findings: readonly Finding[];
}

/** Checks that an archive can be opened or created, written to, and has room. Writes nothing. */
export async function lookAtArchive(file: JobFile): Promise<ArchiveLook> {
  const { archive: dir, scratch } = file.job;
  const findings: Finding[] = [];
  let archive: Archive | null = null;
  try {
    archive = await findArchive(dir, { scratch });
    if (archive !== null) findings.push(...(await unwritable(file, dir)));
  } catch (thrown) {
    const error = RunvaultError.from(thrown);
    const key = scratch !== undefined && error.place.file?.startsWith(scratch) ? "scratch" : "archive";
    const own = error.hint?.includes("--archive") === false ? error.hint : usualHint;
    findings.push(failed(file, [key], error, own));
  }
  const folders = [
    ["archive", dir],
    ...(scratch === undefined ? [] : [["scratch", scratch] as const]),
  ] as const;
  for (const [key, folder] of folders) {
    if (findings.some(({ fault }) => fault.key === key)) continue;
    const look = await lookAtFolder(folder);
    if (look.fault !== null)
      findings.push(wrong(file, [key], `the folder ${look.fault}`, accessHint, look.exit));
  }
  const freeBytes = await roomOf(
    file,
    folders.map(([, folder]) => folder),
    findings,
  );
  return {
    archive,
    isUsable: findings.every(({ exit: status }) => status === exit.done),
    freeBytes,
    findings,
  };
}

const usualHint = "Name an archive, or a folder that is empty or does not exist yet.";
const accessHint = "Give the job's user access to it, or name another.";

/** Folders of the archive that the job could not write to. */
async function unwritable(file: JobFile, dir: string): Promise<readonly Finding[]> {
  const names = await readdir(dir, { withFileTypes: true });
  const folders = names.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  for (const name of folders) {
    const { fault, exit: status } = await lookAtFolder(join(dir, name));
    if (fault !== null) return [wrong(file, ["archive"], `${name}/ in it ${fault}`, accessHint, status)];
  }
  return [];
}

async function roomOf(
  file: JobFile,
  folders: readonly string[],
  findings: Finding[],
): Promise<number | null> {
  try {
    const room = leastRoom(await Promise.all(folders.map(diskRoom)));
    if (!hasRoom(room, 1))
      findings.push(
        wrong(file, ["archive"], roomText(room), "Free some space, or name a larger disk.", exit.storage),
      );
    return room.free;
  } catch {
    // an unreadable folder is already reported
    return null;
  }
}
