import { createHash } from "node:crypto";
import { rm } from "node:fs/promises";
import { canonicalLineSql, rowHashSql } from "../../duckdb/canonical-sql.ts";
import { type OpenDuckDB, openDuckDB } from "../../duckdb/open-duckdb.ts";
import { parquetLines } from "../../duckdb/parquet-lines.ts";
import { type ParquetForm, ParquetReading, type RowPiece } from "../../duckdb/parquet-reading.ts";
import { RunvaultError } from "../../model/error.ts";
import { checkedRows, type FilterValue } from "../../model/profile/row-request.ts";
import { fieldsFingerprint } from "../../model/profile/schema-fingerprint.ts";
import { type Table, type TableName, tableNamed, tableNames } from "../../model/profile/table.ts";
import type { AcceptedRows, RowAnswer, RowForm } from "../../model/row-answer.ts";
import type {
  DocumentKind,
  FactsRequest,
  HistorySource,
  InstanceEntry,
  RowRequest,
  RunEntry,
  RunRef,
  StorageFacts,
  TableFacts,
} from "../../model/source.ts";
import { makeTemporaryFolder } from "../../model/temporary-folder.ts";
import type { TimeBounds } from "../../model/time.ts";
import { instanceNotFound, refuseWhenAborted, runNotFound } from "../../model/usual-errors.ts";
import type { Archive } from "../archive.ts";
import type { Manifest, ParquetFile } from "../manifest/manifest.ts";
import { ManifestCache } from "../manifest/manifest-cache.ts";
import { type Overview, RunOverviews } from "../manifest/run-overview.ts";
import { servedTable } from "../manifest/served-table.ts";
import { isPresent, latestView, shownView, type TableView } from "../manifest/table-view.ts";
import { mostBytes } from "../storage/archive-file.ts";
import { localFiles } from "../storage/local-files.ts";
import { readFrame, sha256Of } from "../write/segment.ts";
import type { AheadBudget } from "./read-ahead.ts";
import { type Reading, Readings } from "./readings.ts";
import { SegmentCache } from "./segment-cache.ts";
import { supersededGeneration } from "./superseded-generation.ts";
import {
  bucketsOf,
  countRows,
  isConverted,
  isSorted,
  knownBytes,
  knownRows,
  segmentLines,
  type TableBucket,
  wholeSegment,
} from "./table-rows.ts";
import { inData, WholeFiles } from "./whole-files.ts";

export interface ArchiveSourceOptions {
  /** Serve the latest attempts, proven or not, instead of the proven parts. Default false. */
  readonly allowIncomplete?: boolean;
  /**
   * Most bytes of segment text decompressed in advance for all readers together; a segment that a reader is waiting for
   * is always read. Default 32 MiB: a few usual segments, enough to keep the disk and a second core busy.
   */
  readonly readAheadBytes?: number;
  /** Bytes of recently read segment text kept for the next reader. Default 64 MiB. */
  readonly keptBytes?: number;
  /** Memory DuckDB may take for filtered rows, in MiB. Default 256. */
  readonly memoryLimitMb?: number;
  /** Threads of DuckDB. Default 2. */
  readonly threads?: number;
  /** Called once for each damaged manifest, whose run is left out of lists. Default: ignored; `verify` finds it too. */
  readonly onDamage?: (error: RunvaultError) => void;
  /** Writers of row formats other than NDJSON, for `answer`. Default: none. */
  readonly forms?: Readonly<Partial<Record<Exclude<RowForm, "ndjson">, ParquetForm>>>;
}

/** A valid request for rows, and the generation that answers it. */
interface AskedRows {
  readonly manifest: Manifest;
  readonly table: Table;
  readonly held: TableView;
  readonly buckets: readonly TableBucket[];
  readonly filters: readonly FilterValue[];
  readonly request: RowRequest;
}

/** The same, with the lock taken before reading the manifest. */
interface HeldRows extends AskedRows {
  readonly reading: Reading;
}

/** Rows of an answer from Parquet alone, counted by DuckDB. */
interface Counted {
  rows?: number;
}

/**
 * An archive as a source of history. Rows come straight from the segments, byte for byte as fetched; only filtered
 * rows, and those that came unsorted, are rendered from Parquet as canonical lines. Quarantined rows are not served;
 * answers report their number.
 *
 * Each call uses the generation committed when it begins. A reader stays on it: files that commits replace stay until
 * it is done. If no lock is possible they stay for an hour; if files disappear under a reader, it throws
 * `history_query_failed`, after which a retry helps. Damage throws `archive_damaged` at whatever row it shows.
 */
export function openArchiveSource(archive: Archive, options: ArchiveSourceOptions = {}): HistorySource {
  return new ArchiveSource(archive, options);
}

const mib = 1024 * 1024;

class ArchiveSource implements HistorySource {
  readonly label: string;
  readonly #archive: Archive;
  readonly #manifests: ManifestCache;
  readonly #options: ArchiveSourceOptions;
  readonly #texts: SegmentCache;
  readonly #ahead: AheadBudget;
  readonly #overviews: RunOverviews;
  readonly #whole: WholeFiles;
  readonly #readings: Readings;
  /** Damage that the owner has seen; a repeated reading returns the same error. */
  #told: ReadonlySet<RunvaultError> = new Set();
  /** Opened for the first request that needs it. */
  #duckdb: Promise<{ duckdb: OpenDuckDB; folder: string }> | undefined;
  /** DuckDB's computations in progress, during which it must not be closed. */
  readonly #computing = new Set<Promise<unknown>>();
  readonly #closed = new AbortController();

  constructor(archive: Archive, options: ArchiveSourceOptions) {
    this.label = `archive ${archive.dir}`;
    this.#archive = archive;
    this.#manifests = new ManifestCache(archive);
    this.#options = options;
    const { readAheadBytes = 32 * mib, keptBytes = 64 * mib } = options;
    this.#ahead = { left: readAheadBytes };
    this.#texts = new SegmentCache(archive.store, keptBytes);
    this.#whole = new WholeFiles(archive);
    this.#readings = new Readings(archive.layout);
    this.#overviews = new RunOverviews(archive, options.allowIncomplete ?? false);
  }

  /** Leaves out runs with a damaged manifest, and reports them to the archive's owner. */
  async instances(): Promise<readonly InstanceEntry[]> {
    const { runs } = await this.#overview();
    const byInstance = Map.groupBy(runs, ({ instanceId }) => instanceId);
    return [...byInstance].map(([instanceId, own]) => ({
      instanceId,
      runIds: own.map(({ runId }) => runId),
    }));
  }

  /**
   * Throws `archive_damaged` if a manifest of the instance is damaged: without its run the list would look complete,
   * and the wrong run would be the latest.
   */
  async runs(instanceId: string): Promise<readonly RunEntry[]> {
    const { runs, damaged } = await this.#overview();
    const folder = this.#archive.layout.instanceFolder(instanceId);
    const trouble = damaged.find((found) => found.folder === folder);
    if (trouble !== undefined) throw trouble.error;
    const own = runs.filter((found) => found.instanceId === instanceId);
    if (own.length === 0) throw instanceNotFound(instanceId, "archive");
    const manifests: Manifest[] = [];
    for (const run of own) {
      const manifest = await this.#manifests.manifest(run);
      // a run removed since it was listed no longer exists
      if (manifest !== null) manifests.push(manifest);
    }
    return manifests.map((manifest) => ({
      instanceId,
      runId: manifest.runId,
      status: manifest.run.status,
      // the interface's documents use 0 for a missing time
      started: BigInt(manifest.run.started ?? 0),
      ended: manifest.run.ended === null ? undefined : BigInt(manifest.run.ended),
      final: manifest.run.final,
      storageVersion: this.#versionOf(manifest),
    }));
  }

  /**
   * Row hashes are computed from Parquet, except for whole tables whose certificate has one. A table that is not served
   * has none, and neither has one with rows missing here or not in Parquet.
   */
  async facts(
    run: RunRef,
    bounds: TimeBounds,
    signal?: AbortSignal,
    { withHash = false, table: only }: FactsRequest = {},
  ): Promise<StorageFacts> {
    using _reading = (await this.#readings.join()).hold();
    const manifest = await this.#manifestOf(run);
    const facts = new Map<TableName, TableFacts>();
    for (const name of only === undefined ? tableNames : [only]) {
      const shown = this.#shown(manifest, name);
      const latest = latestView(manifest.tables[name]);
      // if nothing of a table is proven, the rows fetched at least show that there are some
      const table = shown ?? latest;
      if (!isPresent(table)) continue;
      refuseWhenAborted(signal);
      const counted = await this.#guarded(manifest, () => this.#count(manifest, name, table, bounds, signal));
      const isProven = shown?.state === "COMPLETE" || shown?.state === "OPEN";
      const rows = isOpen(bounds) && !isProven ? rowsToBe(table, counted.rows) : counted.rows;
      const ofHeld = { manifest, name, table, bounds, signal, rows: counted.rows };
      const rowHash =
        withHash && shown !== undefined && rows === counted.rows
          ? await this.#guarded(manifest, () => this.#rowHash(ofHeld))
          : undefined;
      facts.set(name, {
        ...counted,
        rows,
        // a hash computed here covers the fields of our own lines, whatever the gateway's name for its own
        schemaFingerprint:
          rowHash === undefined
            ? (table.certificate?.schemaFingerprint ?? "")
            : fieldsFingerprint(tableNamed(name)),
        final: manifest.run.final && shown?.state === "COMPLETE",
        ...(rowHash === undefined ? {} : { rowHash }),
      });
    }
    return facts;
  }

  async document(run: RunRef, kind: DocumentKind): Promise<Uint8Array | null> {
    using _reading = (await this.#readings.join()).hold();
    const manifest = await this.#manifestOf(run);
    const document = manifest.documents[kind];
    if (document === undefined) return null;
    const { layout, store } = this.#archive;
    const key = layout.committedKey(manifest, "data", document.file);
    const file = store.nameOf(key);
    const most = Math.min(document.storedBytes, mostBytes.document);
    return await this.#guarded(manifest, async () => {
      const bytes = await store.get(key, most).catch((cause: unknown) => {
        throw RunvaultError.from(cause, { place: { file } });
      });
      if (bytes === null) throw damaged("a document is missing", file);
      if (sha256Of(bytes) === document.sha256) return bytes;
      throw damaged("a document is not what was committed", file);
    });
  }

  async *rows(request: RowRequest): AsyncGenerator<Uint8Array> {
    const asked = await this.#asked(request);
    for await (const { bytes } of this.#explained(asked, this.#lines(asked))) yield bytes;
  }

  /**
   * A single whole segment is sent as its stored frame to readers that accept zstd; other formats come from Parquet.
   * The number of rows is known for everything from Parquet, and for segments that no bound cuts.
   */
  async answer(request: RowRequest, { forms, zstd }: AcceptedRows): Promise<RowAnswer> {
    const asked = await this.#asked(request);
    const { manifest, held, buckets, filters } = asked;
    const setAside = held.certificate?.quarantined ?? 0;
    const writers = this.#options.forms ?? {};
    const own = ["ndjson", ...(Object.keys(writers) as (keyof typeof writers)[])] as const;
    const form = forms.find((wanted) => own.includes(wanted)) ?? "ndjson";
    const isPlain = form === "ndjson" && filters.length === 0;
    const bytes = isPlain ? knownBytes(buckets, request, request.limit) : undefined;
    const answer = (coding: RowAnswer["coding"], rows: RowAnswer["rows"], pieces: AsyncIterable<RowPiece>) =>
      rowAnswer({ form, forms: own, coding, rows, bytes, setAside }, this.#explained(asked, pieces));
    const counted: Counted = {};
    const writeLines = filters.length > 0 ? this.#lineForm(asked) : undefined;
    const write = form === "ndjson" ? writeLines : writers[form];
    if (write !== undefined) {
      return answer("identity", () => counted.rows, this.#formed(asked, write, counted));
    }
    const segment = zstd ? wholeSegment(buckets, request, request.limit) : undefined;
    if (segment === undefined) {
      const known = knownRows(buckets, request, request.limit);
      return answer("identity", () => known, this.#lines(asked));
    }
    const { layout, store } = this.#archive;
    const key = layout.committedKey(manifest, "data", segment.file);
    const stored = async function* () {
      yield { bytes: await readFrame(store, key, segment), rows: segment.rows };
    };
    return answer("zstd", () => segment.rows, stored());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort(new RunvaultError("interrupted", "the archive is closed"));
    await using _readings = this.#readings;
    const opened = this.#duckdb;
    if (opened === undefined) return;
    this.#duckdb = undefined;
    await Promise.allSettled(this.#computing);
    // a failure to open was reported to the caller, and left nothing behind
    const found = await opened.catch(() => undefined);
    if (found === undefined) return;
    found.duckdb.close();
    await rm(found.folder, { recursive: true, force: true });
  }

  async #asked(request: RowRequest): Promise<HeldRows> {
    const { table, filters } = checkedRows(request);
    refuseWhenAborted(request.signal);
    const reading = await this.#readings.join();
    const manifest = await this.#manifestOf(request);
    const held = servedTable(manifest, table.name, this.#options.allowIncomplete === true);
    return { manifest, reading, table, held, buckets: bucketsOf(held, request), filters, request };
  }

  /** The pieces, with explained errors. */
  async *#explained(
    { manifest, reading }: HeldRows,
    pieces: AsyncIterable<RowPiece>,
  ): AsyncGenerator<RowPiece> {
    using _reading = reading.hold();
    try {
      yield* pieces;
    } catch (error) {
      throw await this.#supersededGeneration(manifest, error);
    }
  }

  /** Stretches of buckets that are served the same way, one after the other, up to the limit. */
  async *#lines(asked: AskedRows): AsyncGenerator<RowPiece> {
    const { manifest, buckets, filters, request } = asked;
    let left = request.limit;
    for (const stretch of stretchesOf(buckets, filters.length > 0)) {
      const lines = stretch.sorted
        ? segmentLines(this.#keyOf(manifest), manifest, stretch.buckets, {
            bounds: request,
            limit: left,
            signal: request.signal,
            texts: this.#texts,
            ahead: this.#ahead,
          })
        : this.#parquetLines({ ...asked, buckets: stretch.buckets, request: { ...request, limit: left } });
      for await (const piece of lines) {
        yield piece;
        if (left !== undefined) left -= piece.rows;
      }
      if (left === 0) return;
    }
  }

  async *#parquetLines(asked: AskedRows): AsyncGenerator<RowPiece> {
    if (this.#parquetOf(asked).length > 0) yield* this.#formed(asked, this.#lineForm(asked));
  }

  /** Lines rendered from Parquet, or the original ones from segments if every row turns out to pass the filters. */
  #lineForm(asked: AskedRows): ParquetForm {
    const { buckets, request } = asked;
    const all = buckets.every(isSorted) ? knownRows(buckets, request, undefined) : undefined;
    const everything = () => this.#lines({ ...asked, filters: [] });
    return async function* (reading) {
      yield* (await reading.rows()) === all ? everything() : parquetLines(reading);
    };
  }

  async *#formed(asked: AskedRows, write: ParquetForm, counted?: Counted): AsyncGenerator<RowPiece> {
    using reading = await this.#reading(asked);
    if (counted !== undefined) counted.rows = await reading.rows();
    yield* write(reading);
  }

  async #reading(asked: AskedRows): Promise<ParquetReading> {
    const { table, held, filters, request } = asked;
    const parquet = this.#parquetOf(asked);
    const signal = AbortSignal.any([this.#closed.signal, ...(request.signal ? [request.signal] : [])]);
    await this.#requireWhole(asked.manifest, parquet, signal);
    const files = await localFiles(this.#archive, asked.manifest, parquet);
    const duckdb = await this.#openDuckDB();
    return await ParquetReading.open(duckdb, {
      table,
      files,
      exactTypes: held.exactTypes,
      bounds: request,
      filters,
      limit: request.limit,
      isToSort: parquet.some(
        ({ first }, at) => at > 0 && BigInt(first.ts) <= BigInt(parquet[at - 1]!.last.ts),
      ),
      signal,
      track: (work) => this.#track(work),
    });
  }

  async #requireWhole(run: RunRef, parquet: readonly ParquetFile[], signal: AbortSignal): Promise<void> {
    try {
      await this.#whole.require(run, inData(parquet), signal);
    } catch (error) {
      refuseWhenAborted(signal);
      throw error;
    }
  }

  #parquetOf({ manifest, table: { name }, buckets }: AskedRows): ParquetFile[] {
    return buckets.flatMap(({ parquet, rows }) => {
      if (parquet.length > 0) return parquet;
      if (rows === 0) return [];
      throw new RunvaultError(
        "history_unavailable",
        `${name} of this run is not fully converted to Parquet`,
        {
          place: placeOf(manifest, name),
          hint: "Archive the run again, or ask for the rows without filters.",
        },
      );
    });
  }

  /** The number of rows within the bounds, and the first and last time. */
  async #count(
    manifest: Manifest,
    name: TableName,
    held: TableView,
    bounds: TimeBounds,
    signal: AbortSignal | undefined,
  ): Promise<Pick<TableFacts, "rows" | "first" | "last">> {
    return await countRows(
      this.#keyOf(manifest),
      manifest,
      bucketsOf(held, bounds),
      bounds,
      this.#texts,
      (bucket) => {
        const { instanceId, runId } = manifest;
        const request = { instanceId, runId, table: name, ...bounds, signal };
        return this.#parquetLines({
          manifest,
          table: tableNamed(name),
          held,
          buckets: [bucket],
          filters: [],
          request,
        });
      },
    );
  }

  /** The row hash of the counted rows; undefined if they are not all served from Parquet. */
  async #rowHash(of: {
    manifest: Manifest;
    name: TableName;
    table: TableView;
    bounds: TimeBounds;
    signal: AbortSignal | undefined;
    rows: bigint;
  }): Promise<bigint | undefined> {
    const { manifest, name, table: held, bounds, signal, rows } = of;
    if (rows === 0n) return 0n;
    const certified = held.certificate?.rowHash ?? null;
    if (isOpen(bounds) && certified !== null && BigInt(certified.rows) === rows) return BigInt(certified.sum);
    const buckets = bucketsOf(held, bounds);
    if (!buckets.every(isConverted)) return undefined;
    const { instanceId, runId } = manifest;
    const request = { instanceId, runId, table: name, ...bounds, signal };
    const asked = { manifest, table: tableNamed(name), held, buckets, filters: [], request };
    using reading = await this.#reading(asked);
    const sql = rowHashSql(canonicalLineSql(asked.table), `(${reading.rowsSql()})`);
    const [found, hash] = (await reading.firstRow(sql)) as [bigint, bigint];
    if (found === rows) return hash;
    throw damaged(`Parquet of ${name} has ${found} of ${rows} rows`, this.#archive.layout.dataDir(manifest));
  }

  #keyOf(manifest: Manifest): (file: { readonly file: string }) => string {
    return ({ file }) => this.#archive.layout.committedKey(manifest, "data", file);
  }

  #openDuckDB(): Promise<OpenDuckDB> {
    // late callers must not open another one, which nobody would close
    this.#closed.signal.throwIfAborted();
    const { memoryLimitMb = 256, threads = 2 } = this.#options;
    // with the system's temporary files, because an archive may be read-only
    this.#duckdb ??= (async () => {
      const folder = await makeTemporaryFolder("source");
      try {
        return { duckdb: await openDuckDB({ memoryLimitMb, threads, tempDirectory: folder }), folder };
      } catch (error) {
        await rm(folder, { recursive: true, force: true });
        throw error;
      }
    })().catch((error: unknown) => {
      // the next request tries again
      this.#duckdb = undefined;
      throw RunvaultError.from(error);
    });
    return this.#duckdb.then(({ duckdb }) => duckdb);
  }

  #track<T>(work: Promise<T>): Promise<T> {
    this.#computing.add(work);
    const done = () => this.#computing.delete(work);
    work.then(done, done);
    return work;
  }

  async #manifestOf(run: RunRef): Promise<Manifest> {
    const manifest = await this.#manifests.manifest(run);
    if (manifest !== null) return manifest;
    const instances = await this.instances();
    const instance = instances.find(({ instanceId }) => instanceId === run.instanceId);
    if (instance === undefined) throw instanceNotFound(run.instanceId, "archive");
    throw runNotFound(run, instance.runIds);
  }

  async #overview(): Promise<Overview> {
    const overview = await this.#overviews.read();
    const damaged = new Set(overview.damaged.map(({ error }) => error));
    for (const error of damaged) if (!this.#told.has(error)) this.#options.onDamage?.(error);
    this.#told = damaged;
    return overview;
  }

  #shown(manifest: Manifest, name: TableName): TableView | undefined {
    return shownView(manifest.tables[name], this.#options.allowIncomplete === true);
  }

  /**
   * The gateway's own version if all served rows have it; otherwise one derived from the segments, because a part of
   * the rows is not the same as all of them.
   */
  #versionOf(manifest: Manifest): string {
    const { final, storageVersion } = manifest.run;
    const whole = tableNames.every((name) => {
      const shown = this.#shown(manifest, name);
      const isWhole = shown?.state === "COMPLETE" || shown?.state === "ABSENT";
      return isWhole && shown.storageVersion === storageVersion;
    });
    if (final && storageVersion !== null && whole) return storageVersion;
    const hash = createHash("sha256");
    for (const name of tableNames) {
      const table = this.#shown(manifest, name);
      if (!isPresent(table)) continue;
      hash.update(`${name}\n`);
      for (const { from, to, sha256 } of table.segments) hash.update(`${from} ${to} ${sha256}\n`);
    }
    return hash.digest("hex").slice(0, 16);
  }

  /** Runs work on a generation's files. Throws its errors, or `history_query_failed` if a commit removed files. */
  async #guarded<T>(manifest: Manifest, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw await this.#supersededGeneration(manifest, error);
    }
  }

  /** Explains the error if files of the generation were removed meanwhile; else returns it unchanged. */
  async #supersededGeneration(manifest: Manifest, thrown: unknown): Promise<unknown> {
    if (!(thrown instanceof RunvaultError) || thrown.code !== "archive_damaged") return thrown;
    const place = { instance: manifest.instanceId, run: manifest.runId };
    const { layout, store } = this.#archive;
    const now = await this.#archive.manifest(manifest);
    const manifests = async () => (now === null ? [] : [now]);
    return (await supersededGeneration({ layout, store, manifests }, [manifest], thrown)) ?? thrown.at(place);
  }
}

/**
 * The number of rows of a table without anything proven: those that its gateway counted. Someone who archives from here
 * must see that rows are missing, and must not take the table for absent or whole.
 */
function rowsToBe({ certificate }: TableView, held: bigint): bigint {
  const counted = certificate?.gatewayRows ?? null;
  if (counted !== null) return BigInt(counted);
  // the number is unknown: one says that there are some
  return held > 0n ? held : 1n;
}

function rowAnswer(
  about: Pick<RowAnswer, "form" | "forms" | "coding" | "rows" | "bytes" | "setAside">,
  pieces: AsyncIterable<RowPiece>,
): RowAnswer {
  let given = 0;
  const chunks = async function* () {
    for await (const { bytes, rows } of pieces) {
      given += rows;
      yield bytes;
    }
  };
  return { ...about, chunks: chunks(), given: () => given };
}

function isOpen({ from, to }: TimeBounds): boolean {
  return from === undefined && to === undefined;
}

/** Adjacent buckets that are served the same way: from segments if these are sorted and there is no filter. */
function stretchesOf(
  buckets: readonly TableBucket[],
  filtered: boolean,
): { readonly sorted: boolean; readonly buckets: TableBucket[] }[] {
  const stretches: { sorted: boolean; buckets: TableBucket[] }[] = [];
  for (const bucket of buckets) {
    const sorted = !filtered && isSorted(bucket);
    const last = stretches.at(-1);
    if (last?.sorted === sorted) last.buckets.push(bucket);
    else stretches.push({ sorted, buckets: [bucket] });
  }
  return stretches;
}

function placeOf({ instanceId: instance, runId: run }: RunRef, table: TableName) {
  return { instance, run, table };
}

function damaged(message: string, file: string, cause?: unknown): RunvaultError {
  return new RunvaultError("archive_damaged", message, { cause, place: { file } });
}
