/**
 * The only place that writes values into SQL text. DuckDB takes no parameters inside COPY, table functions and file
 * lists, so they are quoted here.
 */

/**
 * A string literal. One with a zero byte, which SQL text cannot contain, is an expression of its parts: valid in
 * queries, but not where the grammar requires a literal, as for files and types, which have no zero bytes.
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

/**
 * Whether a column has one of these values, given as SQL. Keeps rows in order: from five values on, DuckDB makes a hash
 * join of IN, which does not.
 */
export function isAmong(column: string, values: readonly string[]): string {
  return values.length === 0 ? "false" : `list_contains([${values.join(", ")}], ${column})`;
}

/** A list of files for read_parquet and similar functions. Glob characters in paths are literal. */
export function fileList(paths: readonly string[]): string {
  return `[${paths.map((path) => literal(unglobbed(path))).join(", ")}]`;
}

function unglobbed(path: string): string {
  return path.replace(/[*?[]/g, "[$&]");
}

/**
 * The rows of Parquet files, as a relation with exactly the files' columns: otherwise DuckDB would add, or replace,
 * columns from folders named `name=value` in the path.
 */
export function parquetRows(paths: readonly string[], options = ""): string {
  return `read_parquet(${fileList(paths)}, hive_partitioning = false${options})`;
}

/**
 * The rows of Parquet files that a glob finds below these folders, when it is read. Files of different types get the
 * type that holds all values, where DuckDB would otherwise round to the first file's.
 */
export function parquetRowsBelow(folders: readonly string[], glob: string): string {
  const globs = folders.map((folder) => literal(`${unglobbed(folder)}/${glob}`));
  return `read_parquet([${globs.join(", ")}], hive_partitioning = false, union_by_name = true)`;
}
