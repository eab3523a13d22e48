import type { DuckDBConnection } from "@duckdb/node-api";
import type { ExactTypes } from "../archive/archive.ts";
import { type BadLine, carefulSegment } from "../archive/careful.ts";
import { convertBucket } from "../archive/convert.ts";
import { hashFile } from "../archive/file-hash.ts";
import type { Segment } from "../archive/manifest.ts";
import type { Pending, Step } from "../archive/pending.ts";
import { readSegment } from "../archive/segment.ts";
import { RunvaultError } from "../model/error.ts";
import type { RunRef } from "../model/source.ts";
import type { Table } from "../model/table.ts";

/**
 * Turns buckets into Parquet, one at a time: DuckDB uses all cores for each. Where the fast path finds a row it can't
 * take, the bucket's segments are read line by line, bad lines are set aside, and the bucket is converted again.
 */
export class BucketConverter {
  readonly #connection: DuckDBConnection;
  readonly #exactTypes: (table: Table) => ExactTypes;
  readonly #step: Step;
  #tail: Promise<unknown> = Promise.resolve();

  constructor(connection: DuckDBConnection, exactTypes: (table: Table) => ExactTypes, step: Step) {
    this.#connection = connection;
    this.#exactTypes = exactTypes;
    this.#step = step;
  }

  /** Converts a bucket, after those asked for before. Throws as `convertBucket` does, but for `malformed_row`. */
  convert(pending: Pending, run: RunRef, table: Table, bucket: string): Promise<void> {
    const turn = this.#tail.then(() => this.#convert(pending, run, table, bucket));
    this.#tail = turn.catch(() => {
      // the caller has the error; the next bucket has its turn all the same
    });
    return turn;
  }

  async #convert(pending: Pending, run: RunRef, table: Table, bucket: string): Promise<void> {
    try {
      await this.#convertOnce(pending, run, table, bucket, false);
    } catch (error) {
      if (!(error instanceof RunvaultError) || error.code !== "malformed_row") throw error;
      for (const segment of pending.segmentsOf(table.name, bucket)) {
        await this.#setAside(pending, run, table, segment);
      }
      await this.#convertOnce(pending, run, table, bucket, true);
    }
  }

  /** `checked`: every line of the bucket has been read by the careful path. */
  async #convertOnce(
    pending: Pending,
    run: RunRef,
    table: Table,
    bucket: string,
    checked: boolean,
  ): Promise<void> {
    const segments = pending.segmentsOf(table.name, bucket);
    const filled = segments.filter(({ rows }) => rows > 0);
    if (filled.length === 0) return;
    const file = pending.nextName(table.name, "parquet");
    const out = pending.stagingFile(file);
    const result = await convertBucket(this.#connection, {
      table,
      instanceId: run.instanceId,
      runId: run.runId,
      segments: await Promise.all(
        filled.map(async (s) => ({ ...s, file: await pending.locate(s.file), checked })),
      ),
      exactTypes: this.#exactTypes(table),
      out,
      codec: "zstd",
    });
    this.#step("converted");
    const parquet = {
      file,
      bucket,
      rows: Number(result.rows),
      ...(await hashFile(out)),
      first: keyOf(result.firstTs, result.firstSeq),
      last: keyOf(result.lastTs, result.lastSeq),
    };
    const of = segments.map((segment) => segment.file);
    await pending.addParquet(table.name, parquet, of, result.drift);
  }

  /** Reads a segment line by line; where lines are bad or not clean, a cleaned segment takes its place. */
  async #setAside(pending: Pending, run: RunRef, table: Table, segment: Segment): Promise<void> {
    const file = await pending.locate(segment.file);
    const text = await readSegment(file, segment);
    const good: Uint8Array[] = [];
    const bad: BadLine[] = [];
    const { instanceId, runId } = run;
    await carefulSegment(
      {
        text: asChunks(text),
        table,
        instanceId,
        runId,
        exactTypes: this.#exactTypes(table),
        file: segment.file,
      },
      { good: (line) => void good.push(line), bad: (record) => void bad.push(record) },
    );
    const kept = Buffer.concat(good);
    if (bad.length === 0 && kept.equals(text)) return;
    const { from, to, bucket, sorted } = segment;
    const longestLine = good.reduce((longest, line) => Math.max(longest, line.byteLength - 1), 0);
    await pending.dropSegments(table.name, [segment]);
    if (bad.length > 0) {
      const records = bad.map((record) => ({ instanceId, runId, table: table.name, from, to, ...record }));
      await pending.addQuarantine(table.name, { from, to }, records);
    }
    const draft = { bucket, from, to, rows: good.length, bytes: kept.byteLength, longestLine, sorted };
    await pending.addSegments(table.name, [await pending.writeSegment(table.name, draft, kept)]);
  }
}

async function* asChunks(text: Uint8Array): AsyncIterable<Uint8Array> {
  yield text;
}

function keyOf(ts: bigint | undefined, seq: bigint | undefined): { ts: string; seq: string } {
  // a bucket without rows is never converted
  if (ts === undefined || seq === undefined)
    throw new RunvaultError("internal", "a converted bucket has no rows");
  return { ts: ts.toString(), seq: seq.toString() };
}
