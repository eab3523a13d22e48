import { hostname } from "node:os";
import { basename, dirname, join } from "node:path";
import { isJobName, type Layout, recordOfName } from "../../archive/layout.ts";
import { type LockHolder, lockHolder } from "../../archive/lock.ts";
import { mostBytes, openArchiveFile } from "../../archive/storage/archive-file.ts";
import { isMissing } from "../../archive/storage/fsync-files.ts";
import { archiveShape } from "../../archive/storage/own-names.ts";
import { misplaced, requireRealFolder } from "../../archive/storage/real-folder.ts";
import { entriesIn } from "../../archive/verify/verify-places.ts";
import { RunvaultError } from "../../model/error.ts";
import type { BeginLine, RecordLine, ResultLine } from "./job-record.ts";
import { isOpenHere } from "./open-record.ts";
import { damaged, firstLine, lastLine, parseBegin, parseLine, wholeLines } from "./record-lines.ts";

/** `died`: without a result, and its process is gone. */
export type RecordState = "running" | "died" | "ended";

/** The record of an execution. */
export interface FoundRecord {
  readonly job: string;
  readonly id: string;
  /** Below the archive's folder, with slashes. */
  readonly file: string;
  readonly begin: BeginLine;
  readonly result: ResultLine | null;
  readonly state: RecordState;
  /** Every whole line, including the first and last. Unreadable ones are passed to `onDamage` and left out. */
  lines(onDamage?: (error: RunvaultError) => void): AsyncGenerator<RecordLine>;
}

export interface ReadRecordsOptions {
  /** Only this job; default all. */
  readonly job?: string;
  /** Called for each unreadable record, with its file; the others are still read. */
  readonly onDamage?: (error: RunvaultError) => void;
}

/** A record's file, and what its name says. */
export interface RecordPlace {
  readonly job: string;
  readonly file: string;
  readonly name: string;
  readonly began: Date;
  readonly id: string;
}

/** The contents of a record's first and last line. */
interface Ends {
  readonly begin: BeginLine;
  readonly result: ResultLine | null;
}

/** The jobs that have records, by name. Reports anything else among them. */
export async function jobsWithRecords(
  layout: Layout,
  onDamage: (error: RunvaultError) => void = () => {},
): Promise<string[]> {
  const shape = archiveShape.folder("jobs")!;
  try {
    if (!(await requireRealFolder(layout, layout.jobsDir))) return [];
  } catch (error) {
    onDamage(RunvaultError.from(error));
    return [];
  }
  const jobs: string[] = [];
  for (const entry of await entriesIn(layout.jobsDir)) {
    const path = join(layout.jobsDir, entry.name);
    if (entry.isDirectory() && isJobName(entry.name)) jobs.push(entry.name);
    else if (isJobName(entry.name)) onDamage(misplaced(path, entry, "folder"));
    else if (!shape.isFile(entry.name)) onDamage(foreign(path));
  }
  return jobs;
}

/**
 * Records of executions, newest start first, read one by one and only their first and last lines. A record without a
 * result belongs to the execution that has the job's lock, or to one that died; finding out changes and blocks nothing.
 */
export async function* readRecords(
  layout: Layout,
  { job, onDamage = () => {} }: ReadRecordsOptions = {},
): AsyncGenerator<FoundRecord> {
  const jobs = job === undefined ? await jobsWithRecords(layout, onDamage) : [job];
  const places = (await Promise.all(jobs.map((one) => recordPlaces(layout, one, onDamage)))).flat();
  const running = new Map<string, RunningRecord>();
  for (const place of places.sort(newestFirst)) {
    const states = running.get(place.job) ?? new RunningRecord(layout, place.job);
    running.set(place.job, states);
    try {
      const ends = await readEnds(layout, place);
      // removed by retention since it was listed
      if (ends === null) continue;
      const { state, result } = await states.stateOf(place, ends);
      yield {
        ...{ job: place.job, id: place.id, file: layout.keyOf(place.file), begin: ends.begin },
        ...{ result, state, lines: (onLine) => linesOf(layout, place.file, onLine) },
      };
    } catch (error) {
      onDamage(RunvaultError.from(error).at({ file: place.file }));
    }
  }
}

/** A job's records by name, newest first. Reports anything else among them. */
export async function recordPlaces(
  layout: Layout,
  job: string,
  onDamage: (error: RunvaultError) => void,
): Promise<RecordPlace[]> {
  const folder = layout.recordsDir(job);
  try {
    if (!(await requireRealFolder(layout, folder))) return [];
    const places: RecordPlace[] = [];
    for (const { name } of await entriesIn(folder)) {
      const named = recordOfName(name);
      if (named === null) onDamage(foreign(join(folder, name)));
      else places.push({ job, file: join(folder, name), name, ...named });
    }
    return places.sort(newestFirst);
  } catch (error) {
    onDamage(RunvaultError.from(error, { place: { file: folder } }));
    return [];
  }
}

function newestFirst(a: RecordPlace, b: RecordPlace): number {
  if (a.name !== b.name) return a.name > b.name ? -1 : 1;
  return a.job < b.job ? -1 : 1;
}

function foreign(path: string): RunvaultError {
  const isFolder = basename(dirname(path)) === "jobs";
  const message = `this is not the name of ${isFolder ? "a job" : "a record"}: runvault did not create it`;
  return new RunvaultError("archive_damaged", message, {
    place: { file: path },
    hint: "Move it out of the archive.",
  });
}

/** The first and last line of a record; null if it is gone. Throws `archive_damaged`. */
export async function readEnds(layout: Layout, { job, file, id }: RecordPlace): Promise<Ends | null> {
  try {
    const { handle, size } = await openArchiveFile(layout, file, mostBytes.record);
    try {
      const begin = parseBegin(await firstLine(handle));
      if (begin.job !== job || begin.id !== id)
        throw damaged(`it is that of another execution, ${begin.id} of ${begin.job}`);
      const last = await lastLine(handle, size);
      const line = last === null ? null : parseLine(last, null);
      return { begin, result: line?.kind === "result" ? line : null };
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

async function* linesOf(
  layout: Layout,
  file: string,
  onDamage: (error: RunvaultError) => void = () => {},
): AsyncGenerator<RecordLine> {
  const opened = await openArchiveFile(layout, file, mostBytes.record).catch((error: unknown) => {
    // removed by retention since its ends were read
    if (isMissing(error)) return null;
    throw error;
  });
  if (opened === null) return;
  const { handle } = opened;
  try {
    for await (const { bytes, number } of wholeLines(handle)) {
      try {
        if (bytes === null) throw damaged(`line ${number} is too long`);
        yield parseLine(bytes, number);
      } catch (error) {
        onDamage(RunvaultError.from(error).at({ file, line: number }));
      }
    }
  } finally {
    await handle.close();
  }
}

/** Finds out which of a job's records belongs to the running execution. Ask newest first. */
class RunningRecord {
  readonly #layout: Layout;
  readonly #job: string;
  #holder: Promise<LockHolder | "unknown" | null> | undefined;
  #isFound = false;
  #isAnyEnded = false;

  constructor(layout: Layout, job: string) {
    this.#layout = layout;
    this.#job = job;
  }

  async stateOf(place: RecordPlace, ends: Ends): Promise<Pick<FoundRecord, "state" | "result">> {
    if (ends.result !== null) return this.#ended(ends.result);
    const { begin } = ends;
    this.#holder ??= lockHolder(this.#layout, this.#layout.jobLockFile(this.#job)).catch(() => "unknown");
    const holder = await this.#holder;
    if (!this.#isFound && this.#isOf(holder, begin, place.file)) {
      this.#isFound = true;
      return { state: "running", result: null };
    }
    // it may have ended between the looks at it and at its lock
    const again = await readEnds(this.#layout, place);
    if (again !== null && again.result !== null) return this.#ended(again.result);
    return { state: "died", result: null };
  }

  #ended(result: ResultLine): Pick<FoundRecord, "state" | "result"> {
    this.#isAnyEnded = true;
    return { state: "ended", result };
  }

  #isOf(holder: LockHolder | "unknown" | null, { host, pid }: BeginLine, file: string): boolean {
    if (holder === null) return false;
    // in a container each execution may have the same pid
    if (holder !== "unknown" && holder.pid === process.pid) return isOpenHere(file);
    const isHere = host === hostname();
    if (holder === "unknown") return isHere && isAlive(pid);
    // the lock's holder may not have begun its own record yet
    if (isHere && holder.pid !== null) return holder.pid === pid;
    return !this.#isAnyEnded;
  }
}

/** Whether a process of this machine has this id. */
function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
