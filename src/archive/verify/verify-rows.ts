import type { DuckDBConnection } from "@duckdb/node-api";
import { canonicalLineSql } from "../../duckdb/canonical-sql.ts";
import { duckDBError } from "../../duckdb/duckdb-error.ts";
import { fileList, identifier, literal, parquetRows } from "../../duckdb/sql.ts";
import { extraName, hasExtraColumn } from "../../model/profile/extra-column.ts";
import { hasDerivedSeq } from "../../model/profile/row-map.ts";
import { type TableName, tableNamed } from "../../model/profile/table.ts";
import { countText } from "../../model/text/plural.ts";
import { lineHash } from "../../row/row-hash.ts";
import { normalizedLine } from "../../row/same-line.ts";
import { shownLines } from "../../row/shown-line.ts";
import { extraOf } from "../../row/strict-line.ts";
import type { Archive } from "../archive.ts";
import { lineLimitBytes } from "../convert/line-by-line-conversion.ts";
import type { Holding, Manifest, ParquetFile, Segment } from "../manifest/manifest.ts";
import { provenView } from "../manifest/table-view.ts";
import { localFiles } from "../storage/local-files.ts";
import type { CheckList, Fault } from "./verify-report.ts";

interface TableRows {
  readonly list: CheckList;
  /** The local path of a committed file. */
  readonly pathOf: (file: string) => string;
  readonly manifest: Manifest;
  readonly name: TableName;
  readonly table: Holding;
  readonly connection: DuckDBConnection;
  readonly onRows: (rows: number) => void;
  readonly signal: AbortSignal | undefined;
}

/** The row-by-row comparison of one bucket. */
interface BucketRows {
  readonly parquetHash: bigint;
  readonly segmentHash: bigint;
  readonly bounds: Fault[];
  readonly identity: Fault[];
  readonly lines: Fault[];
}

/**
 * Checks every row of a table: Parquet against the segments' lines, in order; both row hashes; order, bounds, identity
 * and uniqueness. The table's files must have been found as committed.
 */
export async function checkRows(input: TableRows): Promise<void> {
  const { list, name, table, onRows, signal } = input;
  const found: BucketRows[] = [];
  const unreadable: Fault[] = [];
  for (const parquet of table.parquet) {
    signal?.throwIfAborted();
    const segments = table.segments.filter(({ bucket, rows }) => bucket === parquet.bucket && rows > 0);
    try {
      found.push(await compareBucket(input, parquet, segments));
    } catch (error) {
      signal?.throwIfAborted();
      const { message } = duckDBError(error, "its rows cannot be compared");
      unreadable.push({ detail: message, files: filesOf(input, parquet, segments) });
    }
    onRows(parquet.rows);
  }
  const rows = table.parquet.reduce((sum, parquet) => sum + parquet.rows, 0);
  list.faults(
    name,
    "bounds",
    found.flatMap(({ bounds }) => bounds),
    "every row lies in the window of its segment",
  );
  list.faults(
    name,
    "identity",
    found.flatMap(({ identity }) => identity),
    "every row is of this run and instance",
  );
  list.faults(
    name,
    "lines",
    [...unreadable, ...found.flatMap(({ lines }) => lines)],
    `Parquet and segments agree on ${countText(rows, "row")}`,
  );
  checkHashes(input, found, rows);
  await checkOrder(input);
}

function checkHashes({ list, name, table }: TableRows, found: readonly BucketRows[], rows: number): void {
  const parquet = found.reduce((sum, { parquetHash }) => sum + parquetHash, 0n);
  const segments = found.reduce((sum, { segmentHash }) => sum + segmentHash, 0n);
  const certified = table.certificate?.rowHash ?? null;
  const faults: Fault[] = [];
  if (parquet !== segments)
    faults.push({ detail: `the row hash of Parquet is ${parquet}, but that of the segments is ${segments}` });
  if (certified !== null && (BigInt(certified.sum) !== parquet || BigInt(certified.rows) !== BigInt(rows))) {
    faults.push({
      detail: `the row hash of Parquet is ${rows}:${parquet}, but ${certified.rows}:${certified.sum} is certified`,
    });
  }
  list.faults(name, "row-hash", faults, `${rows}:${parquet}`);
}

async function compareBucket(
  input: TableRows,
  parquet: ParquetFile,
  segments: readonly Segment[],
): Promise<BucketRows> {
  const { connection, pathOf, manifest } = input;
  const pairs = pairsSql(input, parquet, segments);
  const foreign = `run_id IS DISTINCT FROM ${literal(manifest.runId)} OR instance_id IS DISTINCT FROM ${literal(manifest.instanceId)}`;
  const reader = await connection.runAndReadAll(
    `SELECT filename, count(*), min(ts), max(ts),
      count(*) FILTER (${foreign}), any_value(instance_id || '/' || run_id) FILTER (${foreign}),
      count(*) FILTER (differs),
      coalesce(sum(hash), 0::HUGEINT), coalesce(sum(hash) FILTER (NOT differs), 0::HUGEINT)
    FROM (SELECT *, whole IS DISTINCT FROM stored AS differs, CAST('0x' || left(md5(line), 16) AS UBIGINT) AS hash FROM (${pairs}))
    GROUP BY filename`,
  );
  const bySegment = new Map(segments.map((segment) => [pathOf(segment.file), segment]));
  const bounds: Fault[] = [];
  const identity: Fault[] = [];
  let parquetHash = 0n;
  let segmentHash = 0n;
  let differing = 0n;
  for (const [file, , first, last, strangers, stranger, different, all, equal] of reader.getRows()) {
    const segment = bySegment.get(String(file));
    const files = segment === undefined ? [pathOf(parquet.file)] : [pathOf(parquet.file), String(file)];
    if (
      segment !== undefined &&
      ((first as bigint) < BigInt(segment.from) || (last as bigint) >= BigInt(segment.to))
    ) {
      bounds.push({
        detail: `rows from ${first} to ${last} are not all in the window [${segment.from}, ${segment.to})`,
        files,
      });
    }
    if ((strangers as bigint) > 0n)
      identity.push({
        detail: `${countText(strangers as bigint, "row")} of another run, such as ${stranger}`,
        files,
      });
    differing += different as bigint;
    parquetHash += all as bigint;
    segmentHash += equal as bigint;
  }
  if (differing === 0n) return { parquetHash, segmentHash, bounds, identity, lines: [] };
  const rest = await compareDiffering(input, parquet, pairs);
  return { parquetHash, segmentHash: segmentHash + rest.segmentHash, bounds, identity, lines: rest.lines };
}

/**
 * Compares rows whose stored line is not canonical, one by one: a source may print its rows differently, and they are
 * the same if they mean the same.
 */
async function compareDiffering(
  { connection, name, pathOf, signal, table: { exactTypes } }: TableRows,
  parquet: ParquetFile,
  pairs: string,
): Promise<{ segmentHash: bigint; lines: Fault[] }> {
  const table = tableNamed(name);
  const hasExtra = hasExtraColumn(exactTypes);
  const extra = (line: unknown) => (line === null ? undefined : extraOf(String(line), table));
  let segmentHash = 0n;
  let wrong = 0;
  let example: Fault | undefined;
  const result = await connection.stream(
    `SELECT filename, CAST("row" AS BIGINT), line, stored, whole FROM (${pairs}) WHERE whole IS DISTINCT FROM stored`,
  );
  for await (const rows of result.yieldRows()) {
    signal?.throwIfAborted();
    for (const [file, row, line, stored, whole] of rows) {
      const normalized = stored === null ? null : normalizedLine(table, String(stored));
      if (normalized !== null) segmentHash += lineHash(normalized);
      if (normalized === line && (!hasExtra || extra(stored) === extra(whole))) continue;
      wrong++;
      if (example !== undefined) continue;
      const shown = shownLines(row === null ? null : String(whole), stored === null ? null : String(stored));
      const at = row === null ? "beyond its last row" : `at row ${(row as bigint) + 1n}`;
      example = {
        detail: `${at}: Parquet has ${shown[0] ?? "nothing"}, but the segment has ${shown[1] ?? "nothing"}`,
        files: [pathOf(parquet.file), ...(file === null ? [] : [String(file)])],
      };
    }
  }
  if (example === undefined) return { segmentHash, lines: [] };
  return {
    segmentHash,
    lines: [
      {
        ...example,
        detail: `${wrong === 1 ? "1 row differs" : `${wrong} rows differ`}, the first ${example.detail}`,
      },
    ],
  };
}

/**
 * SQL that pairs the lines of a bucket's segments with the rows of its Parquet file, by position. Both scans keep their
 * order, and nothing but unsorted segments is held in memory.
 */
function pairsSql(
  { name, pathOf, table: { exactTypes } }: TableRows,
  parquet: ParquetFile,
  segments: readonly Segment[],
): string {
  const table = tableNamed(name);
  const files = fileList(segments.map(({ file }) => pathOf(file)));
  const longest = segments.reduce((most, { longestLine }) => Math.max(most, longestLine), 0);
  // room for the line end, and at least a buffer that reads well
  const objectBytes = Math.max(Math.min(longest, lineLimitBytes) + 16, 1 << 20);
  const lines = `read_ndjson_objects(${files}, hive_partitioning = false, filename = true, compression = 'zstd', maximum_object_size = ${objectBytes})`;
  const sorted = segments.every((segment) => segment.sorted);
  const stored = sorted
    ? lines
    : `(SELECT filename, json FROM ${lines} ORDER BY CAST(json->>'ts_event' AS BIGINT), CAST(json->>'seq' AS UBIGINT))`;
  const rows = parquetRows([pathOf(parquet.file)], ", file_row_number = true");
  const extra = hasExtraColumn(exactTypes) ? `p.${identifier(extraName)}` : undefined;
  const whole = extra === undefined ? "line" : canonicalLineSql(table, "p.", "", extra);
  return `SELECT s.filename AS filename, CAST(s.json AS VARCHAR) AS stored, ${canonicalLineSql(table, "p.")} AS line, ${whole} AS whole,
    p.file_row_number AS "row", epoch_ns(p.ts_event) AS ts, p.run_id AS run_id, p.instance_id AS instance_id
    FROM ${stored} s POSITIONAL JOIN ${rows} p`;
}

/**
 * Keys must rise over all files of the table, and no seq may occur twice; if seq is numbered per timestamp, not within
 * one.
 */
async function checkOrder({ list, name, pathOf, table, connection }: TableRows): Promise<void> {
  if (table.parquet.length === 0) {
    list.add(name, "order", "ok", "no rows");
    return;
  }
  const isNumberedHere = hasDerivedSeq(table.through?.map);
  const files = table.parquet.map(({ file }) => pathOf(file));
  const from = parquetRows(files);
  const reader = await connection.runAndReadAll(
    `SELECT count(*) FILTER (ts < ts_before OR (ts = ts_before AND seq < seq_before)), count(*) FILTER (seq <= seq_before${isNumberedHere ? " AND ts = ts_before" : ""})
    FROM (SELECT ts_event AS ts, seq, lag(ts_event) OVER () AS ts_before, lag(seq) OVER () AS seq_before FROM ${from})`,
  );
  const [falls, seqFalls] = (reader.getRows()[0] ?? []) as bigint[];
  if (falls === 0n) list.add(name, "order", "ok", "keys rise from row to row");
  else
    list.add(
      name,
      "order",
      "damaged",
      `${countText(falls!, "row")} with a smaller key than the row before`,
      files,
    );
  // a seq that always rises cannot repeat, which saves the grouping
  const once = isNumberedHere
    ? "every seq, which is derived, occurs once in its timestamp"
    : "every seq occurs once";
  if (seqFalls === 0n) {
    list.add(name, "seq-unique", "ok", once);
    return;
  }
  const repeated = await connection.runAndReadAll(
    `SELECT count(*), min(seq) FROM (SELECT seq FROM ${from} GROUP BY ${isNumberedHere ? "ts_event, seq" : "seq"} HAVING count(*) > 1)`,
  );
  const [count, smallest] = (repeated.getRows()[0] ?? []) as [bigint, bigint | null];
  if (count === 0n) list.add(name, "seq-unique", "ok", once);
  else
    list.add(
      name,
      "seq-unique",
      "unproven",
      `${countText(count, "value")} of seq repeated, such as ${smallest}`,
      files,
    );
}

/** Every fill must refer to an order of the run. Checked only if both tables are here, with all orders. */
export async function checkFills(
  list: CheckList,
  archive: Archive,
  manifest: Manifest,
  connection: DuckDBConnection,
): Promise<void> {
  const [fills, orders] = [provenView(manifest.tables.fills), provenView(manifest.tables.orders)];
  if (fills === undefined || fills.parquet.length === 0) return;
  if (orders?.state !== "COMPLETE") {
    list.add(
      "fills",
      "fills-have-orders",
      "notice",
      `not checked: the table orders is ${manifest.tables.orders?.state ?? "not archived"}`,
    );
    return;
  }
  const scan = async ({ parquet }: Holding) => parquetRows(await localFiles(archive, manifest, parquet));
  const column = identifier("client_order_id");
  const missing =
    orders.parquet.length === 0
      ? `${await scan(fills)} f`
      : `${await scan(fills)} f ANTI JOIN ${await scan(orders)} o ON f.${column} = o.${column}`;
  const reader = await connection.runAndReadAll(
    `SELECT count(*), min(${column}), min(seq) FROM (SELECT * FROM ${missing})`,
  );
  const [count, order, seq] = (reader.getRows()[0] ?? []) as [bigint, string | null, bigint | null];
  if (count === 0n) list.add("fills", "fills-have-orders", "ok", "every fill refers to an order");
  else {
    list.add(
      "fills",
      "fills-have-orders",
      "unproven",
      `${countText(count, "fill")} without their order in the run, such as order ${JSON.stringify(order)}; their smallest seq is ${seq}`,
    );
  }
}

function filesOf({ pathOf }: TableRows, parquet: ParquetFile, segments: readonly Segment[]): string[] {
  return [parquet, ...segments].map(({ file }) => pathOf(file));
}
