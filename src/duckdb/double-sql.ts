/**
 * SQL for the double nearest to a decimal. Above eighteen digits DuckDB's own cast divides in several steps, each of
 * which rounds; going through text is right but slower. The type is known when the query is planned, and so is the
 * branch.
 */
export function doubleSql(decimal: string): string {
  const digits = `TRY_CAST(regexp_extract(typeof(${decimal}), '\\d+') AS INTEGER)`;
  return `CASE WHEN ${digits} > 18 THEN CAST(${decimal} AS VARCHAR)::DOUBLE ELSE ${decimal}::DOUBLE END`;
}
