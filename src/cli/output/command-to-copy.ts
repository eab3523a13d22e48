import { defaultArchive } from "../options/default-archive.ts";
import type { Session } from "../process/session.ts";
import { shellWord } from "./shell-word.ts";

/** The folders that a command was given. */
export interface Folders {
  readonly archive: string;
  readonly scratch?: string | undefined;
}

/** `runvault archive …` with these words behind it, as a POSIX shell takes them; words are escaped here. */
export type CommandToCopy = (name: string, ...words: readonly string[]) => string;

/**
 * Commands that a report prints for copying. They work in the folders of the command that prints them: those it was
 * given by flags are repeated, and those that the environment names, or nobody, are left to it.
 */
export function commandsToCopy(
  { archive, scratch }: Folders,
  { terminal }: Pick<Session, "terminal">,
): CommandToCopy {
  const { RUNVAULT_ARCHIVE: usual, RUNVAULT_SCRATCH: usualScratch } = terminal.env;
  const named = ["--archive", archive];
  const inScratch = scratch === undefined || scratch === usualScratch ? [] : ["--scratch", scratch];
  return (name, ...words) => {
    // `jobs` reads no folder that nobody named
    const isUsual = archive === (usual || (name === "jobs" ? null : defaultArchive));
    const folders = name === "jobs" ? (isUsual ? [] : named) : [...(isUsual ? [] : named), ...inScratch];
    return ["runvault", name, ...[...folders, ...words].map(shellWord)].join(" ");
  };
}
