import type { DuckDBConnection } from "@duckdb/node-api";
import { columnType } from "../../duckdb/column-type.ts";
import { duckDBError } from "../../duckdb/duckdb-error.ts";
import { dictionaryLimit, parquetOptions } from "../../duckdb/parquet-options.ts";
import { identifier, literal, parquetRows } from "../../duckdb/sql.ts";
import { sameTypes } from "../../model/profile/exact-types.ts";
import { hasExtraColumn, storedColumns } from "../../model/profile/extra-column.ts";
import { hashFile } from "../storage/file-hash.ts";
import { behindHeadSql, extraValueSql, splitExtraSql } from "./convert-extra.ts";
import {
  guardSql,
  headSql,
  idInJson,
  isReadBehindHead,
  transformStructure,
  typedSql,
  wholeNumbersSql,
} from "./convert-guard.ts";
import type { Conversion, Converted } from "./convert-segments.ts";
import { notOfRows, textSql } from "./duckdb-form.ts";

/**
 * Whether conversions of one table may run together: their lines only have to be canonical, and all have the same
 * types.
 */
export function mayConvertTogether(one: Conversion, other: Conversion): boolean {
  const isPlain = ({ segments, rowHash, oddZeros = false }: Conversion) =>
    rowHash === undefined && !oddZeros && segments.every(({ sorted, checked }) => sorted && checked !== true);
  return (
    one.table.name === other.table.name &&
    sameTypes(one.exactTypes, other.exactTypes) &&
    (one.extra ?? false) === (other.extra ?? false) &&
    isPlain(one) &&
    isPlain(other)
  );
}

/**
 * Small conversions of one table, each of one run. One statement reads and guards all lines, each under the ids of its
 * run; one per run writes its Parquet; one checks everything written. Undefined for a conversion that must run alone
 * because its lines are not canonical or not in order; its file may exist, and must not be used. This spreads the fixed
 * cost of a statement over many runs.
 *
 * Throws errors that the rows did not cause: `storage_…` for the disk, and an interrupt. The connection does nothing
 * else meanwhile.
 */
export async function convertTogether(
  connection: DuckDBConnection,
  conversions: readonly Conversion[],
): Promise<readonly (Converted | undefined)[]> {
  try {
    return await allAtOnce(connection, conversions);
  } catch (thrown) {
    const error = duckDBError(thrown, "conversion failed");
    if (error.code !== "internal" || notOfRows.test(String((thrown as Error).message))) throw error;
    // a line of one of them is wrong; bisection finds which
    if (conversions.length === 1) return [undefined];
    const half = Math.ceil(conversions.length / 2);
    const first = await convertTogether(connection, conversions.slice(0, half));
    return [...first, ...(await convertTogether(connection, conversions.slice(half)))];
  }
}

async function allAtOnce(
  connection: DuckDBConnection,
  conversions: readonly Conversion[],
): Promise<(Converted | undefined)[]> {
  const { table } = conversions[0]!;
  try {
    await connection.run(`CREATE OR REPLACE TEMP TABLE together AS ${rowsSql(conversions)}`);
    const texts = await connection.runAndReadAll(
      'SELECT "the nth", count(*), sum("the bytes") FROM together GROUP BY 1',
    );
    const read = new Map(
      (texts.getRows() as [number, bigint, bigint][]).map(([nth, rows, bytes]) => [
        nth,
        { rows: Number(rows), bytes: Number(bytes) },
      ]),
    );
    // a byte order mark is dropped silently, so there are too few bytes
    const isWhole = conversions.map(({ segments }, nth) => {
      const { rows = 0, bytes = 0 } = read.get(nth) ?? {};
      const sum = (of: "rows" | "bytes") => segments.reduce((total, segment) => total + segment[of], 0);
      return rows === sum("rows") && bytes === sum("bytes");
    });
    const names = storedColumns(table, conversions[0]!.exactTypes)
      .map(({ name }) => identifier(name))
      .join(", ");
    const options = parquetOptions(dictionaryLimit(table));
    for (const [nth, { out }] of conversions.entries()) {
      if (!isWhole[nth]) continue;
      await connection.run(
        `COPY (SELECT ${names} FROM together WHERE "the nth" = ${nth}) TO ${literal(out)} (${options})`,
      );
    }
    const looks = await looksAt(
      connection,
      conversions.filter((_, nth) => isWhole[nth]),
    );
    return await Promise.all(
      conversions.map(async ({ out, segments }, nth) => {
        const look = looks.get(out);
        const lines = segments.reduce((sum, { rows }) => sum + rows, 0);
        if (!isWhole[nth] || look === undefined || look.isDisordered || look.rows !== lines) return undefined;
        const { rows, first, last } = look;
        return { rows, first, last, drift: [], resorted: false, ...(await hashFile(out)) };
      }),
    );
  } finally {
    await connection.run("DROP TABLE IF EXISTS together");
  }
}

/** The rows of all conversions, in order, each with the index of its conversion and the bytes of its line. */
function rowsSql(conversions: readonly Conversion[]): string {
  const [first] = conversions as [Conversion];
  const { columns } = first.table;
  const segments = conversions.flatMap((conversion) => conversion.segments);
  const owners = conversions.flatMap((conversion, nth) =>
    conversion.segments.map(() => ({ ...conversion, nth })),
  );
  const listOf = (texts: readonly string[]) => `[${texts.map(literal).join(", ")}]`;
  const at = `list_position(${listOf(segments.map(({ file }) => file))}, file)`;
  // no join, which may change the order of rows; the file is one value for many rows, and so is what is computed from
  // it
  const own = {
    nth: `[${owners.map(({ nth }) => nth).join(", ")}]`,
    run_id: listOf(owners.map(({ runId }) => runId)),
    instance_id: listOf(owners.map(({ instanceId }) => instanceId)),
    run_text: listOf(owners.map(({ runId }) => idInJson(runId))),
    instance_text: listOf(owners.map(({ instanceId }) => idInJson(instanceId))),
  };
  const ids = Object.entries(own).map(([name, list]) => `(${list})[the_file] AS ${name}`);
  const read = columns.filter(({ name }) => name !== "run_id" && name !== "instance_id");
  const { extra = false } = first;
  const text = textSql({ segments });
  const bytes = "strlen(line) + 1 AS the_bytes";
  const isBehindHead = extra && isReadBehindHead(first, [], []);
  const isSplit = extra && !isBehindHead;
  const whole = `(SELECT line, file, ${bytes} FROM ${text})`;
  const lined = isSplit ? splitExtraSql(whole, "file, the_bytes") : whole;
  const beside = isSplit ? "the_bytes, extra" : "the_bytes";
  const placed = `SELECT line, ${beside}, ${at} AS the_file FROM ${lined}`;
  const parsed = `SELECT line, ${beside}, json_transform(line, ${literal(transformStructure(read))}) AS j, ${ids.join(", ")} FROM (${placed})`;
  const counted = `(SELECT *, ${wholeNumbersSql(columns, "CAST")} AS n FROM (${parsed}))`;
  const texts = { runId: "run_text", instanceId: "instance_text" };
  const lines = isBehindHead
    ? behindHeadSql(`(SELECT *, ${headSql(first, texts)} AS head FROM ${counted})`)
    : counted;
  const guard = guardSql(first, [], [], texts);
  const values = columns.map((column) => {
    const value =
      column.name === "run_id"
        ? `CASE WHEN (${guard}) IS TRUE THEN run_id ELSE error('a row did not pass the guard') END`
        : column.name === "instance_id"
          ? "instance_id"
          : typedSql(column, first, []);
    return `CAST(${value} AS ${columnType(column, first.exactTypes)}) AS ${identifier(column.name)}`;
  });
  if (hasExtraColumn(first.exactTypes)) values.push(extraValueSql(first));
  return `SELECT nth AS "the nth", the_bytes AS "the bytes", ${values.join(", ")} FROM ${lines}`;
}

interface Look extends Pick<Converted, "rows" | "first" | "last"> {
  readonly isDisordered: boolean;
}

/** By file: how many rows it has, its first and last key, and whether a row comes before its predecessor. */
async function looksAt(
  connection: DuckDBConnection,
  conversions: readonly Conversion[],
): Promise<ReadonlyMap<string, Look>> {
  if (conversions.length === 0) return new Map();
  const files = conversions.map(({ out }) => out);
  const rows = parquetRows(files, ", filename = 'file', file_row_number = true");
  const reader = await connection.runAndReadAll(
    `SELECT file, count(*), bool_or(disorder), arg_min(ts, nth), arg_min(seq, nth), arg_max(ts, nth), arg_max(seq, nth)
     FROM (SELECT *, coalesce(file = f0 AND (ts < t0 OR (ts = t0 AND seq < s0)), false) AS disorder
       FROM (SELECT *, lag(file) OVER () AS f0, lag(ts) OVER () AS t0, lag(seq) OVER () AS s0
         FROM (SELECT file, file_row_number AS nth, epoch_ns(ts_event) AS ts, seq FROM ${rows})))
     GROUP BY file`,
  );
  const found = reader.getRows() as [string, bigint, boolean, bigint, bigint, bigint, bigint][];
  return new Map(
    found.map(([file, rows, isDisordered, firstTs, firstSeq, lastTs, lastSeq]) => [
      file,
      {
        rows: Number(rows),
        isDisordered,
        first: { ts: firstTs, seq: firstSeq },
        last: { ts: lastTs, seq: lastSeq },
      },
    ]),
  );
}
