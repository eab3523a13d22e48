import { rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { RunvaultError } from "../../model/error.ts";
import type { RunRef } from "../../model/source.ts";
import { type Nanoseconds, wallClock } from "../../model/time.ts";
import type { Archive } from "../archive.ts";
import { lockFile, lockHolder, lockRunNow } from "../lock.ts";
import { asideOwner, removeIfEmpty } from "../storage/fsync-files.ts";
import { archiveShape, type FolderShape } from "../storage/own-names.ts";
import { lstatOrNull, requireRealFolders } from "../storage/real-folder.ts";
import { entriesIn } from "../verify/verify-places.ts";
import type { Step } from "../write/run-journal.ts";
import {
  changedAt,
  type Garbage,
  type GarbageKind,
  garbageKinds,
  type KeepReason,
  keepReasons,
  statOf,
  type Tally,
} from "./garbage.ts";
import { type GarbageRule, garbageOfRun } from "./run-garbage.ts";
import { runsAnywhere } from "./runs-anywhere.ts";
import { lockOfReader } from "./unnamed-files.ts";

export interface CollectOptions {
  /** Anything changed within this time stays, in nanoseconds. */
  readonly graceNs: Nanoseconds;
  /** Reports what would go, and writes nothing. */
  readonly dryRun?: boolean;
  readonly signal?: AbortSignal;
  /** For the grace period. Default: the machine's clock. */
  readonly clock?: () => Nanoseconds;
  /** Called for each run that cannot be examined; the others are. */
  readonly onFailure: (error: RunvaultError) => void;
  /** Called at named moments of the collection; a test kills the process at each. */
  readonly step?: Step;
}

export interface Collected {
  readonly removed: Readonly<Record<GarbageKind, Tally>>;
  readonly kept: Readonly<Record<KeepReason, Tally>>;
}

/** runvault never takes this long to write under a name that no lock covers. */
const shortestGraceNs = 60_000_000_000n;

/**
 * Removes our files that no manifest names and nobody needs, run by run, each under its lock: reads its manifest, then
 * the names in its folders, then who is reading. No commit can come between, so a file not named then stays unnamed
 * until the lock is released; a reader not seen begins later, with that manifest or a newer one. Skips runs that a job
 * is working on. Throws `archive_damaged` if the archive's own folders are not real ones.
 */
export async function collectGarbage(archive: Archive, options: CollectOptions): Promise<Collected> {
  const { signal, onFailure } = options;
  const { layout } = archive;
  await requireRealFolders(layout, topFolders(archive));
  // throws if manifests would be missed
  const hasManifests = (await archive.manifestFiles()).length > 0;
  const isLost = !hasManifests && (await archive.store.names("data/")).some((name) => name.endsWith("/"));
  const now = (options.clock ?? wallClock)();
  const collection = new Collection(archive, options, { now, before: now - options.graceNs, isLost });
  for await (const run of runsAnywhere(archive)) {
    signal?.throwIfAborted();
    try {
      if ("folders" in run) await collection.passLongId(run.folders);
      else await collection.collectRun(run);
    } catch (error) {
      signal?.throwIfAborted();
      const known = RunvaultError.from(error, {});
      if (known.scope === "job") throw known;
      onFailure(known);
    }
  }
  await collection.collectShared();
  return collection;
}

function topFolders({ layout }: Archive): string[] {
  const names = ["runs", "cache", "data", "tables", "quarantine", "pending", "staging", "jobs", "locks"];
  return [...names.map((name) => join(layout.dir, name)), layout.pendingRoot, layout.stagingRoot];
}

class Collection implements Collected {
  readonly removed = tallies(garbageKinds);
  readonly kept = tallies(keepReasons);
  readonly #archive: Archive;
  readonly #options: CollectOptions;
  readonly #rule: GarbageRule;
  /** By inode, how many of its names were removed. */
  readonly #gone = new Map<string, bigint>();

  constructor(archive: Archive, options: CollectOptions, rule: GarbageRule) {
    this.#archive = archive;
    this.#options = options;
    this.#rule = rule;
  }

  async collectRun(run: RunRef): Promise<void> {
    const found = await garbageOfRun(this.#archive, run, this.#rule);
    if (found.every(({ stays }) => stays !== null)) {
      await this.#collect(found);
      return;
    }
    const lock = await this.#lock(run);
    if (lock === "held") {
      await this.#collect(found.map((one) => ({ ...one, stays: one.stays ?? "running" })));
      return;
    }
    try {
      await this.#collect(await garbageOfRun(this.#archive, run, this.#rule));
      this.#options.step?.("garbage-of-run");
    } finally {
      await lock?.[Symbol.asyncDispose]();
    }
    if (!this.#options.dryRun) await this.#removeEmpty(dirname(this.#archive.layout.lockFile(run)));
  }

  /** The run's lock; in a dry run only whether somebody has it. */
  async #lock(run: RunRef): Promise<AsyncDisposable | "held" | null> {
    const { layout } = this.#archive;
    if (this.#options.dryRun)
      return (await lockHolder(layout, layout.lockFile(run))) === null ? null : "held";
    try {
      return await lockRunNow(layout, run);
    } catch (error) {
      if (error instanceof RunvaultError && error.code === "locked") return "held";
      throw error;
    }
  }

  /** Garbage outside of runs: readers' locks, and temporary files of the archive's own files. */
  async collectShared(): Promise<void> {
    const { dir, locksDir, jobsDir } = this.#archive.layout;
    for (const { name } of await entriesIn(locksDir)) {
      const beganMs = this.#archive.layout.readingSince(name);
      if (beganMs === null) continue;
      const path = join(locksDir, name);
      await using lock = await lockOfReader(this.#archive.layout, path);
      if (lock === null) continue;
      // trying a lock changes its ctime
      const stays = BigInt(beganMs) * 1_000_000n > this.#rule.before ? "young" : null;
      await this.#collect([{ path, kind: "locks", stays }]);
    }
    await this.#collectJobLocks();
    const shortest = this.#rule.now - shortestGraceNs;
    const before = shortest < this.#rule.before ? shortest : this.#rule.before;
    for (const folder of [dir, jobsDir]) {
      const shape = folder === dir ? archiveShape : archiveShape.folder("jobs")!;
      const asides = (await entriesIn(folder)).filter(
        ({ name }) => asideOwner(name) !== null && shape.isFile(name),
      );
      const files = asides.map(({ name }) => join(folder, name));
      await this.#collect(await this.#asides(files, before));
    }
    const staging = this.#archive.layout.withoutScratch().stagingRoot;
    for (const { name } of await entriesIn(staging)) {
      if (!name.startsWith(".tables-")) continue;
      const shape = archiveShape.folder("staging")?.folder(name);
      if (shape !== undefined) await this.#pass(join(staging, name), shape, "widening");
    }
  }

  /** Unheld locks of jobs that no longer have a record. */
  async #collectJobLocks(): Promise<void> {
    const { layout } = this.#archive;
    for (const { name } of await entriesIn(layout.locksDir)) {
      const job = layout.jobOfLock(name);
      if (job === null || (await entriesIn(layout.recordsDir(job))).length > 0) continue;
      const file = layout.jobLockFile(job);
      // before the lock: taking it changes its ctime
      const found = await lstatOrNull(file);
      if (found?.isFile() !== true || name !== basename(file)) continue;
      const isYoung = BigInt(Math.ceil(found.mtimeMs)) * 1_000_000n > this.#rule.before;
      try {
        await using _lock = await lockFile(layout, file, `is an execution of ${job}`, {});
        await this.#collect([{ path: file, kind: "locks", stays: isYoung ? "young" : null }]);
      } catch (error) {
        // held, or truncated by a kill, which the next execution reports
        const { code } = RunvaultError.from(error);
        if (code !== "locked" && code !== "archive_damaged") throw error;
      }
    }
  }

  /** Files of a run whose id is unknown. */
  async passLongId(folders: readonly string[]): Promise<void> {
    for (const folder of folders) {
      for (const entry of await entriesIn(folder)) {
        if (entry.isFile())
          await this.#collect([{ path: join(folder, entry.name), kind: "unnamed", stays: "longId" }]);
      }
    }
  }

  async #asides(paths: readonly string[], before: Nanoseconds): Promise<Garbage[]> {
    const found: Garbage[] = [];
    for (const path of paths) {
      const changed = await changedAt(path);
      if (changed !== null)
        found.push({ path, kind: "halfWritten", stays: changed > before ? "young" : null });
    }
    return found;
  }

  async #pass(folder: string, shape: FolderShape, reason: KeepReason): Promise<void> {
    for (const entry of await entriesIn(folder)) {
      const path = join(folder, entry.name);
      const inside = shape.folder(entry.name);
      if (entry.isDirectory() && inside !== undefined) await this.#pass(path, inside, reason);
      else if (entry.isFile() && shape.isFile(entry.name))
        await this.#collect([{ path, kind: "links", stays: reason }]);
    }
  }

  async #collect(found: readonly Garbage[]): Promise<void> {
    const folders = new Set<string>();
    for (const { path, kind, stays } of found) {
      this.#options.signal?.throwIfAborted();
      const bytes = await this.#bytesOf(path, stays === null);
      // gone since it was listed
      if (bytes === null) continue;
      const tally = stays === null ? this.removed[kind] : this.kept[stays];
      tally.files += 1;
      tally.bytes += bytes;
      if (stays !== null || this.#options.dryRun) continue;
      await rm(path, { force: true });
      folders.add(dirname(path));
      this.#options.step?.("garbage-removed");
    }
    for (const folder of folders) await this.#removeEmpty(folder);
  }

  /** Bytes freed on disk by removing a name: the file's, with its last name. */
  async #bytesOf(path: string, goes: boolean): Promise<number | null> {
    const found = await statOf(path);
    if (found === null) return null;
    if (!goes) return Number(found.size);
    const inode = `${found.dev} ${found.ino}`;
    const gone = (this.#gone.get(inode) ?? 0n) + 1n;
    if (found.nlink > 1n) this.#gone.set(inode, gone);
    // when names are really removed, the link count already shows it
    const left = this.#options.dryRun ? found.nlink - gone : found.nlink - 1n;
    return left > 0n ? 0 : Number(found.size);
  }

  /** Removes an empty folder of a run, and its instance's if that is empty too. */
  async #removeEmpty(folder: string): Promise<void> {
    const { layout } = this.#archive;
    const roots = new Set([layout.dir, ...topFolders(this.#archive), layout.scratch]);
    for (let one = folder; !roots.has(one) && dirname(one) !== layout.tablesRoot; one = dirname(one))
      await removeIfEmpty(one);
  }
}

function tallies<Name extends string>(names: readonly Name[]): Record<Name, Tally> {
  return Object.fromEntries(names.map((name) => [name, { files: 0, bytes: 0 }])) as Record<Name, Tally>;
}
