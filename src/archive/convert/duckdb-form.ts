import type { DuckDBConnection } from "@duckdb/node-api";
import { columnType } from "../../duckdb/column-type.ts";
import { duckDBError } from "../../duckdb/duckdb-error.ts";
import { dictionaryLimit, parquetOptions } from "../../duckdb/parquet-options.ts";
import { fileList, identifier, literal } from "../../duckdb/sql.ts";
import { RunvaultError } from "../../model/error.ts";
import { hasExtraColumn, storedColumns } from "../../model/profile/extra-column.ts";
import { behindHeadSql, extraValueSql, splitExtraSql, wholeLineSql } from "./convert-extra.ts";
import {
  fitsSql,
  guardSql,
  headSql,
  isReadBehindHead,
  transformStructure,
  typedSql,
  wholeNumbersSql,
} from "./convert-guard.ts";
import {
  type Conversion,
  type ConversionForm,
  convertSegments,
  type SegmentConverter,
  type Shape,
} from "./convert-segments.ts";
import { lineLimitBytes } from "./line-by-line-conversion.ts";
import { ParquetLook } from "./parquet-look.ts";

/** Conversion by DuckDB, on a connection that does nothing else meanwhile. */
export function duckDBConverter(connection: DuckDBConnection): SegmentConverter {
  const form = duckDBForm(connection);
  const look = new ParquetLook(connection);
  return (conversion) => convertSegments(form, look, conversion);
}

/**
 * One COPY for a whole file, which reads text, guards each line and writes Parquet. COPY does not say at which line it
 * stopped, so a search finds it.
 */
function duckDBForm(connection: DuckDBConnection): ConversionForm {
  return {
    write: async (input, inKeyOrder, shapes) => {
      try {
        await connection.run(copySql(input, shapes, inKeyOrder));
        return { kind: "written" };
      } catch (thrown) {
        const error = duckDBError(thrown, "conversion failed");
        // only errors about the rows themselves are analysed
        if (error.code !== "internal" || notOfRows.test(String((thrown as Error).message))) throw error;
        const offending = await offendingLine(connection, input, shapes, thrown);
        if (offending === undefined) throw error;
        return { kind: "refused", ...offending };
      }
    },
  };
}

export const notOfRows = /^(Out of Memory|INTERNAL|Interrupt|Fatal)/i;

function copySql(input: Conversion, shapes: readonly Shape[], inKeyOrder: boolean): string {
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
  if (hasExtraColumn(input.exactTypes)) columns.push(extraValueSql(input));
  const rows = `SELECT ${columns.join(", ")} FROM ${linesSql(input, shapes)}`;
  const names = storedColumns(input.table, input.exactTypes)
    .map(({ name }) => identifier(name))
    .join(", ");
  const ordered = !inKeyOrder
    ? rows
    : // the position makes the sort stable, for gateways whose keys are not unique
      `SELECT ${names} FROM (SELECT *, row_number() OVER () AS "the position" FROM (${rows})) ORDER BY ${keySql(input)}, "the position"`;
  return `COPY (${ordered}) TO ${literal(input.out)} (${parquetOptions(dictionaryLimit(input.table))})`;
}

/** The relation of `line`, `j`, `n` and `file` that the guard works on, with `extra` if lines may end with it. */
function linesSql(input: Conversion, shapes: readonly Shape[], cast: "CAST" | "TRY_CAST" = "CAST"): string {
  const { columns } = input.table;
  // the canonical line contains the expected ids: if no other form passes, they need not be read
  const otherForms = shapes.length > 0 || checkedFiles(input).length > 0;
  const read = otherForms
    ? columns
    : columns.filter(({ name }) => name !== "run_id" && name !== "instance_id");
  const structure = literal(transformStructure(read));
  const parsed = (text: string, beside: string) =>
    `SELECT line, json_transform(line, ${structure}) AS j, ${beside} FROM ${text}`;
  const counted = (from: string, beside: string) =>
    `(SELECT line, j, ${wholeNumbersSql(columns, cast)} AS n, ${beside} FROM (${from}))`;
  const text = textSql(input);
  if (!input.extra) return counted(parsed(text, "file"), "file");
  if (isReadBehindHead(input, shapes, checkedFiles(input)))
    return behindHeadSql(
      `(SELECT *, ${headSql(input)} AS head FROM ${counted(parsed(text, "file"), "file")})`,
    );
  return counted(parsed(splitExtraSql(text, "file"), "file, extra"), "file, extra");
}

/** The relation of `line` and `file`. */
export function textSql(input: Pick<Conversion, "segments">): string {
  const segments = input.segments.filter(({ rows }) => rows > 0);
  if (segments.length === 0) {
    return "(SELECT CAST(NULL AS VARCHAR) AS line, '' AS file WHERE false)";
  }
  // the CSV reader returns lines unchanged, checks their UTF-8 and splits faster than the JSON reader
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

async function offendingLine(
  connection: DuckDBConnection,
  input: Conversion,
  shapes: readonly Shape[],
  cause: unknown,
): Promise<{ line: string; file: string } | undefined> {
  // the guard's casts may raise errors, so it only sees rows whose values can be cast
  const passes = `CASE WHEN (${fitsSql(input)}) IS TRUE THEN (${guardSql(input, shapes, checkedFiles(input))}) IS TRUE ELSE false END`;
  const isSplit = input.extra && !isReadBehindHead(input, shapes, checkedFiles(input));
  try {
    const reader = await connection.runAndReadAll(
      `SELECT ${isSplit ? wholeLineSql : "coalesce(line, '')"} AS line, file FROM ${linesSql(input, shapes, "TRY_CAST")} WHERE NOT (${passes}) LIMIT 1`,
    );
    const row = reader.getRowsJson()[0];
    return row === undefined ? undefined : { line: String(row[0]), file: String(row[1]) };
  } catch (thrown) {
    const error = duckDBError(thrown, "conversion failed");
    if (error.code !== "internal") throw error;
    // a line that is not JSON, not UTF-8 or longer than stated stops the search as well
    const reason = (thrown instanceof Error ? thrown.message : String(thrown)).split("\n")[0] ?? "";
    throw new RunvaultError("malformed_row", `DuckDB cannot read a line: ${reason.slice(0, 300)}`, { cause });
  }
}

function checkedFiles({ segments }: Conversion): readonly string[] {
  return segments.filter(({ checked }) => checked === true).map(({ file }) => file);
}

function keySql({ table }: Conversion): string {
  return table.key.map(identifier).join(", ");
}
