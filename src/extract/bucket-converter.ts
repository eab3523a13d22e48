import type { DuckDBConnection } from "@duckdb/node-api";
import type { ExactTypes } from "../archive/archive.ts";
import { carefulSegment } from "../archive/careful.ts";
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
      await this.#convertOnce(pending, run, table, bucket);
    } catch (error) {
      if (!(error instanceof RunvaultError) || error.code !== "malformed_row") throw error;
      const setAside = await this.#setAside(pending, run, table, bucket);
      if (setAside === 0) throw error;
      await this.#convertOnce(pending, run, table, bucket);
    }
  }

  async #convertOnce(pending: Pending, run: RunRef, table: Table, bucket: string): Promise<void> {
    const segments = pending.segmentsOf(table.name, bucket);
    const filled = segments.filter(({ rows }) => rows > 0);
    if (filled.length === 0) return;
    const file = pending.nextName(table.name, "parquet");
    const out = pending.stagingFile(file);
    const result = await convertBucket(this.#connection, {
      table,
      instanceId: run.instanceId,
      runId: run.runId,
      segments: await Promise.all(filled.map(async (s) => ({ ...s, file: await pending.locate(s.file) }))),
      exactTypes: this.#exactTypes(table),
      out,
    });
    this.#step("converted");
    const parquet = {
      file,
      bucket,
      rows: Number(result.rows),
      ...(await hashFile(out)),
      first: { ts: result.firstTs.toString(), seq: result.firstSeq.toString() },
      last: { ts: result.lastTs.toString(), seq: result.lastSeq.toString() },
    };
    const of = segments.map((segment) => segment.file);
    await pending.addParquet(table.name, parquet, of, result.drift);
  }

  /** Reads the bucket's segments line by line and sets bad lines aside. Gives how many there were. */
  async #setAside(pending: Pending, run: RunRef, table: Table, bucket: string): Promise<number> {
    let total = 0;
    for (const segment of pending.segmentsOf(table.name, bucket)) {
      total += await this.#setAsideOf(pending, run, table, segment);
    }
    return total;
  }

  async #setAsideOf(pending: Pending, run: RunRef, table: Table, segment: Segment): Promise<number> {
    const text = await readSegment(await pending.locate(segment.file), segment);
    const good: Uint8Array[] = [];
    const bad: unknown[] = [];
    const newline = Buffer.from("\n");
    await carefulSegment(
      {
        lines: [text],
        table,
        instanceId: run.instanceId,
        runId: run.runId,
        exactTypes: this.#exactTypes(table),
      },
      { good: (line) => void good.push(line, newline), bad: (record) => void bad.push(record) },
    );
    if (bad.length === 0) return 0;
    const { from, to } = segment;
    const kept = Buffer.concat(good);
    const longestLine = good.reduce((longest, line) => Math.max(longest, line.byteLength), 0);
    await pending.dropSegments(table.name, [segment]);
    await pending.addQuarantine(
      table.name,
      { from, to },
      bad.map((record) => ({
        instance_id: run.instanceId,
        run_id: run.runId,
        table: table.name,
        from,
        to,
        ...(record as object),
      })),
    );
    const draft = { ...segment, rows: good.length / 2, bytes: kept.byteLength, longestLine };
    const { file: _file, storedBytes: _stored, sha256: _sha, ...rest } = draft;
    await pending.addSegments(table.name, [await pending.writeSegment(table.name, rest, kept)]);
    return bad.length;
  }
}
