import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { DuckDBConnection } from "@duckdb/node-api";

/** The files of SQL beside this one, in the order in which they are run: a macro comes after those that it calls. */
export const macroFiles = [
  "normal",
  "series",
  "benchmark",
  "performance",
  "drawdowns",
  "monthly",
  "rolling",
  "counted-figure",
  "instruments",
  "execution",
  "factors",
] as const;

const texts = new Map<string, Promise<string>>();

/**
 * Makes every macro in the database that the connection uses. Bodies are bound when a macro is called, so that the tables
 * that they read need not be there yet.
 */
export async function createMacros(connection: DuckDBConnection): Promise<void> {
  for (const file of macroFiles) await connection.run(await textOf(file));
}

function textOf(file: string): Promise<string> {
  const known = texts.get(file) ?? readFile(join(import.meta.dirname, `${file}.sql`), "utf8");
  texts.set(file, known);
  return known;
}
