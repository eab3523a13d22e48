import { join } from "node:path";
import { RunvaultError } from "../../model/error.ts";
import { type ExactTypes, sameTypes } from "../../model/profile/exact-types.ts";
import type { TableName } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import type { Grain } from "../bucket.ts";
import type { Layout } from "../layout.ts";
import { type Evidence, evidenceOf } from "../manifest/evidence.ts";
import type {
  Holding,
  Manifest,
  ParquetFile,
  QuarantineFile,
  Segment,
  Through,
} from "../manifest/manifest.ts";
import { holdingsOf, latestView } from "../manifest/table-view.ts";
import type { CommittedFile } from "../read/whole-files.ts";
import { hashObject } from "../storage/file-hash.ts";
import { FolderStore } from "../storage/folder-store.ts";
import { isMissing, sizeOf } from "../storage/fsync-files.ts";
import type { Store } from "../storage/store.ts";
import { type Entry, readJournal, type ScanRecord } from "./journal.ts";

/** What is held of one table, committed and pending together. */
export interface HeldTable {
  grain: Grain | null;
  fullScan: ScanRecord | null;
  /** In order of their windows; parts of one unsorted answer share theirs. */
  segments: Segment[];
  /** Each with the names of the segments it was made of; a bucket may have several, of which one is of those held now. */
  parquet: { file: ParquetFile; of: string[]; drift: string[] }[];
  quarantine: QuarantineFile[];
  /** What these rows came through; undefined where they came as the contract has them. */
  through?: Through | undefined;
  /** Names of segments whose rows were the same when this job, or one that was interrupted, streamed them once more. */
  compared: Set<string>;
  /** What the gateway told and brought of it, by the journal: it counts as long as the segments there do. */
  evidence: Evidence[];
}

/** A table of which nothing is held. */
export function nothingHeld(): HeldTable {
  const lists = { segments: [], parquet: [], quarantine: [], evidence: [] };
  return { grain: null, fullScan: null, ...lists, compared: new Set() };
}

/** What says which work is held of a run: where it is, and what it would be a continuation of. */
export interface HeldWork {
  readonly layout: Layout;
  readonly store: Store;
  readonly run: RunRef;
  readonly committed: Manifest | null;
  /** Of the finished run whose rows are wanted; null while the run goes on: counts tell then. */
  readonly storageVersion: string | null;
  /** Whether the run is final: rows that were fetched while it went on may have changed since. */
  readonly final: boolean;
  /** Whether rows are made anew of those committed, by another map: no job goes on with that. */
  readonly remaps?: true;
  /** Committed files that are missing, or not what was committed: they count for nothing. Default: none. */
  readonly lost?: ReadonlySet<string>;
  /** What an interrupted job last noted before this, in milliseconds since 1970, does not count. Default: all counts. */
  readonly notedSinceMs?: number;
  /** Parquet of other types does not count, committed or not: its bucket is converted again. */
  readonly exactTypes: (table: TableName) => ExactTypes;
}

/** Where a held file is: among what is committed, or in the folder of work that is not. */
export interface HeldPlace {
  readonly store: Store;
  readonly key: string;
  readonly isPending: boolean;
}

/** How much of a run's journal is taken up. */
export interface TakenUp {
  readonly held: HeldTables;
  /** The journal's entries; none where it is of another generation or version, or damaged. */
  readonly entries: readonly Entry[];
  /** Bytes of the journal's whole lines; fewer than it has where its last line is torn. */
  readonly wholeBytes: number;
  readonly isTorn: boolean;
}

/** What a job on a run would work on: the committed generation, and what an interrupted job fetched after it. */
export class HeldTables {
  readonly generation: number;
  /** Segments that an earlier, interrupted job had fetched. */
  resumedSegments = 0;
  /** True where some of them were fetched while the run went on. */
  resumedGrowing = false;
  /** Committed segments that count for nothing: files of theirs are lost, or the gateway counted other rows. */
  readonly lostSegments = new Map<TableName, readonly string[]>();
  readonly #tables = new Map<TableName, HeldTable>();
  /** What the journal says of the rows of segments that are not whole any more, by their names. */
  readonly #damaged = new Map<string, Evidence>();
  /** Files that the committed generation names. */
  readonly #committed = new Set<string>();
  readonly #work: HeldWork;
  /** Work that is not committed. */
  readonly #pending: Store;

  private constructor(work: HeldWork) {
    this.#work = work;
    this.#pending = new FolderStore(work.layout, work.layout.scratch ?? work.layout.dir);
    this.generation = (work.committed?.generation ?? 0) + 1;
    this.#adopt(work.committed);
  }

  /**
   * Reads what is held without changing anything on disk. What an interrupted job left counts where it belongs to the
   * generation after `committed` and its files are whole. What came under another storage version does not: rows of two
   * versions would make a table that never was.
   */
  static async read(work: HeldWork): Promise<TakenUp> {
    const { layout, run, storageVersion, notedSinceMs = 0 } = work;
    const held = new HeldTables(work);
    const { entries, wholeBytes, bytes, notedMs } = await readJournal(layout, run);
    const [head] = entries;
    const ours =
      head?.kind === "open" &&
      head.instanceId === run.instanceId &&
      head.runId === run.runId &&
      head.generation === held.generation &&
      head.remaps !== true &&
      notedMs >= notedSinceMs &&
      // what came once nothing changed any more may have changed while the run went on again
      !(head.final && !work.final) &&
      (head.storageVersion === null || head.storageVersion === storageVersion);
    if (!ours) return { held, entries: [], wholeBytes, isTorn: false };
    for (const entry of entries) await held.#replay(entry, head);
    held.resumedGrowing = !head.final && held.resumedSegments > 0;
    return { held, entries, wholeBytes, isTorn: wholeBytes < bytes };
  }

  of(name: TableName): HeldTable {
    let held = this.#tables.get(name);
    if (held === undefined) {
      held = nothingHeld();
      this.#tables.set(name, held);
    }
    return held;
  }

  /** Where a held file is now: an interrupted commit may have moved it already. */
  async locate(name: string, folder: CommittedFile["folder"] = "data"): Promise<HeldPlace> {
    const { layout, run, store } = this.#work;
    const pending = join(layout.pendingDir(run), name);
    if ((await sizeOf(pending)) !== null) {
      return { store: this.#pending, key: layout.keyOf(pending), isPending: true };
    }
    return { store, key: layout.committedKey(run, folder, name), isPending: false };
  }

  /** True for segments and Parquet of the committed generation: what became of them since is not known. */
  isCommitted(name: string): boolean {
    return this.#committed.has(name);
  }

  /** The segments of a bucket in order of their windows. */
  segmentsOf(name: TableName, bucket: string): Segment[] {
    return this.of(name).segments.filter((segment) => segment.bucket === bucket);
  }

  /** The bucket's Parquet that was made of exactly these segments, those held now unless others are given. */
  converted(name: TableName, bucket: string, segments: readonly Segment[] = this.segmentsOf(name, bucket)) {
    const of = segments.map(({ file }) => file);
    return this.of(name).parquet.find((made) => made.file.bucket === bucket && sameNames(made.of, of));
  }

  addSegments(name: TableName, segments: readonly Segment[]): void {
    for (const segment of segments) insertSegment(this.of(name).segments, segment);
  }

  addParquet(name: TableName, file: ParquetFile, of: readonly string[], drift: readonly string[]): void {
    const held = this.of(name);
    held.parquet = held.parquet.filter((made) => made.file.bucket !== file.bucket || !sameNames(made.of, of));
    held.parquet.push({ file, of: [...of], drift: [...drift] });
  }

  /** Puts a segment in the place of the one that it was made of. */
  replaceSegment(
    name: TableName,
    replaces: string,
    segment: Segment,
    quarantine: QuarantineFile | null,
  ): void {
    const held = this.of(name);
    const at = held.segments.findIndex(({ file }) => file === replaces);
    // what it was made of does not count any more: its window is fetched again
    if (at < 0) return;
    held.segments[at] = segment;
    if (quarantine !== null) held.quarantine.push(quarantine);
  }

  /** Puts the parts of a segment in its place. */
  splitSegment(name: TableName, replaces: string, parts: readonly Segment[]): void {
    const held = this.of(name);
    const at = held.segments.findIndex(({ file }) => file === replaces);
    if (at < 0) return;
    held.segments.splice(at, 1, ...parts);
    // those of one answer share their window, and so do their parts
    held.segments.sort(
      (a, b) => Number(BigInt(a.from) > BigInt(b.from)) - Number(BigInt(a.from) < BigInt(b.from)),
    );
  }

  /** Segments stop counting. */
  forget(name: TableName, files: readonly string[]): void {
    const held = this.of(name);
    const dropped = new Set(files);
    held.segments = held.segments.filter(({ file }) => !dropped.has(file));
    // rows set aside from a segment that is fetched again will be set aside again
    held.quarantine = held.quarantine.filter(({ segment }) => !dropped.has(segment));
  }

  #adopt(committed: Manifest | null): void {
    const { lost = new Set() } = this.#work;
    for (const [key, table] of Object.entries(committed?.tables ?? {})) {
      const name = key as TableName;
      const { grain, segments, quarantine, through, storageVersion } = latestView(table);
      const held = this.of(name);
      held.through = through;
      // a table that never held a row has decided nothing yet
      held.grain = segments.length === 0 ? null : grain;
      const gone = lostWindows({ segments, quarantine }, lost);
      for (const segment of segments) if (segment.doubted) gone.add(windowOf(segment));
      const isGone = (file: Segment | QuarantineFile) => gone.has(windowOf(file));
      for (const segment of segments) if (!isGone(segment)) held.segments.push(segment);
      const proven = new Set(table.proven?.segments.map(({ file }) => file));
      // what was proven is not to shrink, and what was doubted is in the attempt's record
      const isToNote = (segment: Segment) =>
        isGone(segment) && !segment.doubted && !proven.has(segment.partOf ?? segment.file);
      for (const lost of Map.groupBy(segments.filter(isToNote), windowOf).values())
        held.evidence.push({ ...evidenceOf(lost, storageVersion), isOlder: true });
      if (gone.size > 0) {
        this.lostSegments.set(
          name,
          segments.filter(isGone).map(({ file }) => file),
        );
      }
      for (const file of quarantine) if (!isGone(file)) held.quarantine.push(file);
      for (const { segments, parquet, drift, exactTypes } of holdingsOf(table)) {
        for (const { file } of [...segments, ...parquet]) this.#committed.add(file);
        if (!sameTypes(exactTypes, this.#work.exactTypes(name))) continue;
        for (const file of parquet) {
          if (lost.has(file.file)) continue;
          const of = segments.filter(({ bucket }) => bucket === file.bucket).map(({ file }) => file);
          this.addParquet(name, file, of, drift);
        }
      }
    }
  }

  /** Takes note of the rows of segments of one window that do not count: they came all the same. */
  #noteDamaged(name: TableName, segments: readonly Segment[], version: string | null): void {
    if (segments.length === 0) return;
    const seen = evidenceOf(segments, version);
    for (const { file } of segments) this.#damaged.set(file, seen);
    this.of(name).evidence.push(seen);
  }

  async #replay(
    entry: Entry,
    { final: wasFinal, storageVersion }: Extract<Entry, { kind: "open" }>,
  ): Promise<void> {
    if (entry.kind === "open") return;
    const held = this.of(entry.table);
    switch (entry.kind) {
      case "grain":
        held.grain = entry.grain;
        return;
      case "through":
        held.through = entry.through ?? undefined;
        return;
      case "survey":
        held.fullScan = entry.survey;
        return;
      case "drop":
        // what is to be known of their rows was noted when they were dropped
        held.evidence = held.evidence.filter((seen) =>
          entry.files.every((file) => this.#damaged.get(file) !== seen),
        );
        this.forget(entry.table, entry.files);
        return;
      case "seen":
        held.evidence = entry.isAfresh ? entry.evidence : [...held.evidence, ...entry.evidence];
        return;
      case "compared":
        for (const file of entry.files) held.compared.add(file);
        return;
      case "split": {
        const whole = await Promise.all(entry.segments.map((segment) => this.#isWhole(segment)));
        if (whole.every(Boolean)) this.splitSegment(entry.table, entry.replaces, entry.segments);
        return;
      }
      case "segments": {
        const whole = await Promise.all(entry.segments.map((segment) => this.#isWhole(segment)));
        if (!whole.every(Boolean)) return this.#noteDamaged(entry.table, entry.segments, storageVersion);
        this.addSegments(entry.table, entry.segments);
        this.resumedSegments += entry.segments.length;
        // what came of a finished run came once nothing of it changed any more
        if (wasFinal) for (const { file } of entry.segments) held.compared.add(file);
        return;
      }
      case "parquet": {
        const { table, parquet, of, drift, exactTypes } = entry;
        if (sameTypes(exactTypes, this.#work.exactTypes(table)) && (await this.#isWhole(parquet))) {
          this.addParquet(table, parquet, of, drift);
        }
        return;
      }
      case "clean": {
        const { table, replaces, segment, quarantine } = entry;
        const whole =
          (await this.#isWhole(segment)) &&
          (quarantine === null || (await this.#isWhole(quarantine, "quarantine")));
        if (whole) this.replaceSegment(table, replaces, segment, quarantine);
        else {
          const replaced = held.segments.filter(({ file }) => file === replaces);
          this.#noteDamaged(table, replaced, storageVersion);
          this.forget(table, [replaces]);
        }
      }
    }
  }

  async #isWhole(
    entry: { file: string; storedBytes: number; sha256: string },
    folder: CommittedFile["folder"] = "data",
  ): Promise<boolean> {
    const { store, key } = await this.locate(entry.file, folder);
    try {
      const { storedBytes, sha256 } = await hashObject(store, key, entry.storedBytes);
      return storedBytes === entry.storedBytes && sha256 === entry.sha256;
    } catch (error) {
      // moved by the job that holds the run, while a dry run looks: it is the job's by now
      if (isMissing(error)) return false;
      if (error instanceof RunvaultError && error.code === "archive_damaged") return false;
      throw error;
    }
  }
}

function sameNames(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((name, i) => name === other[i]);
}

/** Windows of a table that have to be fetched again: parts of one answer are in one window, and count together. */
function lostWindows(
  { segments, quarantine }: Pick<Holding, "segments" | "quarantine">,
  lost: ReadonlySet<string>,
): Set<string> {
  return new Set([...segments, ...quarantine].filter(({ file }) => lost.has(file)).map(windowOf));
}

function windowOf({ from, to }: Segment | QuarantineFile): string {
  return `${from} ${to}`;
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
