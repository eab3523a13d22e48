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
 * Garbage collection, an acceptance or a small run's job holds a run for less than this, so none of them is a reason to
 * end a job, or to leave a run for the next night. Creating a lock's file takes less, too, unless the machine is busy.
 */
const briefMs = 2_000;
/** How often a lock's file is created at least before its being replaced is an error. */
const fewAttempts = 5;

/**
 * Locks a run for one job, as `lockRunNow` does, and retries for two seconds if another job has it. Throws the signal's
 * reason if that comes first.
 */
export async function lockRun(layout: Layout, run: RunRef, signal?: AbortSignal): Promise<AsyncDisposable> {
  return await inTurn(() => lockRunNow(layout, run), briefMs, signal);
}

/**
 * Locks a run with a kernel lock, taken through DuckDB's own lock on its database file, so a killed process leaves
 * nothing but the file. Releasing the lock removes the file. Throws `locked`, with the holder's process id if DuckDB
 * gives it, and `archive_damaged` before anything is written if a folder of the run is not a real one.
 */
export async function lockRunNow(layout: Layout, run: RunRef): Promise<AsyncDisposable> {
  await requireRealFoldersOf(layout, run);
  return await lockForNow(layout, layout.lockFile(run), "is working on this run", {
    instance: run.instanceId,
    run: run.runId,
  });
}

/** As `lockFile`, but removes the file with the lock: thousands of runs would each keep one of 12 kB for nothing. */
async function lockForNow(...asked: Parameters<typeof lockFile>): Promise<AsyncDisposable> {
  const lock = await lockFile(...asked);
  const [, file] = asked;
  return {
    [Symbol.asyncDispose]: async () => {
      try {
        // while it is held: a process that opened it earlier finds another file or none in its place, and tries again
        await tolerated(rm(file, { force: true }));
      } finally {
        await lock[Symbol.asyncDispose]();
      }
    },
  };
}

/** Locks what concerns the archive as a whole: types of columns. Throws `locked`. */
export async function lockArchive(layout: Layout): Promise<AsyncDisposable> {
  return await lockFile(layout, layout.archiveLockFile, "is changing column types of this archive", {});
}

/** Waits for a run's lock for as long as needed, then takes it. Throws the signal's reason likewise. */
export async function lockRunInTurn(
  layout: Layout,
  run: RunRef,
  signal: AbortSignal,
): Promise<AsyncDisposable> {
  return await inTurn(() => lockRunNow(layout, run), Number.POSITIVE_INFINITY, signal);
}

/** Tries repeatedly to take a lock, for this long. */
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
    // the kernel does not announce that a lock is free
    await setTimeout(50, undefined, { signal }).catch(() => signal?.throwIfAborted());
  }
}

/**
 * Locks all runs that are archived, in progress or half done, so that no job works on any. Throws `locked` and locks
 * none if another job has one of them.
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

/** The locks of runs whose job is running or was killed. */
async function lockFilesIn({ locksDir }: Layout): Promise<string[]> {
  const found: string[] = [];
  for (const instance of await namesIn(locksDir)) {
    for (const name of await namesIn(join(locksDir, instance)))
      if (name.endsWith(".duckdb") && !name.startsWith(".")) found.push(join(locksDir, instance, name));
  }
  return found;
}

/** The locks of runs with unfinished work that the next job continues. */
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

/** Locks a file of `locks/`, creating it if needed. Throws `locked`, with `holder` saying what the other does. */
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
  // closing a file releases all of this process's locks on it
  while (looks.has(file)) await looks.get(file);
  if (held.has(file)) throw locked(process.pid.toString());
  held.add(file);
  try {
    const locks = await lockingDuckDB();
    const name = await attach(locks, layout, file);
    // everyone who may write to the archive must be able to lock it, whatever umask created the lock file
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
        hint: "Remove the file while no job is running: it holds no data, and the next job creates it again.",
      });
    }
    const isSystems = (cause as NodeJS.ErrnoException).code !== undefined;
    const error = isSystems
      ? RunvaultError.from(cause)
      : duckDBError(cause, "the lock file cannot be created");
    throw error.at({ file });
  }
}

/** The holder of a lock. */
export interface LockHolder {
  /** Null if the system does not say: on another machine, or in another container. */
  readonly pid: number | null;
}

/**
 * The holder of a file of `locks/`; null if it is free. The query takes a shared lock for a moment, so a job that needs
 * the lock must retry if it met only that. Creates nothing and needs no write permission.
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
    // removed in the meantime, or cut off because its creator was killed
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

/** Creates the file and its folder if missing; returns the name under which the lock is held. */
async function attach(locks: DuckDBConnection, layout: Layout, file: string): Promise<string> {
  const lastMs = performance.now() + briefMs;
  // on a busy machine or a slow disk, creating the file once may already take longer
  const isOver = (attempt: number) => attempt >= fewAttempts && performance.now() >= lastMs;
  for (let attempt = 1; ; attempt++) {
    await makeRealFolder(layout, dirname(file));
    const before = await lstatOrNull(file);
    const name = `lock_${++taken}`;
    try {
      await locks.run(`ATTACH ${literal(file)} AS ${name} (TYPE duckdb)`);
    } catch (error) {
      const message = error instanceof Error ? error.message : "";
      // another process removed the file or its folder, or is creating it
      const isPassing = isGone(message) || isTorn(message);
      if (!isPassing || isOver(attempt)) throw error;
      if (isTorn(message)) await mendLockFile(file);
      await setTimeout(5);
      continue;
    }
    const after = await lstatOrNull(file);
    const isSame = before?.ino === after?.ino && before?.birthtimeMs === after?.birthtimeMs;
    if (after !== null && isSame) return name;
    // this or another process has just created it, and may have removed it again between opening and locking; only a
    // file that existed before and still does is the same lock for everyone
    await locks.run(`DETACH ${name}`);
    if (!isOver(attempt)) continue;
    throw new RunvaultError("locked", "the lock file keeps being replaced", {
      place: { file },
      hint: "Run the same command again; if that does not help, find what removes files below locks/.",
    });
  }
}

let locking: Promise<DuckDBConnection> | undefined;
let taken = 0;

/** The DuckDB instance that holds all locks of this process: opening one per lock would take longer than many jobs. */
function lockingDuckDB(): Promise<DuckDBConnection> {
  // loaded late: commands that only read manifests do not need DuckDB
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

// the kernel's lock is per process, so this separates two jobs of one process
const held = new Set<string>();

/** Looks at locks that this process is taking now. */
const looks = new Map<string, Promise<LockHolder | null>>();
