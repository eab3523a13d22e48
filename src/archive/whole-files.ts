import { lstat, readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import PQueue from "p-queue";
import { z } from "zod";
import { RunvaultError } from "../model/error.ts";
import { parseJson } from "../model/outside-json.ts";
import type { RunRef } from "../model/source.ts";
import { mostBytes, readArchiveText } from "./archive-file.ts";
import { isMissing, replaceUnsynced } from "./durable.ts";
import { hashArchiveFile } from "./file-hash.ts";
import type { Layout } from "./layout.ts";
import { permissionsAt } from "./permissions.ts";
import { lstatOrNull, makeRealFolder, misplaced, requireRealFolder } from "./real-folder.ts";
import { markOf } from "./storage/file-mark.ts";

/** A file as the manifest of its run promises it. No two files of a run share a name. */
export interface CommittedFile {
  /** Where the run has it: among its committed files, or among the rows set aside. */
  readonly folder: "data" | "quarantine";
  readonly file: string;
  readonly storedBytes: number;
  readonly sha256: string;
}

/** What to do about a committed file that is missing, or not what was committed. */
export const damagedHint =
  "Run `runvault verify --repair` on the run: it makes Parquet again from segments, and says what has to be archived again.";

/** Committed files as a manifest lists them. */
export function inData(files: readonly Omit<CommittedFile, "folder">[]): CommittedFile[] {
  return files.map(({ file, storedBytes, sha256 }) => ({ folder: "data", file, storedBytes, sha256 }));
}

/** What is wrong with a file, or in the way of its folder; null where nothing is. */
type Fault = string | RunvaultError | null;

/** The hash of a file, and the mark that the file had then. */
interface Seen {
  readonly mark: string;
  readonly sha256: string;
}

const cacheSchema = z.strictObject({
  format: z.literal(1),
  files: z.record(z.string(), z.strictObject({ mark: z.string(), sha256: z.string() })),
});

/** Files looked at at once: enough to keep the disk busy while one is hashed. */
const atOnce = 4;

/** A write within the same tick of the file system's clock leaves a file's mark as it was: younger files are not remembered. */
const tickMs = 100;

/**
 * Sees to it that committed files are what was committed before their rows are used: a Parquet page that DuckDB wrote has
 * no checksum, so that flipped bytes give wrong numbers without a word. Each file is hashed once, and again when its
 * inode, size, mtime or ctime is another. What was found is remembered here and, where the archive can be written, in
 * `cache/`, for the next command. `verify` goes by none of this.
 */
export class WholeFiles {
  readonly #layout: Layout;
  /** By cache file, what is known of the files of a run. */
  readonly #known = new Map<string, Promise<Map<string, Seen>>>();
  readonly #queue = new PQueue({ concurrency: atOnce });

  constructor(layout: Layout) {
    this.#layout = layout;
  }

  /**
   * Throws `archive_damaged` with the first of these files that is missing or is not, byte for byte, what was committed;
   * the signal's reason once it aborts.
   */
  async require(run: RunRef, files: readonly CommittedFile[], signal?: AbortSignal): Promise<void> {
    for (const [index, fault] of (await this.#faults(run, files, signal)).entries()) {
      if (fault === null) continue;
      const { instanceId: instance, runId } = run;
      // what stands in the way of a folder is told as it is: no repair mends that
      if (fault instanceof RunvaultError) throw fault.at({ instance, run: runId });
      throw new RunvaultError("archive_damaged", `a committed file is damaged: ${fault}`, {
        place: { instance, run: runId, file: this.#path(run, files[index]!) },
        hint: damagedHint,
      });
    }
  }

  /** Those of the files that are missing, or are not what was committed; each is hashed, unless it was before. */
  async damagedOf<File extends CommittedFile>(run: RunRef, files: readonly File[]): Promise<File[]> {
    const faults = await this.#faults(run, files, undefined);
    return files.filter((_, index) => faults[index] !== null);
  }

  /** Those that are missing, have another size, or were found to have other bytes: what shows without hashing the rest. */
  async lostOf<File extends CommittedFile>(run: RunRef, files: readonly File[]): Promise<File[]> {
    const known = await this.#knownOf(run);
    const suspects: File[] = [];
    for (const file of files) {
      const seen = known.get(file.file);
      const isSuspect = seen !== undefined && seen.sha256 !== file.sha256;
      if (isSuspect || (await this.#sizeFault(run, file)) !== null) suspects.push(file);
    }
    return suspects.length === 0 ? [] : await this.damagedOf(run, suspects);
  }

  async #faults(
    run: RunRef,
    files: readonly CommittedFile[],
    signal: AbortSignal | undefined,
  ): Promise<Fault[]> {
    const known = await this.#knownOf(run);
    let isNew = false;
    const folders = new Map<CommittedFile["folder"], Promise<RunvaultError | null>>();
    const folderFault = (folder: CommittedFile["folder"]) => {
      const looked = folders.get(folder) ?? this.#folderFault(run, folder);
      folders.set(folder, looked);
      return looked;
    };
    const look = async (file: CommittedFile) => {
      signal?.throwIfAborted();
      const misplacedFolder = await folderFault(file.folder);
      if (misplacedFolder !== null) return misplacedFolder;
      const { fault, seen } = await this.#look(run, file, known.get(file.file), signal);
      if (seen === undefined) return fault;
      known.set(file.file, seen);
      isNew = true;
      return fault;
    };
    const faults = await Promise.allSettled(files.map((file) => this.#queue.add(() => look(file))));
    if (isNew) await this.#remember(run, known);
    return faults.map((fault) => {
      if (fault.status === "rejected") throw fault.reason;
      return fault.value;
    });
  }

  /** What is wrong with a file, null where it is as promised; and what is to be remembered of it, where that is new. */
  async #look(
    run: RunRef,
    file: CommittedFile,
    known: Seen | undefined,
    signal: AbortSignal | undefined,
  ): Promise<{ readonly fault: Fault; readonly seen?: Seen }> {
    const path = this.#path(run, file);
    const fault = await this.#sizeFault(run, file);
    if (fault !== null) return { fault };
    const mark = await markOf(path);
    // what is remembered as damaged is looked at again: the memory, too, may be
    if (mark !== null && known?.mark === mark && known.sha256 === file.sha256) return { fault: null };
    const sha256 = await this.#hashOf(path, file, signal);
    if (mark === null || sha256 === null) return { fault: "it is missing" };
    const isWhole = sha256 === file.sha256;
    const seen = { mark, sha256 };
    const isLasting = (await markOf(path)) === mark && (!isWhole || (await isSettled(path)));
    return {
      fault: isWhole ? null : `its SHA-256 is ${sha256}, but the manifest says ${file.sha256}`,
      ...(isLasting ? { seen } : {}),
    };
  }

  #path(run: RunRef, { folder, file }: Pick<CommittedFile, "folder" | "file">): string {
    return join(this.#folder(run, folder), file);
  }

  #folder(run: RunRef, folder: CommittedFile["folder"]): string {
    return folder === "data" ? this.#layout.dataDir(run) : this.#layout.quarantineDir(run);
  }

  /** What is in the way of the folder, as a link is; null where nothing is. */
  async #folderFault(run: RunRef, folder: CommittedFile["folder"]): Promise<RunvaultError | null> {
    try {
      await requireRealFolder(this.#layout, this.#folder(run, folder));
      return null;
    } catch (error) {
      if (error instanceof RunvaultError && error.code === "archive_damaged") return error;
      throw error;
    }
  }

  /** What shows without reading a file: that it is missing, is no file, or has another size; null where none is so. */
  async #sizeFault(run: RunRef, file: CommittedFile): Promise<string | null> {
    const path = this.#path(run, file);
    const found = await lstatOrNull(path);
    if (found === null) return "it is missing";
    if (!found.isFile()) return misplaced(path, found, "file").message;
    const { storedBytes } = file;
    return found.size === storedBytes
      ? null
      : `it has ${found.size} bytes, but the manifest says ${storedBytes}`;
  }

  /** SHA-256 of a file; null where there is none. */
  async #hashOf(
    path: string,
    { storedBytes }: CommittedFile,
    signal: AbortSignal | undefined,
  ): Promise<string | null> {
    try {
      return (await hashArchiveFile(this.#layout, path, storedBytes, signal)).sha256;
    } catch (error) {
      signal?.throwIfAborted();
      if (isMissing(error)) return null;
      throw RunvaultError.from(error, { place: { file: path } });
    }
  }

  #knownOf(run: RunRef): Promise<Map<string, Seen>> {
    const file = this.#layout.cacheFile(run);
    const known = this.#known.get(file) ?? readCache(this.#layout, file);
    this.#known.set(file, known);
    return known;
  }

  /** Two processes may do so at once: what one of them loses is only hashed again. */
  async #remember(run: RunRef, known: Map<string, Seen>): Promise<void> {
    const file = this.#layout.cacheFile(run);
    try {
      for (const [name, seen] of await readCache(this.#layout, file))
        if (!known.has(name)) known.set(name, seen);
      const there = new Set([
        ...(await namesIn(this.#layout.dataDir(run))),
        ...(await namesIn(this.#layout.quarantineDir(run))),
      ]);
      for (const name of known.keys()) if (!there.has(name)) known.delete(name);
      await makeRealFolder(this.#layout, dirname(file));
      const text = JSON.stringify({ format: 1, files: Object.fromEntries(known) }, null, 1);
      const { file: mode } = await permissionsAt(this.#layout, file);
      await replaceUnsynced(file, Buffer.from(`${text}\n`), mode);
    } catch {
      // a read-only archive, a full disk, a link in the cache's place: then this process alone remembers
    }
  }
}

/** What a cache file says; nothing where there is none, or it is not as it was written. */
async function readCache(layout: Layout, file: string): Promise<Map<string, Seen>> {
  try {
    const text = await readArchiveText(layout, file, mostBytes.cache);
    if (text === null) return new Map();
    return new Map(Object.entries(cacheSchema.parse(parseJson(text)).files));
  } catch {
    return new Map();
  }
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

/** Whether a file was left alone for long enough that a write from now on shows in its mark. */
async function isSettled(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => null);
  return found !== null && Date.now() - Math.max(found.mtimeMs, found.ctimeMs) > tickMs;
}
