import { constants } from "node:fs";
import { mkdir, open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { visible } from "../model/visible-text.ts";
import { stateFolder } from "./user-folder.ts";

/** Lines that were typed, of this shell and of those before it, in a file that only this user can read. */
export interface ShellHistory {
  /** The newest first, as readline wants them. */
  readonly lines: readonly string[];
  add(line: string): Promise<void>;
}

/** Lines that are remembered. */
const mostLines = 1_000;

/** A file larger than that is begun anew with the lines that are remembered. */
const mostBytes = 1024 * 1024;

const behind = constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND;
const again = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC;
/** Nobody waits at a FIFO for the other end. */
const unwaited = constants.O_NONBLOCK;

/** Where the history is, by RUNVAULT_HISTORY or in the user's folder. */
export function historyFile(env: NodeJS.ProcessEnv): string {
  return env.RUNVAULT_HISTORY ?? join(stateFolder(env), "history");
}

/** Opens the history; one that cannot be read or written is told once, and is empty. */
export async function openHistory(file: string, note: (text: string) => void): Promise<ShellHistory> {
  let works = true;
  const append = async (text: string, flags: number) => {
    try {
      await using handle = await open(file, flags | unwaited, 0o600);
      // a device takes everything and keeps nothing, as whoever names one wants it
      if ((await handle.stat()).isFile()) await handle.chmod(0o600);
      await handle.writeFile(text);
    } catch (error) {
      if (works)
        note(`note: the history cannot be kept: ${error instanceof Error ? error.message : String(error)}`);
      works = false;
    }
  };
  await mkdir(dirname(file), { recursive: true, mode: 0o700 }).catch(() => {});
  const text = await lastOf(file);
  const lines = text
    .split("\n")
    .filter((line) => line !== "")
    .slice(-mostLines);
  if (text.length > mostBytes / 2) await append(lines.map((line) => `${line}\n`).join(""), again);
  return {
    // what stands in the file may have been put there by anything
    lines: lines.map(visible).reverse(),
    add: async (line) => {
      if (works) await append(`${line}\n`, behind);
    },
  };
}

/** The end of the file, as much as counts; nothing where there is no file. */
async function lastOf(file: string): Promise<string> {
  try {
    await using handle = await open(file, constants.O_RDONLY | unwaited);
    const found = await handle.stat();
    if (!found.isFile()) return "";
    const position = Math.max(0, found.size - mostBytes);
    const { buffer, bytesRead } = await handle.read({ buffer: Buffer.alloc(mostBytes), position });
    const text = buffer.toString("utf8", 0, bytesRead);
    // the first line may have lost its beginning
    return position === 0 ? text : text.slice(text.indexOf("\n") + 1);
  } catch {
    return "";
  }
}
