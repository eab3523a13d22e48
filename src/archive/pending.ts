import { type FileHandle, open, readdir, readFile, rename, stat, truncate } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { RunRef } from "../model/source.ts";
import { type TableName, tableNames } from "../model/table.ts";
import { type Grain, grains } from "./bucket.ts";
import { type ExactTypes, sameTypes } from "./convert-types.ts";
import { isMissing, syncFile, writeSynced } from "./durable.ts";
import { hashFile } from "./file-hash.ts";
import type { Layout } from "./layout.ts";
import {
  type Manifest,
  type ParquetFile,
  parquetSchema,
  type QuarantineFile,
  quarantineSchema,
  type Segment,
  segmentSchema,
} from "./manifest.ts";
import { ownFiles } from "./own-names.ts";
import { makeRealFolder, requireRealFile } from "./real-folder.ts";
import { removeOwnFiles, removeOwnFolder } from "./remove-own.ts";
import { packSegment, sha256Of } from "./segment.ts";

/** What a full pass over a table of a source without facts found. */
const surveySchema = z.strictObject({
  rows: z.int().nonnegative(),
  first: z.string().nullable(),
  last: z.string().nullable(),
  sha256: z.string(),
  until: z.string().nullable(),
});
export type SurveyRecord = z.infer<typeof surveySchema>;

const table = z.enum(tableNames as [TableName, ...TableName[]]);
const entrySchema = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("open"),
    format: z.literal(1),
    instanceId: z.string(),
    runId: z.string(),
    generation: z.int(),
    /** Of the finished run whose rows these are; null where none was said, and while the run went on. */
    storageVersion: z.string().nullable(),
  }),
  z.strictObject({ kind: z.literal("grain"), table, grain: z.enum(grains) }),
  z.strictObject({ kind: z.literal("survey"), table, survey: surveySchema }),
  // the parts of one unsorted answer count together or not at all
  z.strictObject({ kind: z.literal("segments"), table, segments: z.array(segmentSchema) }),
  z.strictObject({ kind: z.literal("drop"), table, files: z.array(z.string()) }),
  z.strictObject({
    kind: z.literal("parquet"),
    table,
    parquet: parquetSchema,
    of: z.array(z.string()),
    drift: z.array(z.string()),
    /** Types of its exact columns. */
    exactTypes: z.record(z.string(), z.string()),
  }),
  z.strictObject({
    kind: z.literal("clean"),
    table,
    replaces: z.string(),
    segment: segmentSchema,
    quarantine: quarantineSchema.nullable(),
  }),
]);
type Entry = z.infer<typeof entrySchema>;

/** What is held of one table, committed and pending together. */
export interface HeldTable {
  grain: Grain | null;
  survey: SurveyRecord | null;
  /** In order of their windows; parts of one unsorted answer share theirs. */
  segments: Segment[];
  /** Each with the names of the segments it was made of. */
  parquet: { file: ParquetFile; of: string[]; drift: string[] }[];
  quarantine: QuarantineFile[];
}

/** Named moments of a job, in its order: a test kills the process at each. */
export type Step = (name: string) => void;

/**
 * Work on a run that is not committed yet: fetched segments and converted buckets, with the journal that makes them
 * count. A file counts from the moment its journal line is on disk. Deleting the folder costs refetching, no more.
 */
export class Pending implements AsyncDisposable {
  readonly run: RunRef;
  readonly generation: number;
  readonly tables = new Map<TableName, HeldTable>();
  /** Files that the committed generation names. */
  readonly #committed = new Set<string>();
  /** Segments that an earlier, interrupted job had fetched. */
  resumedSegments = 0;
  readonly #layout: Layout;
  readonly #exactTypes: (table: TableName) => ExactTypes;
  readonly #journal: FileHandle;
  readonly #step: Step;
  #names: number;
  #tail: Promise<void> = Promise.resolve();

  private constructor(
    layout: Layout,
    run: RunRef,
    generation: number,
    exactTypes: (table: TableName) => ExactTypes,
    journal: FileHandle,
    names: number,
    step: Step,
  ) {
    this.#exactTypes = exactTypes;
    this.run = run;
    this.generation = generation;
    this.#layout = layout;
    this.#journal = journal;
    this.#names = names;
    this.#step = step;
  }

  /**
   * Opens the work on the generation after `committed`: what an interrupted job left behind, where it belongs to the
   * same generation and its files are whole, else empty. What came under another storage version is not taken up: rows
   * of two versions would make a table that never was. `storageVersion` is null while the run goes on: counts tell then.
   * Parquet of other types than `exactTypes` says does not count, committed or not: its bucket is converted again.
   */
  static async open(
    layout: Layout,
    run: RunRef,
    committed: Manifest | null,
    storageVersion: string | null,
    exactTypes: (table: TableName) => ExactTypes,
    step: Step,
  ): Promise<Pending> {
    const generation = (committed?.generation ?? 0) + 1;
    const file = layout.journalFile(run);
    await makeRealFolder(layout, layout.pendingDir(run));
    await makeRealFolder(layout, layout.stagingDir(run));
    let entries = await readJournal(file);
    const head = entries[0];
    const ours =
      head?.kind === "open" &&
      head.instanceId === run.instanceId &&
      head.runId === run.runId &&
      head.generation === generation &&
      (head.storageVersion === null || head.storageVersion === storageVersion);
    if (!ours) {
      await removeOwnFiles(layout, layout.pendingDir(run), ownFiles.pending);
      entries = [];
    }
    await removeOwnFiles(layout, layout.stagingDir(run), ownFiles.staging);
    const journal = await open(file, "a");
    const names = await highestName(generation, layout.pendingDir(run), layout.dataDir(run));
    const pending = new Pending(layout, run, generation, exactTypes, journal, names, step);
    pending.#adopt(committed);
    if (entries.length === 0) {
      await pending.#record({
        kind: "open",
        format: 1,
        instanceId: run.instanceId,
        runId: run.runId,
        generation,
        storageVersion,
      });
    }
    for (const entry of entries) await pending.#replay(entry);
    return pending;
  }

  held(name: TableName): HeldTable {
    let held = this.tables.get(name);
    if (held === undefined) {
      held = { grain: null, survey: null, segments: [], parquet: [], quarantine: [] };
      this.tables.set(name, held);
    }
    return held;
  }

  /** A new file name, unique in this generation. */
  nextName(table: string, suffix: string): string {
    return `${table}.g${this.generation}.${String(++this.#names).padStart(6, "0")}.${suffix}`;
  }

  /** Where a half-written file goes before it is moved to its place. */
  stagingFile(name: string): string {
    return join(this.#layout.stagingDir(this.run), name);
  }

  pendingFile(name: string): string {
    return join(this.#layout.pendingDir(this.run), name);
  }

  /** Where a held file is now: an interrupted commit may have moved it already. */
  async locate(name: string): Promise<string> {
    return await this.#locateIn(this.#layout.dataDir(this.run), name);
  }

  async #locateIn(committed: string, name: string): Promise<string> {
    const pending = this.pendingFile(name);
    return (await sizeOf(pending)) === null ? join(committed, name) : pending;
  }

  /** True for files of the committed generation: what became of them since is not known. */
  isCommitted(name: string): boolean {
    return this.#committed.has(name);
  }

  async setGrain(name: TableName, grain: Grain): Promise<void> {
    this.held(name).grain = grain;
    await this.#record({ kind: "grain", table: name, grain });
  }

  async setSurvey(name: TableName, survey: SurveyRecord): Promise<void> {
    this.held(name).survey = survey;
    await this.#record({ kind: "survey", table: name, survey });
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
    await writeSynced(this.stagingFile(file), frame);
    this.#step("segment-written");
    await rename(this.stagingFile(file), this.pendingFile(file));
    this.#step("segment-renamed");
    return { ...draft, file, storedBytes: frame.byteLength, sha256 };
  }

  /** Makes segments count. */
  async addSegments(name: TableName, segments: readonly Segment[]): Promise<void> {
    for (const segment of segments) insertSegment(this.held(name).segments, segment);
    await this.#record({ kind: "segments", table: name, segments: [...segments] });
    this.#step("segment-journalled");
  }

  /** Stops segments from counting: their windows will be fetched again. */
  async dropSegments(name: TableName, segments: readonly Segment[]): Promise<void> {
    if (segments.length === 0) return;
    const files = segments.map(({ file }) => file);
    this.#forget(name, files);
    await this.#record({ kind: "drop", table: name, files });
    this.#step("segments-dropped");
  }

  /** Makes a converted bucket count. The file stands in staging under its name. */
  async addParquet(
    name: TableName,
    file: ParquetFile,
    of: readonly string[],
    drift: readonly string[],
  ): Promise<void> {
    await syncFile(this.stagingFile(file.file));
    await rename(this.stagingFile(file.file), this.pendingFile(file.file));
    this.#step("parquet-renamed");
    const held = this.held(name);
    held.parquet = held.parquet.filter(({ file: { bucket } }) => bucket !== file.bucket);
    held.parquet.push({ file, of: [...of], drift: [...drift] });
    const exactTypes = { ...this.#exactTypes(name) };
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
    this.#replaceSegment(name, replaces.file, segment, quarantine);
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
    await writeSynced(this.stagingFile(file), bytes);
    await rename(this.stagingFile(file), this.pendingFile(file));
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

  /** The segments of a bucket in order of their windows. */
  segmentsOf(name: TableName, bucket: string): Segment[] {
    return this.held(name).segments.filter((segment) => segment.bucket === bucket);
  }

  /** True when the bucket's Parquet was made of exactly the segments held now. */
  isConverted(name: TableName, bucket: string): boolean {
    const made = this.held(name).parquet.find(({ file }) => file.bucket === bucket);
    const segments = this.segmentsOf(name, bucket).map(({ file }) => file);
    return (
      made !== undefined &&
      made.of.length === segments.length &&
      made.of.every((file, i) => file === segments[i])
    );
  }

  /** True when the bucket's Parquet was made in this generation, by this job or by an interrupted one. */
  isConvertedAnew(name: TableName, bucket: string): boolean {
    const made = this.held(name).parquet.find(({ file }) => file.bucket === bucket);
    return (
      made !== undefined && generationOf(made.file.file) === this.generation && this.isConverted(name, bucket)
    );
  }

  /** Forgets everything: after a commit. */
  async remove(): Promise<void> {
    await this.#tail;
    await this.#journal.close();
    await removeWork(this.#layout, this.run);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tail.catch(() => {
      // the append that failed has thrown where it was awaited
    });
    await this.#journal.close().catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EBADF") throw error;
    });
  }

  #adopt(committed: Manifest | null): void {
    for (const [key, { grain, segments, parquet, quarantine, drift, exactTypes }] of Object.entries(
      committed?.tables ?? {},
    )) {
      const name = key as TableName;
      const held = this.held(name);
      // a table that never held a row has decided nothing yet
      held.grain = segments.length === 0 ? null : grain;
      held.segments.push(...segments);
      for (const { file } of segments) this.#committed.add(file);
      held.quarantine.push(...quarantine);
      if (!sameTypes(exactTypes, this.#exactTypes(name))) continue;
      for (const file of parquet) {
        const of = segments.filter(({ bucket }) => bucket === file.bucket).map(({ file }) => file);
        held.parquet.push({ file, of, drift });
      }
    }
  }

  async #replay(entry: Entry): Promise<void> {
    if (entry.kind === "open") return;
    const held = this.held(entry.table);
    switch (entry.kind) {
      case "grain":
        held.grain = entry.grain;
        return;
      case "survey":
        held.survey = entry.survey;
        return;
      case "drop":
        this.#forget(entry.table, entry.files);
        return;
      case "segments": {
        const whole = await Promise.all(entry.segments.map((segment) => this.#isWhole(segment)));
        if (!whole.every(Boolean)) return;
        for (const segment of entry.segments) insertSegment(held.segments, segment);
        this.resumedSegments += entry.segments.length;
        return;
      }
      case "parquet":
        held.parquet = held.parquet.filter(({ file: { bucket } }) => bucket !== entry.parquet.bucket);
        if (
          sameTypes(entry.exactTypes, this.#exactTypes(entry.table)) &&
          (await this.#isWhole(entry.parquet))
        ) {
          held.parquet.push({ file: entry.parquet, of: entry.of, drift: entry.drift });
        }
        return;
      case "clean": {
        const { replaces, segment, quarantine } = entry;
        const whole =
          (await this.#isWhole(segment)) &&
          (quarantine === null || (await this.#isWhole(quarantine, this.#layout.quarantineDir(this.run))));
        if (whole) this.#replaceSegment(entry.table, replaces, segment, quarantine);
        else this.#forget(entry.table, [replaces]);
      }
    }
  }

  #replaceSegment(
    name: TableName,
    replaces: string,
    segment: Segment,
    quarantine: QuarantineFile | null,
  ): void {
    const held = this.held(name);
    const at = held.segments.findIndex(({ file }) => file === replaces);
    // what it was made of does not count any more: its window is fetched again
    if (at < 0) return;
    held.segments[at] = segment;
    if (quarantine !== null) held.quarantine.push(quarantine);
  }

  #forget(name: TableName, files: readonly string[]): void {
    const held = this.held(name);
    const dropped = new Set(files);
    held.segments = held.segments.filter(({ file }) => !dropped.has(file));
    // rows set aside from a segment that is fetched again will be set aside again
    held.quarantine = held.quarantine.filter(({ segment }) => !dropped.has(segment));
  }

  async #isWhole(
    entry: { file: string; storedBytes: number; sha256: string },
    committed = this.#layout.dataDir(this.run),
  ): Promise<boolean> {
    const file = await this.#locateIn(committed, entry.file);
    if ((await sizeOf(file)) !== entry.storedBytes) return false;
    return (await hashFile(file)).sha256 === entry.sha256;
  }

  /** One journal line, on disk when the promise resolves. Lines keep the order of the calls. */
  #record(entry: Entry): Promise<void> {
    const write = this.#tail.then(async () => {
      await this.#journal.appendFile(`${JSON.stringify(entry)}\n`);
      await this.#journal.datasync();
    });
    this.#tail = write;
    return write;
  }
}

/** Removes the work folders of a run, but for files in them that are not ours. Under the run's lock only. */
export async function removeWork(layout: Layout, run: RunRef): Promise<void> {
  await removeOwnFolder(layout, layout.stagingDir(run), ownFiles.staging);
  await removeOwnFolder(layout, layout.pendingDir(run), ownFiles.pending);
}

/**
 * True when `pending/` still holds work on a generation that is committed: a kill came between the commit and the end
 * of the job. Under the run's lock only.
 */
export async function holdsCommittedWork(layout: Layout, run: RunRef, committed: Manifest): Promise<boolean> {
  if ((await sizeOf(layout.pendingDir(run))) === null) return false;
  const [head] = await readJournal(layout.journalFile(run));
  return head?.kind !== "open" || head.generation <= committed.generation;
}

/**
 * True when an interrupted archiving job left work on the generation after `committed`: more than Parquet, which can be
 * made again at any time. Under the run's lock only.
 */
export async function holdsFetchedWork(layout: Layout, run: RunRef, committed: Manifest): Promise<boolean> {
  const [head, ...rest] = await readJournal(layout.journalFile(run));
  if (head?.kind !== "open" || head.generation !== committed.generation + 1) return false;
  return rest.some(({ kind }) => kind !== "parquet");
}

/** The generation whose job made a file. */
export function generationOf(file: string): number {
  return Number(/\.g(\d+)\.\d+\./.exec(file)?.[1] ?? 0);
}

/** The whole lines of a journal. A torn last line is what a kill leaves; it is cut off. Any other damage: no journal. */
async function readJournal(file: string): Promise<Entry[]> {
  // its end may be cut off, and lines are added to it
  await requireRealFile(file);
  let bytes: Buffer;
  try {
    bytes = await readFile(file);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
  const end = bytes.lastIndexOf(10) + 1;
  if (end < bytes.byteLength) await truncate(file, end);
  const entries: Entry[] = [];
  for (const line of bytes.toString("utf8", 0, end).split("\n").slice(0, -1)) {
    const parsed = entrySchema.safeParse(jsonOrNull(line));
    if (!parsed.success) return [];
    entries.push(parsed.data);
  }
  return entries;
}

/** The highest running number that a file of this generation carries. */
async function highestName(generation: number, ...folders: string[]): Promise<number> {
  let highest = 0;
  for (const folder of folders) {
    const names = await readdir(folder).catch((error: unknown) => {
      if (isMissing(error)) return [];
      throw error;
    });
    for (const name of names) {
      const [, own, number] = /\.g(\d+)\.(\d+)\./.exec(name) ?? [];
      if (Number(own) === generation) highest = Math.max(highest, Number(number));
    }
  }
  return highest;
}

function jsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Keeps the order of windows; among segments of one window, the order of adding. */
function insertSegment(segments: Segment[], segment: Segment): void {
  const from = BigInt(segment.from);
  let low = 0;
  let high = segments.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (BigInt(segments[middle]!.from) <= from) low = middle + 1;
    else high = middle;
  }
  segments.splice(low, 0, segment);
}

async function sizeOf(file: string): Promise<number | null> {
  try {
    return (await stat(file)).size;
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}
