import type { DuckDBConnection } from "@duckdb/node-api";
import type { Archive } from "../archive/archive.ts";
import type { Manifest } from "../archive/manifest.ts";
import { identifier, literal, parquetRows } from "../archive/sql.ts";
import { type Column, type Table, type TableName, tables } from "../model/table.ts";
import { doubleSql } from "./double-sql.ts";
import type { TypedParquet } from "./typed-parquet.ts";

/** The part of an archive that queries need. */
export type QueryArchive = Pick<Archive, "dir" | "layout" | "manifests" | "exactTypes" | "refresh">;

/**
 * Makes the views: every table (typed, also when it has no file), `<table>_f` with doubles where a table has exact
 * columns, and `runs`, one row a run.
 */
export async function createViews(
  connection: DuckDBConnection,
  archive: QueryArchive,
  manifests: readonly Manifest[],
  files: ReadonlyMap<TableName, readonly TypedParquet[]>,
): Promise<void> {
  for (const table of tables) {
    const types = archive.exactTypes(table.name);
    await connection.run(
      `CREATE VIEW ${identifier(table.name)} AS ${tableSql(table, types, files.get(table.name) ?? [])}`,
    );
    await createDoubleView(connection, table);
  }
  await createRuns(connection, manifests);
}

/** Makes `<table>_f` over the relation `<table>`, where the table has exact columns. */
export async function createDoubleView(connection: DuckDBConnection, table: Table): Promise<void> {
  const exact = table.columns.filter(({ kind }) => kind === "exact");
  if (exact.length === 0) return;
  const doubles = exact.map(({ name }) => `${doubleSql(identifier(name))} AS ${identifier(name)}`).join(", ");
  await connection.run(
    `CREATE VIEW ${identifier(`${table.name}_f`)} AS SELECT * REPLACE (${doubles}) FROM ${identifier(table.name)}`,
  );
}

function tableSql(
  table: Table,
  types: Readonly<Record<string, string>>,
  groups: readonly TypedParquet[],
): string {
  const typed = (column: Column) => `CAST(${identifier(column.name)} AS ${sqlType(column, types)})`;
  if (groups.length === 0) {
    const nulls = table.columns.map(
      (column) => `CAST(NULL AS ${sqlType(column, types)}) AS ${identifier(column.name)}`,
    );
    return `SELECT ${nulls.join(", ")} WHERE false`;
  }
  // the casts change no value: the archive's types hold those of every group, which differ only while one is widened
  const columns = table.columns.map((column) => `${typed(column)} AS ${identifier(column.name)}`);
  return groups
    .map(({ files }) => {
      const rows = parquetRows(files.map(({ file }) => file));
      return `SELECT ${columns.join(", ")} FROM ${rows}`;
    })
    .join(" UNION ALL ");
}

function sqlType(column: Column, types: Readonly<Record<string, string>>): string {
  switch (column.kind) {
    case "uint64":
      return "UBIGINT";
    case "int64":
      return "BIGINT";
    case "uint32":
      return "UINTEGER";
    case "timestamp":
      return "TIMESTAMP_NS";
    case "exact":
      return types[column.name] ?? "DECIMAL(18,9)";
    case "double":
      return "DOUBLE";
    case "string":
      return "VARCHAR";
  }
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
  ["committed_at", "VARCHAR", ({ committedAt }) => literal(committedAt)],
];

/** Makes the table `runs`, one row a run. */
export async function createRuns(
  connection: DuckDBConnection,
  manifests: readonly Manifest[],
): Promise<void> {
  const tableColumns = tables.flatMap(({ name }) => [
    `${identifier(`${name}_state`)} VARCHAR`,
    `${identifier(`${name}_rows`)} UBIGINT`,
    `${identifier(`${name}_proof`)} VARCHAR`,
  ]);
  const columns = [...runColumns.map(([name, type]) => `${identifier(name)} ${type}`), ...tableColumns];
  await connection.run(`CREATE TABLE runs (${columns.join(", ")})`);
  const batch = 200;
  for (let at = 0; at < manifests.length; at += batch) {
    const rows = manifests.slice(at, at + batch).map((manifest) => `(${runValues(manifest).join(", ")})`);
    await connection.run(`INSERT INTO runs VALUES ${rows.join(", ")}`);
  }
}

function runValues(manifest: Manifest): string[] {
  return [
    ...runColumns.map(([, , value]) => value(manifest)),
    ...tables.flatMap(({ name }) => {
      const entry = manifest.tables[name];
      if (entry === undefined) return ["NULL", "NULL", "NULL"];
      const rows = entry.parquet.reduce((sum, file) => sum + BigInt(file.rows), 0n);
      return [literal(entry.state), `${rows}::UBIGINT`, nullable(entry.certificate?.proof ?? null)];
    }),
  ];
}

function nullable(text: string | null): string {
  return text === null ? "NULL" : literal(text);
}

function instant(ns: string | null): string {
  return ns === null ? "NULL" : `make_timestamp_ns(${BigInt(ns)}::BIGINT)`;
}
