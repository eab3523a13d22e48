import type { DuckDBConnection } from "@duckdb/node-api";
import { identifier, literal } from "./sql.ts";

/**
 * Creates a temporary type of texts (at least one) with their positions from 0 as values for `enum_code`: faster than
 * searching a list for each row. Returns the type's SQL name.
 */
export async function createTextType(
  connection: DuckDBConnection,
  name: string,
  texts: readonly string[],
): Promise<string> {
  const type = identifier(name);
  // from a query, because a list of literals cannot have a zero byte
  await connection.run(
    `CREATE OR REPLACE TEMP TYPE ${type} AS ENUM (SELECT unnest([${texts.map(literal).join(", ")}]))`,
  );
  return type;
}
