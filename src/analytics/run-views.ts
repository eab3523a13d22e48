import type { DuckDBConnection } from "@duckdb/node-api";
import type { TableName } from "../model/profile/table.ts";
import type { RunRef } from "../model/source.ts";

/** The views of an archive, which can be narrowed to one run. */
export interface RunViews {
  readonly connection: DuckDBConnection;
  /** Limits the view of a table to the rows of one run. */
  showOnly(name: TableName, run: RunRef): Promise<void>;
}

/** The views of an archive, of all runs and of one after another. */
export interface AllRunViews extends RunViews {
  show(names: Iterable<TableName>, signal?: AbortSignal): Promise<void>;
  showAll(name: TableName): Promise<void>;
  runsOf(name: TableName): readonly RunRef[];
}
