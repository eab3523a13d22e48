import type { DuckDBConnection } from "@duckdb/node-api";
import type { Archive } from "../../archive/archive.ts";
import type { Manifest } from "../../archive/manifest/manifest.ts";
import { columnType } from "../../duckdb/column-type.ts";
import { doubleSql } from "../../duckdb/double-sql.ts";
import { identifier, literal, parquetRows } from "../../duckdb/sql.ts";
import type { ExactTypes } from "../../model/profile/exact-types.ts";
import { extraName, hasExtraColumn, storedColumns } from "../../model/profile/extra-column.ts";
import { type Column, type Table, tables } from "../../model/profile/table.ts";
import { timestampMax, timestampMin } from "../../model/time.ts";
import { doublesOf } from "../double-view-name.ts";
import type { TypedParquet } from "../files/typed-parquet.ts";
import { tradeTableNames, tradeTableTypes } from "../trades/trade-tables.ts";

/** The part of an archive that queries need. */
export type QueryArchive = Pick<Archive, "dir" | "layout" | "store" | "manifests" | "exactTypes" | "refresh">;

/**
 * Makes the views: every table, typed, `<table>_f` with doubles where a table has exact columns, and `runs`, one row per
 * run. The tables have no rows yet, and reading one is an error until `showRows` was called for it.
 */
export async function createViews(
  connection: DuckDBConnection,
  archive: QueryArchive,
  manifests: readonly Manifest[],
): Promise<void> {
  const views = tables.flatMap((table) => {
    const refusal = `error(${literal(`the rows of ${table.name} were not opened`)})`;
    const row = rowSql(table, archive.exactTypes(table.name), refusal);
    const view = `CREATE VIEW ${identifier(table.name)} AS ${row} WHERE CAST(${refusal} AS BOOLEAN)`;
    return [view, ...doubleViewSql(table)];
  });
  for (const name of tradeTableNames) {
    const refusal = `error(${literal(`the rows of ${name} were not computed`)})`;
    const columns = tradeTableTypes(archive.exactTypes, name).map(
      ([column, type]) => `CAST(${refusal} AS ${type}) AS ${identifier(column)}`,
    );
    views.push(
      `CREATE VIEW ${identifier(name)} AS SELECT ${columns.join(", ")} WHERE CAST(${refusal} AS BOOLEAN)`,
    );
  }
  // at once: one by one they take twice as long
  await connection.run(`BEGIN TRANSACTION;\n${views.join(";\n")};\nCOMMIT`);
  await createRuns(connection, manifests);
}

/** Makes the view of a table show the rows of these files. */
export async function showRows(
  connection: DuckDBConnection,
  archive: QueryArchive,
  table: Table,
  files: readonly TypedParquet[],
): Promise<void> {
  const sql = tableSql(table, archive.exactTypes(table.name), files);
  await connection.run(`CREATE OR REPLACE VIEW ${identifier(table.name)} AS ${sql}`);
}

/** Makes `<table>_f` over the relation `<table>`, where the table has exact columns. */
export async function createDoubleView(connection: DuckDBConnection, table: Table): Promise<void> {
  for (const sql of doubleViewSql(table)) await connection.run(sql);
}

/** Creates `<table>_f`; empty for a table without exact columns. */
function doubleViewSql(table: Table): string[] {
  const exact = table.columns.filter(({ kind }) => kind === "exact");
  if (exact.length === 0) return [];
  const doubles = exact.map(({ name }) => `${doubleSql(identifier(name))} AS ${identifier(name)}`).join(", ");
  const from = identifier(table.name);
  return [`CREATE VIEW ${identifier(doublesOf(table.name))} AS SELECT * REPLACE (${doubles}) FROM ${from}`];
}

function tableSql(table: Table, types: ExactTypes, groups: readonly TypedParquet[]): string {
  const typed = ({ exactTypes }: TypedParquet, column: Column) => {
    // files that were made before the column `extra` have none
    const isThere = column.name !== extraName || hasExtraColumn(exactTypes);
    return `CAST(${isThere ? identifier(column.name) : "NULL"} AS ${columnType(column, types)})`;
  };
  if (groups.length === 0) return noRowsSql(table, types);
  // the casts change no value: the archive's types hold those of every group, which differ only while one is widened
  return groups
    .map((group) => {
      const rows = parquetRows(group.files.map(({ file }) => file));
      const columns = storedColumns(table, types).map(
        (column) => `${typed(group, column)} AS ${identifier(column.name)}`,
      );
      return `SELECT ${columns.join(", ")} FROM ${rows}`;
    })
    .join(" UNION ALL ");
}

/** A table without rows, with its types. */
export function noRowsSql(table: Table, types: ExactTypes): string {
  return `${rowSql(table, types, "NULL")} WHERE false`;
}

/** One row of a table, with the same value in every column. */
function rowSql(table: Table, types: ExactTypes, value: string): string {
  const columns = storedColumns(table, types).map(
    (column) => `CAST(${value} AS ${columnType(column, types)}) AS ${identifier(column.name)}`,
  );
  return `SELECT ${columns.join(", ")}`;
}

/** Columns of the `runs` view before those of the tables: name, type, value as SQL. */
const runColumns: readonly [string, string, (manifest: Manifest) => string][] = [
  ["instance_id", "VARCHAR", ({ instanceId }) => literal(instanceId)],
  ["run_id", "VARCHAR", ({ runId }) => literal(runId)],
  ["state", "VARCHAR", ({ state }) => literal(state)],
  ["status", "VARCHAR", ({ run }) => literal(run.status)],
  ["started", "TIMESTAMP_NS", ({ run }) => instant(run.started)],
  ["ended", "TIMESTAMP_NS", ({ run }) => instant(run.ended)],
  ["final", "BOOLEAN", ({ run }) => String(run.final)],
  ["horizon", "TIMESTAMP_NS", ({ horizon }) => instant(horizon)],
  ["generation", "BIGINT", ({ generation }) => String(generation)],
  ["storage_version", "VARCHAR", ({ run }) => nullable(run.storageVersion)],
  ["source", "VARCHAR", ({ source }) => literal(source)],
  ["committed_at", "TIMESTAMP_NS", ({ committedAt }) => instant(nanosecondsOf(committedAt))],
];

/** The columns of each table's part of a run, with their types. */
const runTableColumns = tables.flatMap(({ name }): [string, string][] => [
  [`${name}_state`, "VARCHAR"],
  [`${name}_rows`, "UBIGINT"],
  [`${name}_proof`, "VARCHAR"],
]);

export const runColumnNames: readonly string[] = [...runColumns, ...runTableColumns].map(([name]) => name);

/** Makes the table `runs`, one row per run. */
export async function createRuns(
  connection: DuckDBConnection,
  manifests: readonly Manifest[],
): Promise<void> {
  const columns = [...runColumns, ...runTableColumns].map(([name, type]) => `${identifier(name)} ${type}`);
  await connection.run(`CREATE TABLE runs (${columns.join(", ")})`);
  const batch = 200;
  for (let at = 0; at < manifests.length; at += batch) {
    const rows = manifests.slice(at, at + batch).map((manifest) => `(${runValues(manifest).join(", ")})`);
    await connection.run(`INSERT INTO runs VALUES ${rows.join(", ")}`);
  }
}

/**
 * Makes `runs` of text alone: a table takes a block or two for each type of its columns. For a hundred runs at most, as
 * every reader of it parses it again.
 */
export async function createRunsView(
  connection: DuckDBConnection,
  manifests: readonly Manifest[],
): Promise<void> {
  const columns = [...runColumns, ...runTableColumns].map(
    ([name, type]) => [identifier(name), type] as const,
  );
  const rows = manifests.map((manifest) => `(${runValues(manifest).join(", ")})`);
  const list = columns.map(([name, type]) => `CAST(${name} AS ${type}) AS ${name}`).join(", ");
  const names = columns.map(([name]) => name).join(", ");
  await connection.run(`CREATE VIEW runs AS SELECT ${list} FROM (VALUES ${rows.join(", ")}) v(${names})`);
}

function runValues(manifest: Manifest): string[] {
  return [
    ...runColumns.map(([, , value]) => value(manifest)),
    ...tables.flatMap(({ name }) => {
      const entry = manifest.tables[name];
      if (entry === undefined) return ["NULL", "NULL", "NULL"];
      const { parquet = [], certificate } = entry.proven ?? {};
      const rows = parquet.reduce((sum, file) => sum + BigInt(file.rows), 0n);
      return [literal(entry.state), `${rows}::UBIGINT`, nullable(certificate?.proof ?? null)];
    }),
  ];
}

function nullable(text: string | null): string {
  return text === null ? "NULL" : literal(text);
}

/** Times outside of a timestamp's range become NULL, because DuckDB would abort the statement. */
function instant(ns: string | null): string {
  const time = ns === null ? null : BigInt(ns);
  const isHeld = time !== null && time >= timestampMin && time <= timestampMax;
  return isHeld ? `make_timestamp_ns(${time}::BIGINT)` : "NULL";
}

/** A time in a manifest, which has milliseconds. */
function nanosecondsOf(text: string): string | null {
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? null : `${BigInt(ms) * 1_000_000n}`;
}
