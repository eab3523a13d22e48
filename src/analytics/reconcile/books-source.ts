import type { DuckDBConnection } from "@duckdb/node-api";
import type { ExactTypes } from "../../model/profile/exact-types.ts";
import type { TableName } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";

/** The rows of a run that its books are made of. */
export interface BooksSource {
  readonly run: RunRef;
  /** When the run began; null if unknown. UNIX nanoseconds. */
  readonly started: bigint | null;
  /** Whether the run has ended, so that no more rows come. */
  readonly isFinal: boolean;
  readonly connection: DuckDBConnection;
  showOnly(name: TableName, run: RunRef): Promise<void>;
  exactTypes(table: TableName): ExactTypes;
  /** Why the rows of a table cannot be relied on; null if they can. */
  lacking(table: TableName): string | null;
}
