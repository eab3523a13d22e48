import type { SegmentConverter } from "../../archive/convert/convert-segments.ts";
import { Drift, driftOf } from "../../archive/convert/drift.ts";
import { type BadLine, convertLineByLine } from "../../archive/convert/line-by-line-conversion.ts";
import type { RowKey } from "../../archive/convert/parquet-look.ts";
import type { Segment } from "../../archive/manifest/manifest.ts";
import type { RunJournal, Step } from "../../archive/write/run-journal.ts";
import { RunvaultError } from "../../model/error.ts";
import type { ExactTypes } from "../../model/profile/exact-types.ts";
import { hasExtraColumn } from "../../model/profile/extra-column.ts";
import type { Table, TableName } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import type { ConversionChange } from "../run-watcher.ts";
import { requireRoom } from "./disk-need.ts";
import { ExtraConverter } from "./extra-converter.ts";

/**
 * What to do with lines that are not proper rows: `aside` sets them aside; `refuse` is for segments whose
 * lines were all rows when committed, and whose rows must not change.
 */
export type BadLines = "aside" | "refuse";

/**
 * Converts buckets to Parquet, one at a time for each table. If a conversion finds a row that it can't take, the
 * bucket's segments are read line by line, bad lines are set aside or refused, and the bucket is converted again.
 */
export class BucketConverter implements AsyncDisposable {
  readonly #converter: ExtraConverter;
  readonly #exactTypes: (table: Table) => ExactTypes;
  readonly #step: Step;
  readonly #badLines: BadLines;
  readonly #signal: AbortSignal | undefined;
  readonly #onConversion: (change: ConversionChange) => void;
  /** The last conversion requested, by table. */
  readonly #tails = new Map<TableName, Promise<unknown>>();

  constructor(
    toParquet: SegmentConverter,
    exactTypes: (table: Table) => ExactTypes,
    step: Step,
    badLines: BadLines = "aside",
    signal?: AbortSignal,
    onConversion: (change: ConversionChange) => void = () => {},
  ) {
    this.#badLines = badLines;
    this.#signal = signal;
    this.#onConversion = onConversion;
    this.#converter = new ExtraConverter(toParquet);
    this.#exactTypes = exactTypes;
    this.#step = step;
  }

  /**
   * Converts a bucket after all earlier conversions of its table: the segments held when its turn comes, unless others
   * are given. Throws as `convertSegments` does, except `malformed_row`, and the signal's reason once it has aborted.
   */
  convert(
    journal: RunJournal,
    run: RunRef,
    table: Table,
    bucket: string,
    segments: () => readonly Segment[] = () => journal.held.segmentsOf(table.name, bucket),
  ): Promise<void> {
    this.#onConversion("asked");
    const tail = this.#tails.get(table.name) ?? Promise.resolve();
    const turn = tail.then(() => this.#convert(journal, run, table, bucket, segments));
    const ended = turn
      .catch(() => {
        // the caller gets the error; the next bucket is converted regardless
      })
      .then(() => this.#onConversion("done"));
    this.#tails.set(table.name, ended);
    return turn;
  }

  /** Waits for running conversions, whose database must stay open until they end. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#tails.values());
  }

  async #convert(
    journal: RunJournal,
    run: RunRef,
    table: Table,
    bucket: string,
    segmentsNow: () => readonly Segment[],
  ): Promise<void> {
    this.#signal?.throwIfAborted();
    try {
      await this.#convertOnce(journal, run, table, bucket, segmentsNow());
    } catch (error) {
      this.#signal?.throwIfAborted();
      if (!(error instanceof RunvaultError) || error.code !== "malformed_row") throw error;
      const drift = new Drift();
      for (const segment of segmentsNow()) {
        this.#signal?.throwIfAborted();
        for (const name of await this.#setAside(journal, run, table, segment)) drift.add(name);
      }
      await this.#convertOnce(journal, run, table, bucket, segmentsNow(), drift.list());
    }
  }

  /** `lineByLineDrift`: the unknown fields found by reading line by line, if every line of the bucket was read so. */
  async #convertOnce(
    journal: RunJournal,
    run: RunRef,
    table: Table,
    bucket: string,
    segments: readonly Segment[],
    lineByLineDrift?: readonly string[],
  ): Promise<void> {
    const checked = lineByLineDrift !== undefined;
    const filled = segments.filter(({ rows }) => rows > 0);
    if (filled.length === 0) return;
    // for any kind of data, Parquet takes about half as much as segments
    await requireRoom(journal.folder, filled.reduce((sum, { storedBytes }) => sum + storedBytes, 0) / 2);
    const file = journal.nextName(table.name, "parquet");
    const { rows, storedBytes, sha256, first, last, drift } = await this.#converter.convert({
      table,
      instanceId: run.instanceId,
      runId: run.runId,
      segments: await locateWhole(journal, filled, checked),
      exactTypes: this.#exactTypes(table),
      extra: this.#mayHaveExtra(journal, table),
      // committed data stays unchanged
      oddZeros: this.#badLines === "refuse",
      out: journal.stagingFile(file),
    });
    this.#step("converted");
    const parquet = {
      file,
      bucket,
      rows,
      sha256,
      storedBytes,
      first: keyText(first),
      last: keyText(last),
    };
    const of = segments.map((segment) => segment.file);
    await journal.addParquet(table.name, parquet, of, driftOf([drift, lineByLineDrift ?? []]));
  }

  /** Whether lines may end with `extra`: the map keeps fields without a column, or the archive has the column extra. */
  #mayHaveExtra(journal: RunJournal, table: Table): boolean {
    const keeps = journal.held.of(table.name).through?.map?.fields === "keep";
    return keeps || hasExtraColumn(this.#exactTypes(table));
  }

  /**
   * Reads a segment line by line; if lines are bad or not clean, a cleaned segment replaces it. Returns the fields
   * that the contract does not know.
   */
  async #setAside(
    journal: RunJournal,
    run: RunRef,
    table: Table,
    segment: Segment,
  ): Promise<readonly string[]> {
    const { store, key } = await journal.held.locate(segment.file);
    const text = await journal.textOf(segment);
    const good: Uint8Array[] = [];
    const bad: BadLine[] = [];
    const { instanceId, runId } = run;
    const { drift } = await convertLineByLine(
      {
        text: asChunks(text),
        table,
        instanceId,
        runId,
        exactTypes: this.#exactTypes(table),
        extra: this.#mayHaveExtra(journal, table),
        oddZeros: this.#badLines === "refuse",
        file: segment.file,
      },
      { good: (line) => void good.push(line), bad: (record) => void bad.push(record) },
    );
    const kept = Buffer.concat(good);
    if (bad.length === 0 && kept.equals(text)) return drift;
    if (this.#badLines === "refuse") {
      const [first] = bad;
      throw new RunvaultError(
        "malformed_row",
        first?.reason ?? "a committed line can no longer be read as a row",
        {
          place: {
            table: table.name,
            file: store.nameOf(key),
            ...(first === undefined ? {} : { line: first.line }),
          },
          hint: "The rows were committed under another version of the contract: archive the run again into a new archive.",
        },
      );
    }
    const { from, to, bucket, sorted } = segment;
    const longestLine = good.reduce((longest, line) => Math.max(longest, line.byteLength - 1), 0);
    const draft = { bucket, from, to, rows: good.length, bytes: kept.byteLength, longestLine, sorted };
    const cleaned = await journal.writeSegment(table.name, draft, kept);
    const records = bad.map((record) => ({ instanceId, runId, table: table.name, from, to, ...record }));
    await journal.cleanSegment(table.name, segment, cleaned, records);
    return drift;
  }
}

/** The segments' files. Throws `archive_damaged` if one of a committed generation is no longer intact. */
async function locateWhole(journal: RunJournal, segments: readonly Segment[], checked: boolean) {
  const located: (Segment & { readonly checked: boolean })[] = [];
  for (const segment of segments) {
    located.push({ ...segment, file: await journal.locateWhole(segment), checked });
  }
  return located;
}

async function* asChunks(text: Uint8Array): AsyncIterable<Uint8Array> {
  yield text;
}

function keyText(key: RowKey | undefined): { ts: string; seq: string } {
  // a bucket without rows is never converted
  if (key === undefined) throw new RunvaultError("internal", "a converted bucket has no rows");
  return { ts: key.ts.toString(), seq: key.seq.toString() };
}
