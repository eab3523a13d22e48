import { defaultArchive } from "../options/default-archive.ts";
import type { Session } from "../process/session.ts";
import { shellWord } from "./shell-word.ts";

/** The folders of a command. */
export interface Folders {
  readonly archive: string;
  readonly scratch?: string | undefined;
}

/** `runvault archive …` with these words after it, escaped for a POSIX shell. */
export type CommandToCopy = (name: string, ...words: readonly string[]) => string;

/**
 * Commands that a report prints for copying. They work in the folders of the printing command: folders from its flags
 * are repeated, those from the environment or defaults are left out.
 */
export function commandsToCopy(
  { archive, scratch }: Folders,
  { terminal }: Pick<Session, "terminal">,
): CommandToCopy {
  const { RUNVAULT_ARCHIVE: usual, RUNVAULT_SCRATCH: usualScratch } = terminal.env;
  const named = ["--archive", archive];
  const inScratch = scratch === undefined || scratch === usualScratch ? [] : ["--scratch", scratch];
  return (name, ...words) => {
    // `jobs` has no default folder
    const isUsual = archive === (usual || (name === "jobs" ? null : defaultArchive));
    const folders = name === "jobs" ? (isUsual ? [] : named) : [...(isUsual ? [] : named), ...inScratch];
    return ["runvault", name, ...[...folders, ...words].map(shellWord)].join(" ");
  };
}
