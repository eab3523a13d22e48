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

/** Named moments of a job, in its order: a test kills the process at each. */
export type Step = (name: string) => void;

/**
 * Work on a run that is not committed yet: fetched segments and converted buckets, with the journal that makes them
 * count. A file counts from the moment its journal line is on disk. Deleting the folder costs refetching, no more.
 */
export class RunJournal implements AsyncDisposable {
  readonly run: RunRef;
  readonly held: HeldTables;
  /** Gives what is to stand ahead of the next entry, such as what was seen when its rows came. */
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

  /** Goes on with the work that is held of a run; what is not taken up of an interrupted job's is removed. */
  static async open(work: HeldWork, step: Step): Promise<RunJournal> {
    const { layout, run, storageVersion, final } = work;
    const file = layout.journalFile(run);
    await makeRealFolder(layout, layout.pendingDir(run));
    await makeRealFolder(layout, layout.stagingDir(run));
    // its end may be cut off, and lines are added to it
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

  /** Where its files are until they are committed. */
  get folder(): string {
    return this.#work.layout.pendingDir(this.run);
  }

  /** A new file name, unique in this generation. */
  nextName(table: string, suffix: string): string {
    return `${table}.g${this.generation}.${String(++this.#names).padStart(6, "0")}.${suffix}`;
  }

  /** Where a held file is. Throws `archive_damaged` where one of the committed generation is not whole any more. */
  async locateWhole(file: Omit<CommittedFile, "folder">): Promise<string> {
    if (this.held.isCommitted(file.file)) await this.#whole.require(this.run, inData([file]));
    const { store, key } = await this.held.locate(file.file);
    return await store.localFile(key);
  }

  /** The text of a held segment. Throws `archive_damaged` where it is not what was fetched. */
  async textOf(segment: Segment): Promise<Buffer> {
    const { store, key } = await this.held.locate(segment.file);
    return await readSegment(store, key, segment);
  }

  /** Where a half-written file goes before it is moved to its place. */
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

  /** What the table's rows come through from here on. */
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

  /** Notes segments whose rows were the same when they were streamed once more, so that no later job does it again. */
  async addCompared(name: TableName, files: readonly string[]): Promise<void> {
    for (const file of files) this.held.of(name).compared.add(file);
    await this.#record({ kind: "compared", table: name, files: [...files] });
    this.#step("window-compared");
  }

  /** Puts the parts of a segment in its place, all at once. */
  async splitSegment(name: TableName, replaces: Segment, parts: readonly Segment[]): Promise<void> {
    this.held.splitSegment(name, replaces.file, parts);
    await this.#record({ kind: "split", table: name, replaces: replaces.file, segments: [...parts] });
    this.#step("segment-split");
  }

  /** Stops segments from counting: their windows will be fetched again. */
  async dropSegments(name: TableName, segments: readonly Segment[]): Promise<void> {
    if (segments.length === 0) return;
    const files = segments.map(({ file }) => file);
    this.held.forget(name, files);
    await this.#record({ kind: "drop", table: name, files });
    this.#step("segments-dropped");
  }

  /** Segments count in this job, but in none that goes on with its work: that one fetches their windows again. */
  async doubtSegments(name: TableName, segments: readonly Segment[]): Promise<void> {
    if (segments.length === 0) return;
    await this.#record({ kind: "drop", table: name, files: segments.map(({ file }) => file) });
  }

  /**
   * Has the journal say that lost segments do not count: their windows are fetched again, and should a lost file come
   * back from a copy while this work is interrupted, its rows would count twice.
   */
  async dropLost(): Promise<void> {
    for (const [table, files] of this.held.lostSegments) {
      await this.#record({ kind: "drop", table, files: [...files] });
    }
  }

  /** Makes a converted bucket count. The file stands in staging under its name. */
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
   * Puts a cleaned segment in the place of the one it was made of, at once with the rows set aside from it: one NDJSON
   * record a row, with its place and the reason.
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

  /** Puts a file that is written into its place; the two may be on different disks. */
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

  /** The same with what is said of each. Throws `archive_damaged` where they cannot be read. */
  async recordsAside(files: readonly QuarantineFile[]): Promise<AsideRecord[]> {
    const records: AsideRecord[] = [];
    for (const file of files) {
      const { store, key } = await this.held.locate(file.file, "quarantine");
      for (const record of await recordsAside(store, key, file)) records.push(record);
    }
    return records;
  }

  /** True when the bucket's Parquet was made in this generation, by this job or by an interrupted one. */
  isConvertedAnew(name: TableName, bucket: string, segments: readonly Segment[]): boolean {
    const made = this.held.converted(name, bucket, segments);
    return made !== undefined && generationOf(made.file.file) === this.generation;
  }

  /** Forgets everything: after a commit. */
  async remove(): Promise<void> {
    await this.#tail;
    await this.#journal.close();
    await removeWork(this.#work.layout, this.run);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tail.catch(() => {
      // the append that failed has thrown where it was awaited
    });
    await this.#journal.close().catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EBADF") throw error;
    });
  }

  /** Adds one line, after those that `ahead` gives; on disk when the promise resolves. Lines keep the order of the calls. */
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

/** Removes the work folders of a run, but for files in them that are not ours. Under the run's lock only. */
export async function removeWork(layout: Layout, run: RunRef): Promise<void> {
  for (const { folder, isOwn } of workFoldersOf(layout, run)) await removeOwnFolder(layout, folder, isOwn);
}

/**
 * True when `pending/` still holds work on a generation that is committed: a kill came between the commit and the end
 * of the job. Under the run's lock only.
 */
export async function holdsCommittedWork(layout: Layout, run: RunRef, committed: Manifest): Promise<boolean> {
  if ((await sizeOf(layout.pendingDir(run))) === null) return false;
  const [head] = (await readJournal(layout, run)).entries;
  return head?.kind !== "open" || head.generation <= committed.generation;
}

/**
 * True when an interrupted archiving job left work on the generation after `committed`: more than Parquet, which can be
 * made again at any time. Under the run's lock only.
 */
export async function holdsFetchedWork(layout: Layout, run: RunRef, committed: Manifest): Promise<boolean> {
  const [head, ...rest] = (await readJournal(layout, run)).entries;
  if (head?.kind !== "open" || head.generation !== committed.generation + 1) return false;
  if (head.remaps) return false;
  const isWork = ({ kind }: Entry) => kind !== "parquet" && kind !== "through" && kind !== "seen";
  return rest.some(isWork);
}

/** True when `pending/` holds rows by another map, which no job goes on with. Under the run's lock only. */
export async function holdsRemaps(layout: Layout, run: RunRef): Promise<boolean> {
  const [head] = (await readJournal(layout, run)).entries;
  return head?.kind === "open" && head.remaps === true;
}

/** The generation whose job made a file. */
export function generationOf(file: string): number {
  return Number(/\.g(\d+)\.\d+\./.exec(file)?.[1] ?? 0);
}

/** The highest running number that a file of this generation carries. */
function highestName(generation: number, names: readonly string[]): number {
  let highest = 0;
  for (const name of names) {
    const [, own, number] = /\.g(\d+)\.(\d+)\./.exec(name) ?? [];
    if (Number(own) === generation) highest = Math.max(highest, Number(number));
  }
  return highest;
}
