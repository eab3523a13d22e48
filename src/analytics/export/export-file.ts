import { randomUUID } from "node:crypto";
import { open, realpath, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join, resolve, sep } from "node:path";
import { isMissing, syncFile, syncFolder } from "../../archive/storage/fsync-files.ts";
import { type ErrorDetails, RunvaultError } from "../../model/error.ts";
import { makeFolder } from "../../model/make-folder.ts";

/** What to do if an export cannot be written. */
export const exportHint = {
  hint: "Point --out (and TMPDIR, for temporary files) at a writable disk with free space, then run the same command again.",
};

/**
 * A file that is written under a temporary name and then renamed into place. Dispose it to remove an unfinished part. A
 * killed process leaves only a hidden file, never anything under the final name.
 */
export class ExportFile implements AsyncDisposable {
  readonly file: string;
  /** Leftover log files of a former database, which DuckDB would take for part of the new one. */
  readonly #logs: readonly string[];
  /** Where to write. */
  readonly aside: string;

  private constructor(file: string, logs: readonly string[]) {
    this.file = file;
    this.#logs = logs;
    this.aside = join(dirname(file), `.${basename(file)}.${randomUUID()}.part`);
  }

  /**
   * Throws `invalid_argument` if the file already exists and `force` is not set, if it is inside the folder `outside`,
   * or if it is a folder, pipe or device. Follows links. A database's log counts as an existing file, even without its
   * database.
   */
  static async create(
    named: string,
    { force, outside, isDatabase = false, option = "--out" }: PlaceOptions,
  ): Promise<ExportFile> {
    const there = await kindOf(named);
    const file = there === "nothing" ? named : await storing(named, () => realpath(named));
    if (there === "folder" || /[/\\]$/.test(named)) {
      throw new RunvaultError("invalid_argument", "--out names a folder, but a file is needed here", {
        place: { file },
        hint: "Name a file, for example in that folder.",
      });
    }
    if (there === "other") {
      throw new RunvaultError("invalid_argument", "--out names a pipe or a device, but a file is needed", {
        place: { file },
        hint: "Use `--out -` to write to standard output, and redirect that.",
      });
    }
    if (there === "file" && !force) {
      throw new RunvaultError("invalid_argument", "the output file already exists", {
        place: { file },
        hint: `Name another ${option}, or set --force to replace it.`,
      });
    }
    // a database opened through a link has its log beside the link
    const logs = isDatabase ? [...new Set([named, file])].flatMap(logsOf) : [];
    for (const log of logs) {
      if (force || (await kindOf(log)) === "nothing") continue;
      throw new RunvaultError(
        "invalid_argument",
        "the log of a database that no longer exists is beside the output file",
        {
          place: { file: log },
          hint: "DuckDB would add its contents to the new one. Name another --out, or set --force to remove it.",
        },
      );
    }
    await refuseInside(file, outside);
    await storing(file, () => makeFolder(dirname(file)));
    return new ExportFile(file, logs);
  }

  /** Writes pieces as they arrive. */
  async write(pieces: AsyncIterable<Uint8Array>): Promise<void> {
    await writeAside(this, pieces);
  }

  /** Syncs the file to disk; returns its size. */
  async sync(): Promise<number> {
    return await storing(this.file, async () => {
      await syncFile(this.aside);
      return (await stat(this.aside)).size;
    });
  }

  async putInPlace(): Promise<void> {
    await storing(this.file, async () => {
      // first: a kill in between loses what was never checkpointed, where the new file with an old log would be wrong
      for (const log of this.#logs) await rm(log, { force: true });
      await rename(this.aside, this.file);
      await syncFolder(dirname(this.file));
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // DuckDB leaves a log beside a database that it did not close
    for (const rest of [this.aside, ...logsOf(this.aside)]) await rm(rest, { force: true });
  }
}

interface PlaceOptions {
  /** Replaces an existing file. */
  readonly force: boolean;
  /** A folder in which the file must not be. */
  readonly outside: string;
  /** Default false. */
  readonly isDatabase?: boolean;
  /** The option that names the place; `--out` unless given. */
  readonly option?: string;
}

/** DuckDB's logs of changes that are not yet in the database: the usual one, and those of checkpoints and recovery. */
function logsOf(file: string): string[] {
  return [".wal", ".wal.checkpoint", ".wal.recovery"].map((ending) => `${file}${ending}`);
}

/** Writes pieces into a new file, `aside`, which will become `file`. */
export async function writeAside(
  { file, aside }: Pick<ExportFile, "file" | "aside">,
  pieces: AsyncIterable<string | Uint8Array>,
): Promise<void> {
  const handle = await storing(file, () => open(aside, "wx"));
  try {
    // errors of the producer pass unchanged
    for await (const piece of pieces) await storing(file, () => handle.writeFile(piece));
  } finally {
    await handle.close();
  }
}

/** Throws if the file is in the archive's folder, where readers and `verify` would take it for part of the archive. */
async function refuseInside(file: string, folder: string): Promise<void> {
  let above = dirname(resolve(file));
  let real: string | null = null;
  while (real === null) {
    real = await realpath(above).catch(() => null);
    if (above === dirname(above)) break;
    above = dirname(above);
  }
  const root = await realpath(folder).catch(() => null);
  // opening reports anything that is not a folder
  if (root === null) return;
  if (real !== root && !real?.startsWith(`${root}${sep}`)) return;
  throw new RunvaultError("invalid_argument", "--out is inside the archive", {
    place: { file },
    hint: "Name a file or folder outside it.",
  });
}

async function kindOf(file: string): Promise<"file" | "folder" | "other" | "nothing"> {
  try {
    const found = await stat(file);
    if (found.isDirectory()) return "folder";
    return found.isFile() ? "file" : "other";
  } catch (error) {
    if (isMissing(error)) return "nothing";
    throw RunvaultError.from(error, { place: { file }, ...exportHint });
  }
}

async function storing<T>(file: string, body: () => Promise<T>): Promise<T> {
  try {
    return await body();
  } catch (error) {
    const details: ErrorDetails = { place: { file }, ...exportHint };
    const code = (error as NodeJS.ErrnoException | null)?.code;
    if (code === "ENOTDIR" || code === "EEXIST" || code === "ENOENT") {
      throw new RunvaultError("invalid_argument", `--out: ${(error as Error).message}`, {
        cause: error,
        place: { file },
        hint: "Name another --out: part of this path is a file, not a folder.",
      });
    }
    throw RunvaultError.from(error, details);
  }
}
