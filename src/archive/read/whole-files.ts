import { dirname } from "node:path";
import PQueue from "p-queue";
import { z } from "zod";
import { RunvaultError } from "../../model/error.ts";
import { parseJson } from "../../model/outside-json.ts";
import type { RunRef } from "../../model/source.ts";
import type { Archive } from "../archive.ts";
import type { Layout } from "../layout.ts";
import { mostBytes, readArchiveText } from "../storage/archive-file.ts";
import { damageOf } from "../storage/damage-of.ts";
import { hashObject } from "../storage/file-hash.ts";
import { isMissing, replaceUnsynced } from "../storage/fsync-files.ts";
import { permissionsAt } from "../storage/permissions.ts";
import { makeRealFolder } from "../storage/real-folder.ts";
import { sizesBelow } from "../storage/sizes-below.ts";
import type { Store, StoredObject } from "../storage/store.ts";

/** A file in its run's manifest. No two files of a run share a name. */
export interface CommittedFile {
  /** Its folder: committed files, or rows set aside. */
  readonly folder: "data" | "quarantine";
  readonly file: string;
  readonly storedBytes: number;
  readonly sha256: string;
}

/** What to do about a committed file that is missing or has changed. */
export const damagedHint =
  "Run `runvault verify --repair` on the run: it rebuilds Parquet from segments, and says what to archive again.";

/** Committed files as a manifest lists them. */
export function inData(files: readonly Omit<CommittedFile, "folder">[]): CommittedFile[] {
  return files.map(({ file, storedBytes, sha256 }) => ({ folder: "data", file, storedBytes, sha256 }));
}

/** What is wrong with a file or its folder; null if nothing is. */
type Fault = string | RunvaultError | null;

/** The hash of a file, and the file's mark at that time. */
interface Seen {
  readonly mark: string;
  readonly sha256: string;
}

const cacheSchema = z.strictObject({
  format: z.literal(1),
  files: z.record(z.string(), z.strictObject({ mark: z.string(), sha256: z.string() })),
});

/** Files examined at once: enough to keep the disk busy while one is hashed. */
const atOnce = 4;

/**
 * A write within the same tick of the file system's clock does not change a file's mark: younger files are not
 * remembered.
 */
const tickNs = 100_000_000n;

/**
 * Checks committed files before their rows are used: DuckDB's Parquet pages have no checksum, so flipped bytes would
 * silently give wrong numbers. Each file is hashed once, and again when its inode, size, mtime or ctime changes.
 * Results are remembered here and, if the archive is writable, in `cache/` for the next command. `verify` uses none of
 * this.
 */
export class WholeFiles {
  readonly #layout: Layout;
  readonly #store: Store;
  /** What is known about a run's files, by cache file. */
  readonly #known = new Map<string, Promise<Map<string, Seen>>>();
  readonly #queue = new PQueue({ concurrency: atOnce });

  constructor({ layout, store }: Pick<Archive, "layout" | "store">) {
    this.#layout = layout;
    this.#store = store;
  }

  /**
   * Throws `archive_damaged` with the first file that is missing or differs from what was committed; the signal's
   * reason once it aborts.
   */
  async require(run: RunRef, files: readonly CommittedFile[], signal?: AbortSignal): Promise<void> {
    for (const [index, fault] of (await this.#faults(run, files, signal)).entries()) {
      if (fault === null) continue;
      const { instanceId: instance, runId } = run;
      // a problem with the folder is reported as it is: no repair fixes that
      if (fault instanceof RunvaultError) throw fault.at({ instance, run: runId });
      throw new RunvaultError("archive_damaged", `a committed file is damaged: ${fault}`, {
        place: {
          instance,
          run: runId,
          file: this.#store.nameOf(this.#layout.committedKey(run, files[index]!.folder, files[index]!.file)),
        },
        hint: damagedHint,
      });
    }
  }

  /** The files that are missing or have changed; each is hashed, unless it was before. */
  async damagedOf<File extends CommittedFile>(run: RunRef, files: readonly File[]): Promise<File[]> {
    const faults = await this.#faults(run, files, undefined);
    return files.filter((_, index) => faults[index] !== null);
  }

  /**
   * The files that are missing, have another size, or were found damaged earlier: everything that shows without
   * hashing.
   */
  async lostOf<File extends CommittedFile>(run: RunRef, files: readonly File[]): Promise<File[]> {
    const [known, sizes] = await Promise.all([this.#knownOf(run), this.#sizesOf(run, files)]);
    const suspects = files.filter(({ folder, file, storedBytes, sha256 }) => {
      const seen = known.get(file);
      const isOther = seen !== undefined && seen.sha256 !== sha256;
      return isOther || sizes.get(this.#layout.committedKey(run, folder, file)) !== storedBytes;
    });
    return suspects.length === 0 ? [] : await this.damagedOf(run, suspects);
  }

  /** Sizes by key of everything in these files' folders. */
  async #sizesOf(run: RunRef, files: readonly CommittedFile[]): Promise<ReadonlyMap<string, number>> {
    const folders = [...new Set(files.map(({ folder }) => folder))];
    const sizes = folders.map(async (folder) => {
      try {
        return await sizesBelow(this.#store, this.#layout.committedKey(run, folder));
      } catch (error) {
        // each file reports a problem with its folder
        damageOf(error);
        return [];
      }
    });
    return new Map((await Promise.all(sizes)).flatMap((own) => [...own]));
  }

  async #faults(
    run: RunRef,
    files: readonly CommittedFile[],
    signal: AbortSignal | undefined,
  ): Promise<Fault[]> {
    const known = await this.#knownOf(run);
    let isNew = false;
    const look = async (file: CommittedFile) => {
      signal?.throwIfAborted();
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

  /** What is wrong with a file, null if nothing; and what to remember about it, if that is new. */
  async #look(
    run: RunRef,
    file: CommittedFile,
    known: Seen | undefined,
    signal: AbortSignal | undefined,
  ): Promise<{ readonly fault: Fault; readonly seen?: Seen }> {
    const { fault, object } = await this.#found(run, file);
    if (object === undefined) return { fault };
    const mark = object.token;
    // a remembered fault is checked again, because the memory may be damaged too
    if (known?.mark === mark && known.sha256 === file.sha256) return { fault: null };
    const sha256 = await this.#hashOf(object.key, file, signal);
    if (sha256 === null) return { fault: "it is missing" };
    const isWhole = sha256 === file.sha256;
    const seen = { mark, sha256 };
    const after = await this.#store.head(object.key);
    const isLasting = after?.token === mark && (!isWhole || isSettled(after));
    return {
      fault: isWhole ? null : `its SHA-256 is ${sha256}, but the manifest says ${file.sha256}`,
      ...(isLasting ? { seen } : {}),
    };
  }

  /**
   * The object of a file, and faults that show without reading it: missing, not a file, another size, or something such
   * as a link in its folder's path.
   */
  async #found(
    run: RunRef,
    file: CommittedFile,
  ): Promise<
    | { readonly fault: null; readonly object: StoredObject }
    | { readonly fault: Fault; readonly object?: never }
  > {
    const key = this.#layout.committedKey(run, file.folder, file.file);
    let object: StoredObject | null;
    try {
      object = await this.#store.head(key);
    } catch (error) {
      if (!(error instanceof RunvaultError && error.code === "archive_damaged")) throw error;
      return { fault: error.place.file === this.#store.nameOf(key) ? error.message : error };
    }
    if (object === null) return { fault: "it is missing" };
    const { storedBytes } = file;
    if (object.size === storedBytes) return { fault: null, object };
    return { fault: `it has ${object.size} bytes, but the manifest says ${storedBytes}` };
  }

  /** SHA-256 of a file; null if there is none. */
  async #hashOf(
    key: string,
    { storedBytes }: CommittedFile,
    signal: AbortSignal | undefined,
  ): Promise<string | null> {
    try {
      return (await hashObject(this.#store, key, storedBytes, signal)).sha256;
    } catch (error) {
      signal?.throwIfAborted();
      if (isMissing(error)) return null;
      throw RunvaultError.from(error, { place: { file: this.#store.nameOf(key) } });
    }
  }

  #knownOf(run: RunRef): Promise<Map<string, Seen>> {
    const file = this.#layout.cacheFile(run);
    const known = this.#known.get(file) ?? readCache(this.#layout, file);
    this.#known.set(file, known);
    return known;
  }

  /** Two processes may do so at once; what one of them loses is merely hashed again. */
  async #remember(run: RunRef, known: Map<string, Seen>): Promise<void> {
    const file = this.#layout.cacheFile(run);
    try {
      for (const [name, seen] of await readCache(this.#layout, file))
        if (!known.has(name)) known.set(name, seen);
      const there = new Set([
        ...(await this.#store.names(this.#layout.committedKey(run, "data"))),
        ...(await this.#store.names(this.#layout.committedKey(run, "quarantine"))),
      ]);
      for (const name of known.keys()) if (!there.has(name)) known.delete(name);
      await makeRealFolder(this.#layout, dirname(file));
      const text = JSON.stringify({ format: 1, files: Object.fromEntries(known) }, null, 1);
      const { file: mode } = await permissionsAt(this.#layout, file);
      await replaceUnsynced(file, Buffer.from(`${text}\n`), mode);
    } catch {
      // a read-only archive, a full disk, or a link in the cache's place: only this process remembers
    }
  }
}

/** The contents of a cache file; empty if there is none, or it is damaged. */
async function readCache(layout: Layout, file: string): Promise<Map<string, Seen>> {
  try {
    const text = await readArchiveText(layout, file, mostBytes.cache);
    if (text === null) return new Map();
    return new Map(Object.entries(cacheSchema.parse(parseJson(text)).files));
  } catch {
    return new Map();
  }
}

/** Whether a file is old enough that any new write will change its mark. */
function isSettled({ modifiedAt }: StoredObject): boolean {
  return BigInt(Date.now()) * 1_000_000n - modifiedAt > tickNs;
}
