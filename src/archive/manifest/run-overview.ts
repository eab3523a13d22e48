import { join, relative } from "node:path";
import { RunvaultError } from "../../model/error.ts";
import { type TableName, tableNames } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import { type Nanoseconds, parseTime } from "../../model/time.ts";
import type { Archive } from "../archive.ts";
import { mostBytes } from "../storage/archive-file.ts";
import { damageOf } from "../storage/damage-of.ts";
import { misplacedInstances } from "../storage/real-folder.ts";
import { sizesBelow } from "../storage/sizes-below.ts";
import { acceptanceOf } from "./acceptance.ts";
import type { Manifest, TableState } from "./manifest.ts";
import { filesOf } from "./manifest-files.ts";
import { manifestPaths } from "./manifest-paths.ts";
import { parseManifest } from "./parse-manifest.ts";
import { holdingsOf, isPresent, shownView } from "./table-view.ts";

/** An archived run without its segments. */
export interface RunOverview extends RunRef {
  readonly state: TableState;
  readonly started: Nanoseconds;
  readonly committed: Nanoseconds;
  /** Tables whose rows are served. */
  readonly tables: readonly TableName[];
  /** Tables whose latest attempt failed; rows proven before are still served. */
  readonly partial: readonly {
    readonly table: TableName;
    readonly state: TableState;
    readonly since: string;
    /** Whether the operator accepted it. */
    readonly isAccepted: boolean;
  }[];
}

/** A manifest that cannot be used. */
export interface DamagedManifest {
  /** Below the archive's folder. */
  readonly file: string;
  /** Name of the instance's folder: the instance's id, if that is a valid file name. */
  readonly folder: string;
  readonly error: RunvaultError;
}

export interface Overview {
  /** By instance and run, oldest first. */
  readonly runs: readonly RunOverview[];
  readonly damaged: readonly DamagedManifest[];
}

/** What is wrong with a run's files, in words. */
export interface FileTrouble {
  readonly instanceId: string;
  readonly message: string;
}

type Read = RunOverview | DamagedManifest;

/** The result of a file check is reused for this many times the check's duration. */
const restShare = 20;

/**
 * The runs of an archive; a damaged manifest hides only its own run. Manifests are cached until their file changes, so
 * repeated calls only look at each file. An unreadable file is tried again each time, because permission, or a free
 * descriptor, may come without a change of the file.
 */
export class RunOverviews {
  readonly #archive: Archive;
  readonly #allowIncomplete: boolean;
  #kept = new Map<string, { readonly mark: string; readonly read: Read }>();
  #checking: Promise<readonly FileTrouble[]> | undefined;

  constructor(archive: Archive, allowIncomplete: boolean) {
    this.#archive = archive;
    this.#allowIncomplete = allowIncomplete;
  }

  /** The committed state. Throws if the folder of manifests cannot be read. */
  async read(): Promise<Overview> {
    const { layout, store } = this.#archive;
    const kept = new Map<string, { readonly mark: string; readonly read: Read }>();
    for (const file of await manifestPaths(layout, store)) {
      const mark = await this.#markOf(file);
      // a run removed since it was listed no longer exists
      if (mark === null) continue;
      const known = this.#kept.get(file);
      const before = known?.mark === mark ? known.read : undefined;
      const read = before !== undefined && isLasting(before) ? before : await this.#readFile(file);
      if (read === null) continue;
      // the same trouble as before stays the same error, which the owner has already seen
      kept.set(file, { mark, read: before !== undefined && isSameTrouble(before, read) ? before : read });
    }
    for (const { folder, error } of await misplacedInstances(layout)) {
      const file = error.place.file!;
      const before = this.#kept.get(file)?.read;
      const read = { file: relative(this.#archive.dir, file), folder, error };
      kept.set(file, { mark: "", read: before !== undefined && isSameTrouble(before, read) ? before : read });
    }
    this.#kept = kept;
    const reads = [...kept.values()].map(({ read }) => read);
    return {
      runs: reads.filter((read) => "runId" in read).sort(byInstanceAndAge),
      damaged: reads.filter((read) => "error" in read),
    };
  }

  /**
   * Files in manifests that are missing or have another size: a sentence per run. Contents are for `verify`. Concurrent
   * callers share one check, and its result is reused for twenty times its duration, so that repeated requests cost at
   * most a twentieth of the disk's time.
   */
  missingFiles(): Promise<readonly FileTrouble[]> {
    this.#checking ??= this.#checkFiles();
    return this.#checking;
  }

  async #checkFiles(): Promise<readonly FileTrouble[]> {
    const began = performance.now();
    try {
      const found = await this.#fileTroubles();
      const heldMs = restShare * (performance.now() - began);
      setTimeout(() => {
        this.#checking = undefined;
      }, heldMs).unref();
      return found;
    } catch (error) {
      this.#checking = undefined;
      throw error;
    }
  }

  async #fileTroubles(): Promise<readonly FileTrouble[]> {
    const found: FileTrouble[] = [];
    for (const { instanceId, runId } of (await this.read()).runs) {
      const run = { instanceId, runId };
      const before = await this.#archive.manifest(run).catch(() => null);
      if (before === null) continue;
      const faults = await this.#faultsOf(before);
      if (faults.length === 0) continue;
      // commits in between may have removed this generation's files
      const now = await this.#archive.manifest(run).catch(() => null);
      if (now?.generation !== before.generation) continue;
      const more = faults.length > 1 ? `, and ${faults.length - 1} more` : "";
      found.push({ instanceId, message: `${instanceId}/${runId}: ${faults[0]}${more}` });
    }
    return found;
  }

  #overviewOf({ instanceId, runId, state: ofRun, run, tables, committedAt }: Manifest): RunOverview {
    const isServed = (name: TableName) => isPresent(shownView(tables[name], this.#allowIncomplete));
    const partial = tableNames.flatMap((table) => {
      const { state, attempt } = tables[table] ?? {};
      const since = attempt?.behindSince ?? null;
      const isAccepted = acceptanceOf(tables[table]) !== null;
      return state === undefined || since === null ? [] : [{ table, state, since, isAccepted }];
    });
    return {
      instanceId,
      runId,
      state: ofRun,
      started: BigInt(run.started ?? 0),
      committed: parseTime(committedAt),
      tables: tableNames.filter(isServed),
      partial,
    };
  }

  async #faultsOf(manifest: Manifest): Promise<string[]> {
    const { layout, store } = this.#archive;
    const faults: string[] = [];
    let sizes: ReadonlyMap<string, number>;
    try {
      sizes = await sizesBelow(store, layout.committedKey(manifest, "data"));
    } catch (error) {
      return [damageOf(error)];
    }
    const promisedSizes = sizesOf(manifest);
    for (const file of filesOf(manifest).data) {
      const size = sizes.get(layout.committedKey(manifest, "data", file));
      const promised = promisedSizes.get(file);
      if (size === undefined) faults.push(`${file} is missing`);
      else if (promised !== undefined && size !== promised) {
        faults.push(`${file} has ${size} bytes, not ${promised}`);
      }
    }
    return faults;
  }

  /** Identifies a version of a manifest; null if there is none. */
  async #markOf(file: string): Promise<string | null> {
    const { layout, store } = this.#archive;
    try {
      return (await store.head(layout.keyOf(file)))?.token ?? null;
    } catch (error) {
      // reading it reports anything else in its place
      return damageOf(error);
    }
  }

  /** A manifest's contents; null if it was removed since it was listed. */
  async #readFile(file: string): Promise<Read | null> {
    try {
      const { layout, store } = this.#archive;
      const bytes = await store.get(layout.keyOf(file), mostBytes.manifest);
      if (bytes === null) return null;
      const manifest = parseManifest(bytes.toString("utf8"), file);
      if (layout.manifestFile(manifest) === file) return this.#overviewOf(manifest);
      const { instanceId, runId } = manifest;
      throw new RunvaultError(
        "archive_damaged",
        `this manifest belongs to another run, ${instanceId}/${runId}`,
        {
          place: { file },
        },
      );
    } catch (error) {
      const below = relative(this.#archive.dir, file);
      const folder = relative(this.#archive.layout.runsDir, join(file, ".."));
      return { file: below, folder, error: RunvaultError.from(error, { place: { file } }) };
    }
  }
}

/** Whether a reading stays valid while the file does not change: contents or damage. */
function isLasting(read: Read): boolean {
  return "runId" in read || read.error.code === "archive_damaged";
}

function isSameTrouble(one: Read, other: Read): boolean {
  return "error" in one && "error" in other && one.error.code === other.error.code;
}

function sizesOf({ tables, documents }: Manifest): Map<string, number> {
  const holdings = Object.values(tables).flatMap(holdingsOf);
  const held = holdings.flatMap(({ segments, parquet }) => [...segments, ...parquet]);
  return new Map([...held, ...Object.values(documents)].map(({ file, storedBytes }) => [file, storedBytes]));
}

function byInstanceAndAge(a: RunOverview, b: RunOverview): number {
  const order = <T extends bigint | string>(one: T, other: T) => (one < other ? -1 : one > other ? 1 : 0);
  return order(a.instanceId, b.instanceId) || order(a.started, b.started) || order(a.runId, b.runId);
}
