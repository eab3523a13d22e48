/**
 * The one place that writes values into SQL text. DuckDB takes no parameters inside COPY, table functions and file
 * lists, so these are quoted here and nowhere else.
 */

/**
 * A string literal. One with a zero byte, which SQL text cannot hold, is put together of its pieces: a constant for
 * queries, though not where the grammar wants nothing but quotes, as for files and types, which have no zero bytes.
 */
export function literal(text: string): string {
  const pieces = text.split("\0").map((piece) => `'${piece.replaceAll("'", "''")}'`);
  return pieces.length === 1 ? pieces[0]! : `(${pieces.join(" || chr(0) || ")})`;
}

/** A quoted identifier: a column, view or schema by any name. */
export function identifier(name: string): string {
  if (name.includes("\0")) throw new TypeError("a zero byte cannot stand in SQL text");
  return `"${name.replaceAll('"', '""')}"`;
}

/** A list of files for read_parquet and its kin. Glob characters in the paths are taken as they stand. */
export function fileList(paths: readonly string[]): string {
  return `[${paths.map((path) => literal(unglobbed(path))).join(", ")}]`;
}

function unglobbed(path: string): string {
  return path.replace(/[*?[]/g, "[$&]");
}

/**
 * The rows of Parquet files, as a relation. Columns are those in the files: DuckDB would otherwise make more of, and
 * write over those that are there with, folders in the path that are called `name=value`.
 */
export function parquetRows(paths: readonly string[], options = ""): string {
  return `read_parquet(${fileList(paths)}, hive_partitioning = false${options})`;
}

/**
 * The rows of the Parquet files that a glob finds below these folders, when it is read. Files of several types give the
 * type that holds them all, where DuckDB would otherwise round to that of the first.
 */
export function parquetRowsBelow(folders: readonly string[], glob: string): string {
  const globs = folders.map((folder) => literal(`${unglobbed(folder)}/${glob}`));
  return `read_parquet([${globs.join(", ")}], hive_partitioning = false, union_by_name = true)`;
}
