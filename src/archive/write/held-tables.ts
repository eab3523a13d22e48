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

/** The held state of one table, committed and pending together. */
export interface HeldTable {
  grain: Grain | null;
  fullScan: ScanRecord | null;
  /** In order of their windows; parts of one unsorted answer share one. */
  segments: Segment[];
  /**
   * Each with the segments that it was made from; a bucket may have several, one of which matches the segments held
   * now.
   */
  parquet: { file: ParquetFile; of: string[]; drift: string[] }[];
  quarantine: QuarantineFile[];
  /** How these rows came; undefined if as the contract says. */
  through?: Through | undefined;
  /** Segments that this or an interrupted job streamed again and found equal. */
  compared: Set<string>;
  /** Evidence about it in the journal, which counts as long as the segments there do. */
  evidence: Evidence[];
}

/** A table without held data. */
export function nothingHeld(): HeldTable {
  const lists = { segments: [], parquet: [], quarantine: [], evidence: [] };
  return { grain: null, fullScan: null, ...lists, compared: new Set() };
}

/** Identifies the held work of a run: its place, and what it would continue. */
export interface HeldWork {
  readonly layout: Layout;
  readonly store: Store;
  readonly run: RunRef;
  readonly committed: Manifest | null;
  /** Of the finished run to fetch; null while the run grows: then counts decide. */
  readonly storageVersion: string | null;
  /** Whether the run is final: rows fetched while it grew may have changed since. */
  readonly final: boolean;
  /** Whether rows are converted from committed ones with another map: no job continues that. */
  readonly remaps?: true;
  /** Committed files that are missing or damaged and do not count. Default: none. */
  readonly lost?: ReadonlySet<string>;
  /**
   * Work last noted by an interrupted job before this time, in milliseconds since 1970, does not count. Default: all
   * counts.
   */
  readonly notedSinceMs?: number;
  /** Parquet with other types does not count, committed or not: its bucket is converted again. */
  readonly exactTypes: (table: TableName) => ExactTypes;
}

/** A held file's place: among the committed files, or in the folder of uncommitted work. */
export interface HeldPlace {
  readonly store: Store;
  readonly key: string;
  readonly isPending: boolean;
}

/** How much of a run's journal is taken up. */
export interface TakenUp {
  readonly held: HeldTables;
  /** The journal's entries; none if it belongs to another generation or version, or is damaged. */
  readonly entries: readonly Entry[];
  /** Bytes of the journal's whole lines; fewer than its size if the last line is torn. */
  readonly wholeBytes: number;
  readonly isTorn: boolean;
}

/** A job's starting point on a run: the committed generation, and what an interrupted job fetched after it. */
export class HeldTables {
  readonly generation: number;
  /** Segments that an interrupted job had fetched. */
  resumedSegments = 0;
  /** True if some were fetched while the run was growing. */
  resumedGrowing = false;
  /** Committed segments that do not count: their files are lost, or the gateway counted other rows. */
  readonly lostSegments = new Map<TableName, readonly string[]>();
  readonly #tables = new Map<TableName, HeldTable>();
  /** The journal's evidence about damaged segments, by name. */
  readonly #damaged = new Map<string, Evidence>();
  /** Files of the committed generation. */
  readonly #committed = new Set<string>();
  readonly #work: HeldWork;
  /** The uncommitted work. */
  readonly #pending: Store;

  private constructor(work: HeldWork) {
    this.#work = work;
    this.#pending = new FolderStore(work.layout, work.layout.scratch ?? work.layout.dir);
    this.generation = (work.committed?.generation ?? 0) + 1;
    this.#adopt(work.committed);
  }

  /**
   * Reads what is held without changing the disk. An interrupted job's work counts if it belongs to the generation
   * after `committed` and its files are whole. Work from another storage version does not: mixed rows would make a
   * table that never existed.
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
      // rows fetched when the run was final may have changed since it resumed growing
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

  /** A held file's current place: an interrupted commit may have moved it already. */
  async locate(name: string, folder: CommittedFile["folder"] = "data"): Promise<HeldPlace> {
    const { layout, run, store } = this.#work;
    const pending = join(layout.pendingDir(run), name);
    if (!this.isCommitted(name) && (await sizeOf(pending)) !== null) {
      return { store: this.#pending, key: layout.keyOf(pending), isPending: true };
    }
    return { store, key: layout.committedKey(run, folder, name), isPending: false };
  }

  /** True for segments and Parquet of the committed generation, which may have changed since they were written. */
  isCommitted(name: string): boolean {
    return this.#committed.has(name);
  }

  /** The segments of a bucket in order of their windows. */
  segmentsOf(name: TableName, bucket: string): Segment[] {
    return this.of(name).segments.filter((segment) => segment.bucket === bucket);
  }

  /** The bucket's Parquet made from exactly these segments, by default those held now. */
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

  /** Replaces a segment with one made from it. */
  replaceSegment(
    name: TableName,
    replaces: string,
    segment: Segment,
    quarantine: QuarantineFile | null,
  ): void {
    const held = this.of(name);
    const at = held.segments.findIndex(({ file }) => file === replaces);
    // its source no longer counts: its window is fetched again
    if (at < 0) return;
    held.segments[at] = segment;
    if (quarantine !== null) held.quarantine.push(quarantine);
  }

  /** Replaces a segment with its parts. */
  splitSegment(name: TableName, replaces: string, parts: readonly Segment[]): void {
    const held = this.of(name);
    const at = held.segments.findIndex(({ file }) => file === replaces);
    if (at < 0) return;
    held.segments.splice(at, 1, ...parts);
    // segments of one answer share their window, and so do their parts
    held.segments.sort(
      (a, b) => Number(BigInt(a.from) > BigInt(b.from)) - Number(BigInt(a.from) < BigInt(b.from)),
    );
  }

  /** Drops segments. */
  forget(name: TableName, files: readonly string[]): void {
    const held = this.of(name);
    const dropped = new Set(files);
    held.segments = held.segments.filter(({ file }) => !dropped.has(file));
    // rows set aside from a segment will be set aside again when it is fetched again
    held.quarantine = held.quarantine.filter(({ segment }) => !dropped.has(segment));
  }

  #adopt(committed: Manifest | null): void {
    const { lost = new Set() } = this.#work;
    for (const [key, table] of Object.entries(committed?.tables ?? {})) {
      const name = key as TableName;
      const { grain, segments, quarantine, through, storageVersion } = latestView(table);
      const held = this.of(name);
      held.through = through;
      // a table that never held a row has no grain yet
      held.grain = segments.length === 0 ? null : grain;
      const gone = lostWindows({ segments, quarantine }, lost);
      for (const segment of segments) if (segment.doubted) gone.add(windowOf(segment));
      const isGone = (file: Segment | QuarantineFile) => gone.has(windowOf(file));
      for (const segment of segments) if (!isGone(segment)) held.segments.push(segment);
      const proven = new Set(table.proven?.segments.map(({ file }) => file));
      // proven rows must not shrink, and doubted ones are in the attempt's record
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

  /** Notes that the rows of segments in one window came, although they do not count. */
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
        // evidence about their rows was noted when they were dropped
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
        // rows of a finished run came after its last change
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
      // the job that holds the run moved it during a dry run
      if (isMissing(error)) return false;
      if (error instanceof RunvaultError && error.code === "archive_damaged") return false;
      throw error;
    }
  }
}

function sameNames(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((name, i) => name === other[i]);
}

/** Windows of a table that must be fetched again; parts of one answer have one window, and count together. */
function lostWindows(
  { segments, quarantine }: Pick<Holding, "segments" | "quarantine">,
  lost: ReadonlySet<string>,
): Set<string> {
  return new Set([...segments, ...quarantine].filter(({ file }) => lost.has(file)).map(windowOf));
}

function windowOf({ from, to }: Segment | QuarantineFile): string {
  return `${from} ${to}`;
}

/** Inserts in order of windows; within one window, in order of insertion. */
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
