import { chmod, rm } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { setTimeout } from "node:timers/promises";
import type { DuckDBConnection } from "@duckdb/node-api";
import { duckDBError } from "../duckdb/duckdb-error.ts";
import { literal } from "../duckdb/sql.ts";
import { Disposables } from "../model/disposables.ts";
import { type ErrorPlace, RunvaultError } from "../model/error.ts";
import { tolerated } from "../model/make-folder.ts";
import type { RunRef } from "../model/source.ts";
import type { Archive } from "./archive.ts";
import type { Layout } from "./layout.ts";
import { manifestPaths } from "./manifest/manifest-paths.ts";
import { mendLockFile } from "./mend-lock-file.ts";
import { namesIn } from "./storage/names-in.ts";
import { permissionsAt } from "./storage/permissions.ts";
import {
  lstatOrNull,
  makeRealFolder,
  requireRealFile,
  requireRealFolder,
  requireRealFoldersOf,
} from "./storage/real-folder.ts";

/**
 * Garbage collection, an acceptance or a small run's job have a run for less than this: none of these is a reason to end a
 * job, or to leave a run for the next night. A lock's file is made in less, too.
 */
const briefMs = 2_000;

/**
 * Holds a run for one job, as `lockRunNow` does, which is tried again for two seconds where another has it. Throws the
 * signal's reason where that comes first.
 */
export async function lockRun(layout: Layout, run: RunRef, signal?: AbortSignal): Promise<AsyncDisposable> {
  return await inTurn(() => lockRunNow(layout, run), briefMs, signal);
}

/**
 * Holds a run: a kernel lock, taken through DuckDB's own lock on its database file, so that a killed process leaves nothing
 * behind but the file, which goes with the lock. Throws `locked` and names the holder's process where DuckDB does, and
 * `archive_damaged` where the run's folders are not all real ones; then nothing has been written.
 */
export async function lockRunNow(layout: Layout, run: RunRef): Promise<AsyncDisposable> {
  await requireRealFoldersOf(layout, run);
  return await lockForNow(layout, layout.lockFile(run), "is working on this run", {
    instance: run.instanceId,
    run: run.runId,
  });
}

/** As `lockFile`, of a file that goes with the lock: thousands of runs would have one of 12 kB each, for nothing. */
async function lockForNow(...asked: Parameters<typeof lockFile>): Promise<AsyncDisposable> {
  const lock = await lockFile(...asked);
  const [, file] = asked;
  return {
    [Symbol.asyncDispose]: async () => {
      try {
        // while it is held: whoever opened it ahead of this finds another in its place, or none, and tries again
        await tolerated(rm(file, { force: true }));
      } finally {
        await lock[Symbol.asyncDispose]();
      }
    },
  };
}

/** Holds what concerns the archive as a whole: types of columns. Throws `locked`. */
export async function lockArchive(layout: Layout): Promise<AsyncDisposable> {
  return await lockFile(layout, layout.archiveLockFile, "is changing column types of this archive", {});
}

/** Holds a run once whoever has it is done with it, however long that takes. Throws the signal's reason likewise. */
export async function lockRunInTurn(
  layout: Layout,
  run: RunRef,
  signal: AbortSignal,
): Promise<AsyncDisposable> {
  return await inTurn(() => lockRunNow(layout, run), Number.POSITIVE_INFINITY, signal);
}

/** Tries to take a lock again and again, for so long. */
async function inTurn(
  take: () => Promise<AsyncDisposable>,
  forMs: number,
  signal: AbortSignal | undefined,
): Promise<AsyncDisposable> {
  const lastMs = performance.now() + forMs;
  for (;;) {
    try {
      return await take();
    } catch (error) {
      const isHeld = error instanceof RunvaultError && error.code === "locked";
      if (!isHeld || performance.now() >= lastMs) throw error;
    }
    // the kernel tells nobody that a lock is free
    await setTimeout(50, undefined, { signal }).catch(() => signal?.throwIfAborted());
  }
}

/**
 * Holds all runs that are archived, are being worked on, or were left half done, so that none is under way. Throws
 * `locked` and holds none where another job has one of them.
 */
export async function lockAllRuns({
  layout,
  store,
}: Pick<Archive, "layout" | "store">): Promise<AsyncDisposable> {
  await using locks = new Disposables();
  const files = new Set([
    ...(await lockFilesIn(layout)),
    ...(await manifestPaths(layout, store)).map((manifest) => lockOf(layout, manifest)),
    ...(await locksOfPending(layout)),
  ]);
  const lastMs = performance.now() + briefMs;
  const left = () => lastMs - performance.now();
  for (const file of files) {
    locks.use(
      await inTurn(
        () => lockForNow(layout, file, "is working on a run of this archive", {}),
        left(),
        undefined,
      ),
    );
  }
  return locks.move();
}

/** The locks of runs that have a job now, or one that was killed. */
async function lockFilesIn({ locksDir }: Layout): Promise<string[]> {
  const found: string[] = [];
  for (const instance of await namesIn(locksDir)) {
    for (const name of await namesIn(join(locksDir, instance)))
      if (name.endsWith(".duckdb") && !name.startsWith(".")) found.push(join(locksDir, instance, name));
  }
  return found;
}

/** The locks of runs of which work is left that the next job goes on with. */
async function locksOfPending({ locksDir, pendingRoot }: Layout): Promise<string[]> {
  const found: string[] = [];
  for (const instance of await namesIn(pendingRoot)) {
    for (const run of await namesIn(join(pendingRoot, instance)))
      found.push(join(locksDir, instance, `${run}.duckdb`));
  }
  return found;
}

/** The lock of the run whose manifest has this path. */
function lockOf({ locksDir, runsDir }: Layout, manifest: string): string {
  return join(locksDir, relative(runsDir, manifest).replace(/\.json$/, ".duckdb"));
}

/** Holds a file of `locks/`, which is made where it is missing. Throws `locked`, and says who `holder` is. */
export async function lockFile(
  layout: Layout,
  file: string,
  holder: string,
  place: ErrorPlace,
): Promise<AsyncDisposable> {
  // DuckDB reads the log beside its file, too
  for (const name of [file, `${file}.wal`]) await requireRealFile(name);
  const locked = (pid: string | undefined, cause?: unknown) =>
    new RunvaultError("locked", `another job${pid === undefined ? "" : ` (pid ${pid})`} ${holder}`, {
      cause,
      place: { ...place, file },
      hint: "Wait for it to end, then run the same command again.",
    });
  // to close a file ends this process's locks on it, whoever in it has them
  while (looks.has(file)) await looks.get(file);
  if (held.has(file)) throw locked(process.pid.toString());
  held.add(file);
  try {
    const locks = await lockingDuckDB();
    const name = await attach(locks, layout, file);
    // whoever may write in the archive has to be able to lock it, whatever the umask of the lock's maker
    await tolerated(chmod(file, (await permissionsAt(layout, file)).file));
    return {
      [Symbol.asyncDispose]: async () => {
        await locks.run(`DETACH ${name}`);
        held.delete(file);
      },
    };
  } catch (cause) {
    held.delete(file);
    const message = cause instanceof Error ? cause.message : String(cause);
    if (isConflict(message)) throw locked(pidIn(message), cause);
    if (cause instanceof RunvaultError) throw cause;
    if (/permission denied|read-only/i.test(message)) {
      throw new RunvaultError("storage_forbidden", "the lock file cannot be opened for writing", {
        cause,
        place: { file },
        hint: "Give this user access to the archive folder, or point --archive elsewhere.",
      });
    }
    if (isTorn(message)) {
      throw new RunvaultError("archive_damaged", "the lock file is damaged", {
        cause,
        place: { file },
        hint: "Remove the file while no job is running: it holds no data, and the next job makes it again.",
      });
    }
    const isSystems = (cause as NodeJS.ErrnoException).code !== undefined;
    const error = isSystems ? RunvaultError.from(cause) : duckDBError(cause, "the lock file cannot be made");
    throw error.at({ file });
  }
}

/** Whoever holds a lock. */
export interface LockHolder {
  /** Null where the system does not tell: on another machine, or in another container. */
  readonly pid: number | null;
}

/**
 * Who holds a file of `locks/`; null where nobody does. To ask takes a lock for a moment, one that those who ask share: whoever
 * is to take the file at any time has to try again where it was held only then. Makes nothing, and needs no right to write.
 */
export async function lockHolder(layout: Layout, file: string): Promise<LockHolder | null> {
  if (held.has(file)) return { pid: process.pid };
  const look = looks.get(file) ?? lookAt(layout, file).finally(() => looks.delete(file));
  looks.set(file, look);
  return await look;
}

async function lookAt(layout: Layout, file: string): Promise<LockHolder | null> {
  if (!(await requireRealFolder(layout, dirname(file))) || (await lstatOrNull(file)) === null) return null;
  for (const name of [file, `${file}.wal`]) await requireRealFile(name);
  const name = `lock_${++taken}`;
  try {
    const locks = await lockingDuckDB();
    await locks.run(`ATTACH ${literal(file)} AS ${name} (TYPE duckdb, READ_ONLY)`);
    await locks.run(`DETACH ${name}`);
    return null;
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    if (isConflict(message)) return { pid: Number(pidIn(message) ?? 0) || null };
    // removed meanwhile, or cut off by a kill while it was made: whoever made it is gone
    if (isGone(message) || isTorn(message)) return null;
    throw RunvaultError.from(cause, { place: { file } });
  }
}

function isConflict(message: string): boolean {
  return /conflicting lock/i.test(message);
}

function isGone(message: string): boolean {
  return /does not exist|no such file or directory/i.test(message);
}

function isTorn(message: string): boolean {
  return /not a valid DuckDB database|Could not read enough bytes|Serialization Error|corrupt/i.test(message);
}

function pidIn(message: string): string | undefined {
  return /PID (\d+)/.exec(message)?.[1];
}

/** Makes the file where it is missing, and its folder; gives the name under which the lock is held. */
async function attach(locks: DuckDBConnection, layout: Layout, file: string): Promise<string> {
  const lastMs = performance.now() + briefMs;
  for (;;) {
    await makeRealFolder(layout, dirname(file));
    const before = await lstatOrNull(file);
    const name = `lock_${++taken}`;
    try {
      await locks.run(`ATTACH ${literal(file)} AS ${name} (TYPE duckdb)`);
    } catch (error) {
      const message = error instanceof Error ? error.message : "";
      // another process removed the file or its folder, or is making it
      const isPassing = isGone(message) || isTorn(message);
      if (!isPassing || performance.now() >= lastMs) throw error;
      if (isTorn(message)) await mendLockFile(file);
      await setTimeout(5);
      continue;
    }
    const after = await lstatOrNull(file);
    const isSame = before?.ino === after?.ino && before?.birthtimeMs === after?.birthtimeMs;
    if (after !== null && isSame) return name;
    // made just now, by this process or by one that may have removed it again between its opening here and its locking:
    // only of a file that was there before, and still is, everybody has the same lock
    await locks.run(`DETACH ${name}`);
    if (performance.now() < lastMs) continue;
    throw new RunvaultError("locked", "the lock file keeps being replaced", {
      place: { file },
      hint: "Run the same command again; if that does not help, find what removes files below locks/.",
    });
  }
}

let locking: Promise<DuckDBConnection> | undefined;
let taken = 0;

/** The DuckDB that holds all locks of this process: opening one for each would take longer than many a job. */
function lockingDuckDB(): Promise<DuckDBConnection> {
  // DuckDB, which whoever only looks at manifests does without
  locking ??= import("../duckdb/open-duckdb.ts")
    .then(({ openDuckDB }) => openDuckDB({ threads: 1 }))
    .then(({ connection }) => connection)
    .catch((error: unknown) => {
      // the next lock tries again
      locking = undefined;
      throw error;
    });
  return locking;
}

// the kernel's lock is per process, so two jobs of one process are kept apart here
const held = new Set<string>();

/** Looks at locks that this process is taking now. */
const looks = new Map<string, Promise<LockHolder | null>>();
