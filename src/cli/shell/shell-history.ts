import { constants } from "node:fs";
import { type FileHandle, mkdir, open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isMissing } from "../../archive/storage/fsync-files.ts";
import { visible } from "../../model/text/visible-text.ts";
import { stateFolder } from "../process/user-folder.ts";

/** Typed lines of this shell and earlier ones, in a file that only this user can read. */
export interface ShellHistory {
  /** Newest first, as readline expects. */
  readonly lines: readonly string[];
  add(line: string): Promise<void>;
}

/** Most lines kept. */
const mostLines = 1_000;

/** A larger file is rewritten with only the kept lines. */
const mostBytes = 1024 * 1024;

const { O_RDONLY, O_WRONLY, O_CREAT, O_APPEND, O_TRUNC, O_NONBLOCK } = constants;
const append = O_WRONLY | O_CREAT | O_APPEND;
const anew = O_WRONLY | O_CREAT | O_TRUNC;

/** The path of the history: RUNVAULT_HISTORY, or in the user's folder. */
export function historyFile(env: NodeJS.ProcessEnv): string {
  return env.RUNVAULT_HISTORY ?? join(stateFolder(env), "history");
}

/** Opens the history. One that cannot be read or written is reported once, and is empty. */
export async function openHistory(file: string, note: (text: string) => void): Promise<ShellHistory> {
  let works = true;
  const giveUp = (error: unknown) => {
    if (works)
      note(`note: the history cannot be kept: ${error instanceof Error ? error.message : String(error)}`);
    works = false;
  };
  const write = async (text: string, flags: number) => {
    if (!works) return;
    try {
      await using handle = await openAtOnce(file, flags);
      // a device such as /dev/null discards the history on purpose
      if ((await handle.stat()).isFile()) await handle.chmod(0o600);
      await handle.writeFile(text);
    } catch (error) {
      giveUp(error);
    }
  };
  await mkdir(dirname(file), { recursive: true, mode: 0o700 }).catch(() => {});
  const text = await lastOf(file).catch((error: unknown) => {
    if (!isMissing(error)) giveUp(error);
    return "";
  });
  const lines = text
    .split("\n")
    .filter((line) => line !== "")
    .slice(-mostLines);
  if (text.length > mostBytes / 2) await write(lines.map((line) => `${line}\n`).join(""), anew);
  return {
    // anything may have written to the file
    lines: lines.map(visible).reverse(),
    add: (line) => write(`${line}\n`, append),
  };
}

/** The end of the file, as far as needed; empty for a device. Throws ENOENT as the system does. */
async function lastOf(file: string): Promise<string> {
  await using handle = await openAtOnce(file, O_RDONLY);
  const found = await handle.stat();
  if (!found.isFile()) return "";
  const position = Math.max(0, found.size - mostBytes);
  const { buffer, bytesRead } = await handle.read({ buffer: Buffer.alloc(mostBytes), position });
  const text = buffer.toString("utf8", 0, bytesRead);
  // the first line may be cut
  return position === 0 ? text : text.slice(text.indexOf("\n") + 1);
}

/** Opens without blocking, as a FIFO would. Throws if it is not a file or device. */
async function openAtOnce(file: string, flags: number): Promise<FileHandle> {
  const handle = await open(file, flags | O_NONBLOCK, 0o600);
  const found = await handle.stat();
  if (found.isFile() || found.isCharacterDevice()) return handle;
  await handle.close();
  throw new Error(`${file} is not a regular file`);
}
