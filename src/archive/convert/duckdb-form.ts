import { rm, stat } from "node:fs/promises";
import type { DuckDBConnection } from "@duckdb/node-api";
import { columnType } from "../../duckdb/column-type.ts";
import { duckDBError } from "../../duckdb/duckdb-error.ts";
import { rowGroupRows } from "../../duckdb/row-group-rows.ts";
import { fileList, identifier, literal, parquetRows } from "../../duckdb/sql.ts";
import { type ErrorPlace, RunvaultError } from "../../model/error.ts";
import type { ExactTypes } from "../../model/exact-types.ts";
import type { Table } from "../../model/table.ts";
import type { Nanoseconds } from "../../model/time.ts";
import { startsWithByteOrderMark } from "../byte-order-mark.ts";
import { lineLimitBytes } from "../careful.ts";
import {
  fitsSql,
  guardSql,
  type Shape,
  transformStructure,
  typedSql,
  wholeNumbersSql,
} from "../convert-guard.ts";
import { checkLine, type LineRules, shorten, withoutOddZeros } from "../convert-line.ts";
import { rowError } from "../convert-row-error.ts";
import { driftOf } from "../drift.ts";

/** A segment as conversion needs to know it. */
export interface SegmentInput {
  /** An `.ndjson.zst` file. */
  readonly file: string;
  readonly rows: number;
  /** Size of the text, line ends included. */
  readonly bytes: number;
  /** Bytes of its longest line. */
  readonly longestLine: number;
  /** False when a row was seen that stands before its predecessor in key order. */
  readonly sorted: boolean;
  /** True when the careful path wrote the segment: the form of each line is known to be good. */
  readonly checked?: boolean;
}

export interface ConvertInput {
  readonly table: Table;
  readonly instanceId: string;
  readonly runId: string;
  /** In the order in which their rows belong. */
  readonly segments: readonly SegmentInput[];
  /** The type of each exact column, such as `DECIMAL(18,9)`. */
  readonly exactTypes: ExactTypes;
  /** As the line rules have it. */
  readonly oddZeros?: boolean;
  /** The Parquet file to write; replaced if it exists, removed if conversion fails. */
  readonly out: string;
  readonly codec: "zstd";
}

export interface ConvertResult {
  readonly rows: bigint;
  /** Size of the Parquet file. */
  readonly bytes: number;
  /** Keys of the first and the last row; undefined where there are no rows. */
  readonly firstTs: Nanoseconds | undefined;
  readonly lastTs: Nanoseconds | undefined;
  readonly firstSeq: bigint | undefined;
  readonly lastSeq: bigint | undefined;
  /** Names of fields that the contract does not know. They stay in the segments. */
  readonly drift: readonly string[];
  /** True when the rows had to be sorted: their order in the file is not that of the segments. */
  readonly resorted: boolean;
}

/** Lines of more shapes than this are read by the careful path. */
const shapeLimit = 8;
/** Lines with more fields than this that the contract does not know are read there, too: a guard names each of them. */
const mostUnknownFields = 200;

/**
 * Most values of a column's dictionary. Names repeat and are few; ids and prices are many, and gathering them only to
 * give them up again takes as long as parsing them. DuckDB's dictionaries take -0 and 0 for one value, so tables with
 * doubles have none.
 */
export function dictionaryLimit({ columns }: Table): number {
  return columns.some(({ kind }) => kind === "double") ? 0 : 256;
}

/**
 * Writes the segments of one bucket into one Parquet file: exactly, in order, rows out = lines in.
 *
 * Throws `malformed_row` when a line is no proper row, or too odd for this path; the careful path tells which.
 * Throws `value_out_of_range` for a proper value that its column cannot hold, `history_identity_conflict` for a row
 * of another run or instance, `duplicate_row` for two rows of one key among rows that had to be sorted, `incomplete`
 * when rows out ≠ lines in, and `storage_…` for the disk.
 */
export async function convertBucket(
  connection: DuckDBConnection,
  input: ConvertInput,
): Promise<ConvertResult> {
  try {
    return await convert(connection, input);
  } catch (thrown) {
    // half a file is no file; if it cannot be removed either, the first error says more
    await rm(input.out, { force: true }).catch(() => undefined);
    const error = thrown instanceof RunvaultError ? thrown : RunvaultError.from(thrown);
    throw error.at(placeOf(input));
  }
}

async function convert(connection: DuckDBConnection, input: ConvertInput): Promise<ConvertResult> {
  await refuseByteOrderMarks(input.segments);
  const sorted = input.segments.every((segment) => segment.sorted);
  const shapes: Shape[] = [];
  let rows = await copyLearning(connection, input, shapes, sorted);
  let resorted = !sorted;
  let fault = await orderFault(connection, input);
  if (!resorted && fault?.kind === "disorder") {
    // the fetcher watches each stream; a fault between two segments shows only here
    rows = await copyLearning(connection, input, shapes, false);
    resorted = true;
    fault = await orderFault(connection, input);
  }
  // rows that came in order were held against each other as they came
  if (resorted && fault !== undefined) {
    throw new RunvaultError("duplicate_row", `two rows share ts_event ${fault.ts} and seq ${fault.seq}`, {
      hint: "Report it to the gateway's operator: it sends a row twice, or gives two rows the same seq. Nothing is de-duplicated here.",
    });
  }
  const lines = input.segments.reduce((sum, segment) => sum + BigInt(segment.rows), 0n);
  if (rows !== lines) {
    throw new RunvaultError("incomplete", `${lines} lines became ${rows} rows`, {
      hint: "Run the same command again; if it happens again, keep the archive and report it as a bug of runvault.",
    });
  }
  return {
    rows,
    bytes: (await stat(input.out)).size,
    ...(await endKeys(connection, input, rows)),
    drift: driftOf(
      shapes.map((shape) => shape.flatMap(({ column, name }) => (column === undefined ? [name] : []))),
    ),
    resorted,
  };
}

async function refuseByteOrderMarks(segments: readonly SegmentInput[]): Promise<void> {
  const unread = segments.filter(({ checked }) => !checked);
  // a few at a time: a bucket may have more segments than the system lets a process open files
  for (let at = 0; at < unread.length; at += 8) {
    await Promise.all(
      unread.slice(at, at + 8).map(async ({ file }) => {
        if (!(await startsWithByteOrderMark(file))) return;
        const message = "the segment begins with a byte order mark";
        throw new RunvaultError("malformed_row", message, { place: { file } });
      }),
    );
  }
}

/** Runs the COPY, and again after each line whose shape is new but proper. Returns the rows written. */
async function copyLearning(
  connection: DuckDBConnection,
  input: ConvertInput,
  shapes: Shape[],
  sorted: boolean,
): Promise<bigint> {
  for (;;) {
    try {
      const reader = await connection.runAndReadAll(copySql(input, shapes, sorted));
      return reader.getRows()[0]?.[0] as bigint;
    } catch (thrown) {
      const error = duckDBError(thrown, "conversion failed");
      // only what DuckDB says about the rows themselves is looked into
      if (
        error.code !== "internal" ||
        /^(Out of Memory|INTERNAL|Interrupt|Fatal)/i.test(String((thrown as Error).message))
      ) {
        throw error;
      }
      shapes.push(await newShape(connection, input, shapes, thrown));
    }
  }
}

function copySql(input: ConvertInput, shapes: readonly Shape[], sorted: boolean): string {
  const guard = `CASE WHEN (${guardSql(input, shapes, checkedFiles(input))}) IS TRUE THEN ${literal(input.runId)} ELSE error('a row did not pass the guard') END`;
  const columns = input.table.columns.map((column) => {
    // the guard rides in a column instead of a WHERE: a filter would have DuckDB parse every line twice
    const value =
      column.name === "run_id"
        ? guard
        : column.name === "instance_id"
          ? literal(input.instanceId)
          : typedSql(column, input, shapes);
    return `CAST(${value} AS ${columnType(column, input.exactTypes)}) AS ${identifier(column.name)}`;
  });
  const rows = `SELECT ${columns.join(", ")} FROM ${linesSql(input, shapes)}`;
  const names = input.table.columns.map(({ name }) => identifier(name)).join(", ");
  const ordered = sorted
    ? rows
    : // the position makes the sort stable, for gateways whose key does not tell all rows apart
      `SELECT ${names} FROM (SELECT *, row_number() OVER () AS "the position" FROM (${rows})) ORDER BY ${keySql(input)}, "the position"`;
  return `COPY (${ordered}) TO ${literal(input.out)} (FORMAT parquet, COMPRESSION ${input.codec}, COMPRESSION_LEVEL 1, ROW_GROUP_SIZE ${rowGroupRows}, DICTIONARY_SIZE_LIMIT ${dictionaryLimit(input.table)}, WRITE_BLOOM_FILTER false, USE_TMP_FILE false)`;
}

/** The relation of `line`, `j`, `n` and `file` that the guard works on. */
function linesSql(input: ConvertInput, shapes: readonly Shape[], cast: "CAST" | "TRY_CAST" = "CAST"): string {
  const { columns } = input.table;
  // the canonical line holds the ids as they have to be: where no other form passes, nothing needs to read them
  const otherForms = shapes.length > 0 || checkedFiles(input).length > 0;
  const read = otherForms
    ? columns
    : columns.filter(({ name }) => name !== "run_id" && name !== "instance_id");
  const parsed = `SELECT line, json_transform(line, ${literal(transformStructure(read))}) AS j, file FROM ${textSql(input)}`;
  return `(SELECT line, j, ${wholeNumbersSql(columns, cast)} AS n, file FROM (${parsed}))`;
}

/** The relation of `line` and `file`. */
function textSql(input: ConvertInput): string {
  const segments = input.segments.filter(({ rows }) => rows > 0);
  if (segments.length === 0) {
    return "(SELECT CAST(NULL AS VARCHAR) AS line, '' AS file WHERE false)";
  }
  // the CSV reader gives lines as they stand, checks their UTF-8 and splits faster than the JSON reader
  const longest = segments.reduce((most, { longestLine }) => Math.max(most, longestLine), 0);
  // a manifest may claim any length; DuckDB has a buffer of it for each thread
  const lineBytes = Math.max(Math.min(longest, lineLimitBytes) + 16, 64 * 1024);
  const options = [
    "columns = {'line': 'VARCHAR'}",
    "auto_detect = false, header = false, delim = '', quote = '', escape = '', filename = 'file'",
    "compression = 'zstd', strict_mode = true, hive_partitioning = false",
    `max_line_size = ${lineBytes}, buffer_size = ${Math.max(lineBytes * 2, 4 * 1024 * 1024)}`,
  ];
  const files = fileList(segments.map(({ file }) => file));
  return `read_csv(${files}, ${options.join(", ")})`;
}

/** Finds the first line that does not pass, and either learns its shape or throws what is wrong with it. */
async function newShape(
  connection: DuckDBConnection,
  input: ConvertInput,
  shapes: readonly Shape[],
  cause: unknown,
): Promise<Shape> {
  const offending = await offendingLine(connection, input, shapes, cause);
  if (offending === undefined) throw duckDBError(cause, "conversion failed");
  const { line, file } = offending;
  const row = shapeOfLine(line, input, { file });
  const odd = !input.oddZeros && withoutOddZeros(line, input.table) !== line;
  const known = shapes.some((shape) => shapeText(shape) === shapeText(row));
  const tooMany = row.length > input.table.columns.length + mostUnknownFields;
  if (odd || known || tooMany || shapes.length === shapeLimit || row.some(({ nested }) => nested)) {
    throw new RunvaultError("malformed_row", `this row has to be read line by line: ${shorten(line)}`, {
      place: { file },
    });
  }
  return row;
}

function shapeText(shape: Shape): string {
  return shape.map(({ rawKey }) => rawKey).join(" ");
}

/** The members of a proper line. Throws what is wrong with it otherwise. */
function shapeOfLine(line: string, rules: LineRules, place: ErrorPlace): Shape {
  const checked = checkLine(line, rules);
  if (checked.kind === "row") return checked.members;
  throw rowError(checked, rules, place);
}

async function offendingLine(
  connection: DuckDBConnection,
  input: ConvertInput,
  shapes: readonly Shape[],
  cause: unknown,
): Promise<{ line: string; file: string } | undefined> {
  // casts of the guard may raise, so it is asked only about rows whose values can be cast
  const passes = `CASE WHEN (${fitsSql(input)}) IS TRUE THEN (${guardSql(input, shapes, checkedFiles(input))}) IS TRUE ELSE false END`;
  try {
    const reader = await connection.runAndReadAll(
      `SELECT coalesce(line, '') AS line, file FROM ${linesSql(input, shapes, "TRY_CAST")} WHERE NOT (${passes}) LIMIT 1`,
    );
    const row = reader.getRowsJson()[0];
    return row === undefined ? undefined : { line: String(row[0]), file: String(row[1]) };
  } catch (thrown) {
    const error = duckDBError(thrown, "conversion failed");
    if (error.code !== "internal") throw error;
    // a line that is not JSON, not UTF-8 or longer than was said stops the search as well
    const reason = (thrown instanceof Error ? thrown.message : String(thrown)).split("\n")[0] ?? "";
    throw new RunvaultError("malformed_row", `DuckDB cannot read a line: ${reason.slice(0, 300)}`, { cause });
  }
}

function checkedFiles({ segments }: ConvertInput): readonly string[] {
  return segments.filter(({ checked }) => checked === true).map(({ file }) => file);
}

interface OrderFault {
  readonly kind: "disorder" | "duplicate";
  readonly ts: Nanoseconds;
  readonly seq: bigint;
}

/**
 * A row of the written file that stands before its predecessor in key order; where there is none, one that has its
 * predecessor's key.
 */
async function orderFault(
  connection: DuckDBConnection,
  input: ConvertInput,
): Promise<OrderFault | undefined> {
  const keys = input.table.key.map(identifier);
  const before = keys.map((key, index) => `lag(${key}) OVER () AS b${index}`);
  const equal = (count: number) => keys.slice(0, count).map((key, index) => `${key} = b${index}`);
  const disorder = keys
    .map((key, index) => `(${[...equal(index), `${key} < b${index}`].join(" AND ")})`)
    .join(" OR ");
  const reader = await connection.runAndReadAll(
    `SELECT ${disorder} AS disorder, epoch_ns(ts_event), seq
     FROM (SELECT ${[...keys, ...before].join(", ")} FROM ${parquetRows([input.out])})
     WHERE ${disorder} OR (${equal(keys.length).join(" AND ")}) ORDER BY disorder DESC LIMIT 1`,
  );
  const [row] = reader.getRows() as [boolean, bigint, bigint][];
  return row && { kind: row[0] ? "disorder" : "duplicate", ts: row[1], seq: row[2] };
}

async function endKeys(connection: DuckDBConnection, input: ConvertInput, rows: bigint) {
  const key = async (offset: bigint) => {
    const reader = await connection.runAndReadAll(
      `SELECT epoch_ns(ts_event), seq FROM ${parquetRows([input.out])} LIMIT 1 OFFSET ${offset}`,
    );
    return reader.getRows()[0] as [bigint, bigint] | undefined;
  };
  const first = rows === 0n ? undefined : await key(0n);
  const last = rows === 0n ? undefined : await key(rows - 1n);
  return { firstTs: first?.[0], lastTs: last?.[0], firstSeq: first?.[1], lastSeq: last?.[1] };
}

function keySql({ table }: ConvertInput): string {
  return table.key.map(identifier).join(", ");
}

function placeOf({ table, instanceId, runId }: ConvertInput): ErrorPlace {
  return { instance: instanceId, run: runId, table: table.name };
}
