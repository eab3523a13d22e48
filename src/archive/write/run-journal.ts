import { type FileHandle, open, readdir, rm, truncate } from "node:fs/promises";
import { join } from "node:path";
import { tolerated } from "../../model/make-folder.ts";
import type { TableName } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import type { Grain } from "../bucket.ts";
import type { Layout } from "../layout.ts";
import type { Manifest, ParquetFile, QuarantineFile, Segment, Through } from "../manifest/manifest.ts";
import { type AsideRecord, recordsAside, rowsSetAside } from "../read/set-aside.ts";
import { type CommittedFile, inData, WholeFiles } from "../read/whole-files.ts";
import { moveFile, sizeOf, syncFile, writeSynced } from "../storage/fsync-files.ts";
import { ownFiles, workFoldersOf } from "../storage/own-names.ts";
import { permissionsAt } from "../storage/permissions.ts";
import { makeRealFolder, requireRealFile } from "../storage/real-folder.ts";
import { removeOwnFiles, removeOwnFolder } from "../upkeep/remove-own.ts";
import { HeldTables, type HeldWork } from "./held-tables.ts";
import { type Entry, readJournal, type ScanRecord } from "./journal.ts";
import { packSegment, readSegment, sha256Of } from "./segment.ts";

/** Named moments of a job, in order: a test kills the process at each. */
export type Step = (name: string) => void;

/**
 * Uncommitted work on a run: fetched segments and converted buckets, with the journal that makes them count. A file
 * counts once its journal line is on disk. Deleting the folder costs only fetching again.
 */
export class RunJournal implements AsyncDisposable {
  readonly run: RunRef;
  readonly held: HeldTables;
  /** Returns entries to write before the next one, such as evidence from the time of its rows. */
  ahead: () => readonly Entry[] = () => [];
  readonly #work: HeldWork;
  readonly #journal: FileHandle;
  readonly #step: Step;
  readonly #whole: WholeFiles;
  #names: number;
  #tail: Promise<void> = Promise.resolve();

  private constructor(work: HeldWork, held: HeldTables, journal: FileHandle, names: number, step: Step) {
    this.run = work.run;
    this.held = held;
    this.#work = work;
    this.#journal = journal;
    this.#names = names;
    this.#step = step;
    this.#whole = new WholeFiles(work);
  }

  /** Continues the held work of a run; removes an interrupted job's work that does not count. */
  static async open(work: HeldWork, step: Step): Promise<RunJournal> {
    const { layout, run, storageVersion, final } = work;
    const file = layout.journalFile(run);
    await makeRealFolder(layout, layout.pendingDir(run));
    await makeRealFolder(layout, layout.stagingDir(run));
    // its end may be torn, and lines will be appended
    await requireRealFile(file);
    const { held, entries, wholeBytes, isTorn } = await HeldTables.read(work);
    if (entries.length === 0) await removeOwnFiles(layout, layout.pendingDir(run), ownFiles.pending);
    else if (isTorn) await truncate(file, wholeBytes);
    await removeOwnFiles(layout, layout.stagingDir(run), ownFiles.staging);
    const { file: mode } = await permissionsAt(layout, file);
    const journal = await open(file, "a", mode);
    await tolerated(journal.chmod(mode));
    const taken = await Promise.all([
      readdir(layout.pendingDir(run)),
      work.store.names(layout.committedKey(run, "data")),
      work.store.names(layout.committedKey(run, "quarantine")),
    ]);
    const names = highestName(held.generation, taken.flat());
    const pending = new RunJournal(work, held, journal, names, step);
    if (entries.length === 0) {
      const { instanceId, runId } = run;
      const { generation } = held;
      await pending.#record({
        kind: "open",
        format: 1,
        instanceId,
        runId,
        generation,
        storageVersion,
        final,
        ...(work.remaps ? { remaps: true as const } : {}),
      });
    }
    return pending;
  }

  /** The generation that this work will be committed as. */
  get generation(): number {
    return this.held.generation;
  }

  /** Its files' folder until they are committed. */
  get folder(): string {
    return this.#work.layout.pendingDir(this.run);
  }

  /** A new file name, unique in this generation. */
  nextName(table: string, suffix: string): string {
    return `${table}.g${this.generation}.${String(++this.#names).padStart(6, "0")}.${suffix}`;
  }

  /** A held file's path. Throws `archive_damaged` if one of the committed generation is damaged. */
  async locateWhole(file: Omit<CommittedFile, "folder">): Promise<string> {
    if (this.held.isCommitted(file.file)) await this.#whole.require(this.run, inData([file]));
    const { store, key } = await this.held.locate(file.file);
    return await store.localFile(key);
  }

  /** The text of a held segment. Throws `archive_damaged` if it is not as fetched. */
  async textOf(segment: Segment): Promise<Buffer> {
    const { store, key } = await this.held.locate(segment.file);
    return await readSegment(store, key, segment);
  }

  /** Path of a half-written file before it is moved to its place. */
  stagingFile(name: string): string {
    return join(this.#work.layout.stagingDir(this.run), name);
  }

  pendingFile(name: string): string {
    return join(this.#work.layout.pendingDir(this.run), name);
  }

  async setGrain(name: TableName, grain: Grain): Promise<void> {
    this.held.of(name).grain = grain;
    await this.#record({ kind: "grain", table: name, grain });
  }

  /** Records how the table's rows come from here on. */
  async setThrough(name: TableName, through: Through | undefined): Promise<void> {
    this.held.of(name).through = through;
    await this.#record({ kind: "through", table: name, through: through ?? null });
    this.#step("through-journalled");
  }

  async setScan(name: TableName, fullScan: ScanRecord | null): Promise<void> {
    this.held.of(name).fullScan = fullScan;
    await this.#record({ kind: "survey", table: name, survey: fullScan });
    this.#step("survey-journalled");
  }

  /** Compresses, writes and syncs a segment's text. It counts once `addSegments` has it. */
  async writeSegment(
    name: TableName,
    draft: Omit<Segment, "file" | "storedBytes" | "sha256">,
    text: Uint8Array,
  ): Promise<Segment> {
    const { frame, sha256 } = await packSegment(text);
    const file = this.nextName(name, "ndjson.zst");
    await writeSynced(this.stagingFile(file), frame, await this.#mode());
    this.#step("segment-written");
    await this.#keep(file);
    this.#step("segment-renamed");
    return { ...draft, file, storedBytes: frame.byteLength, sha256 };
  }

  /** Makes segments count. */
  async addSegments(name: TableName, segments: readonly Segment[]): Promise<void> {
    this.held.addSegments(name, segments);
    await this.#record({ kind: "segments", table: name, segments: [...segments] });
    this.#step("segment-journalled");
  }

  /** Notes segments that were streamed again and equal, so that no later job repeats this. */
  async addCompared(name: TableName, files: readonly string[]): Promise<void> {
    for (const file of files) this.held.of(name).compared.add(file);
    await this.#record({ kind: "compared", table: name, files: [...files] });
    this.#step("window-compared");
  }

  /** Replaces a segment with its parts, all at once. */
  async splitSegment(name: TableName, replaces: Segment, parts: readonly Segment[]): Promise<void> {
    this.held.splitSegment(name, replaces.file, parts);
    await this.#record({ kind: "split", table: name, replaces: replaces.file, segments: [...parts] });
    this.#step("segment-split");
  }

  /** Drops segments: their windows will be fetched again. */
  async dropSegments(name: TableName, segments: readonly Segment[]): Promise<void> {
    if (segments.length === 0) return;
    const files = segments.map(({ file }) => file);
    this.held.forget(name, files);
    await this.#record({ kind: "drop", table: name, files });
    this.#step("segments-dropped");
  }

  /** Doubted segments count in this job, but a job that continues its work fetches their windows again. */
  async doubtSegments(name: TableName, segments: readonly Segment[]): Promise<void> {
    if (segments.length === 0) return;
    await this.#record({ kind: "drop", table: name, files: segments.map(({ file }) => file) });
  }

  /**
   * Records that lost segments do not count, because their windows are fetched again: if a lost file were restored from
   * a copy while this work is interrupted, its rows would count twice.
   */
  async dropLost(): Promise<void> {
    for (const [table, files] of this.held.lostSegments) {
      await this.#record({ kind: "drop", table, files: [...files] });
    }
  }

  /** Makes a converted bucket count. The file is in staging under its name. */
  async addParquet(
    name: TableName,
    file: ParquetFile,
    of: readonly string[],
    drift: readonly string[],
  ): Promise<void> {
    await syncFile(this.stagingFile(file.file), await this.#mode());
    await this.#keep(file.file);
    this.#step("parquet-renamed");
    this.held.addParquet(name, file, of, drift);
    const exactTypes = { ...this.#work.exactTypes(name) };
    await this.#record({
      kind: "parquet",
      table: name,
      parquet: file,
      of: [...of],
      drift: [...drift],
      exactTypes,
    });
    this.#step("parquet-journalled");
  }

  /**
   * Replaces a segment with its cleaned version, together with the rows set aside from it: an NDJSON record per row,
   * with its place and the reason.
   */
  async cleanSegment(
    name: TableName,
    replaces: Segment,
    segment: Segment,
    setAside: readonly unknown[],
  ): Promise<void> {
    const quarantine = setAside.length === 0 ? null : await this.#writeQuarantine(name, segment, setAside);
    this.held.replaceSegment(name, replaces.file, segment, quarantine);
    await this.#record({ kind: "clean", table: name, replaces: replaces.file, segment, quarantine });
    this.#step("quarantine-journalled");
  }

  async #writeQuarantine(
    name: TableName,
    { file: segment, from, to }: Segment,
    records: readonly unknown[],
  ): Promise<QuarantineFile> {
    const file = this.nextName(name, "quarantine.ndjson");
    const bytes = Buffer.from(records.map((record) => `${JSON.stringify(record)}\n`).join(""));
    await writeSynced(this.stagingFile(file), bytes, await this.#mode());
    await this.#keep(file);
    return {
      file,
      segment,
      rows: records.length,
      storedBytes: bytes.byteLength,
      sha256: sha256Of(bytes),
      from,
      to,
    };
  }

  /** Writes and syncs a document of the run. */
  async writeDocument(file: string, bytes: Uint8Array): Promise<void> {
    await writeSynced(this.pendingFile(file), bytes, await this.#mode());
  }

  /** Moves a finished file to its place; the two may be on different disks. */
  async #keep(file: string): Promise<void> {
    const from = this.stagingFile(file);
    if (!(await moveFile(from, this.pendingFile(file)))) await rm(from);
  }

  async #mode(): Promise<number> {
    return (await permissionsAt(this.#work.layout, this.pendingFile("."))).file;
  }

  /** The rows in quarantine files, committed or not, as they came. */
  async rowsAside(files: readonly QuarantineFile[]): Promise<string[]> {
    const rows: string[] = [];
    for (const file of files) {
      const { store, key } = await this.held.locate(file.file, "quarantine");
      for (const row of await rowsSetAside(store, key, file)) rows.push(row);
    }
    return rows;
  }

  /** The same with their records. Throws `archive_damaged` if they cannot be read. */
  async recordsAside(files: readonly QuarantineFile[]): Promise<AsideRecord[]> {
    const records: AsideRecord[] = [];
    for (const file of files) {
      const { store, key } = await this.held.locate(file.file, "quarantine");
      for (const record of await recordsAside(store, key, file)) records.push(record);
    }
    return records;
  }

  /** True if the bucket's Parquet was made in this generation, by this or an interrupted job. */
  isConvertedAnew(name: TableName, bucket: string, segments: readonly Segment[]): boolean {
    const made = this.held.converted(name, bucket, segments);
    return made !== undefined && generationOf(made.file.file) === this.generation;
  }

  /** Removes everything, after a commit. */
  async remove(): Promise<void> {
    await this.#tail;
    await this.#journal.close();
    await removeWork(this.#work.layout, this.run);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tail.catch(() => {
      // the failed append has thrown where it was awaited
    });
    await this.#journal.close().catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EBADF") throw error;
    });
  }

  /**
   * Appends one line, after those from `ahead`; on disk when the promise resolves. Lines keep the order of the calls.
   */
  #record(entry: Entry): Promise<void> {
    const write = this.#tail.then(async () => {
      const lines = [...this.ahead(), entry].map((one) => `${JSON.stringify(one)}\n`);
      await this.#journal.appendFile(lines.join(""));
      await this.#journal.datasync();
    });
    this.#tail = write;
    return write;
  }
}

/** Removes a run's work folders, except foreign files in them. Only under the run's lock. */
export async function removeWork(layout: Layout, run: RunRef): Promise<void> {
  for (const { folder, isOwn } of workFoldersOf(layout, run)) await removeOwnFolder(layout, folder, isOwn);
}

/**
 * True if `pending/` still has work on a committed generation: a kill came between the commit and the end of the job.
 * Only under the run's lock.
 */
export async function holdsCommittedWork(layout: Layout, run: RunRef, committed: Manifest): Promise<boolean> {
  if ((await sizeOf(layout.pendingDir(run))) === null) return false;
  const [head] = (await readJournal(layout, run)).entries;
  return head?.kind !== "open" || head.generation <= committed.generation;
}

/**
 * True if an interrupted job left work on the generation after `committed` other than Parquet, which can always be made
 * again. Only under the run's lock.
 */
export async function holdsFetchedWork(layout: Layout, run: RunRef, committed: Manifest): Promise<boolean> {
  const [head, ...rest] = (await readJournal(layout, run)).entries;
  if (head?.kind !== "open" || head.generation !== committed.generation + 1) return false;
  if (head.remaps) return false;
  const isWork = ({ kind }: Entry) => kind !== "parquet" && kind !== "through" && kind !== "seen";
  return rest.some(isWork);
}

/** True if `pending/` has rows from another map, which no job continues. Only under the run's lock. */
export async function holdsRemaps(layout: Layout, run: RunRef): Promise<boolean> {
  const [head] = (await readJournal(layout, run)).entries;
  return head?.kind === "open" && head.remaps === true;
}

/** The generation whose job made a file. */
export function generationOf(file: string): number {
  return Number(/\.g(\d+)\.\d+\./.exec(file)?.[1] ?? 0);
}

/** The highest running number among this generation's files. */
function highestName(generation: number, names: readonly string[]): number {
  let highest = 0;
  for (const name of names) {
    const [, own, number] = /\.g(\d+)\.(\d+)\./.exec(name) ?? [];
    if (Number(own) === generation) highest = Math.max(highest, Number(number));
  }
  return highest;
}
