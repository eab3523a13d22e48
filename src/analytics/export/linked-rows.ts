import { resolve } from "node:path";
import type { DuckDBConnection } from "@duckdb/node-api";
import type { Manifest } from "../../archive/manifest/manifest.ts";
import { linkedParquet } from "../../archive/write/commit.ts";
import { columnType } from "../../duckdb/column-type.ts";
import { parquetRowsBelow } from "../../duckdb/sql.ts";
import { RunvaultError } from "../../model/error.ts";
import { storedColumns } from "../../model/profile/extra-column.ts";
import type { Table } from "../../model/profile/table.ts";
import { agreeing, countText } from "../../model/text/plural.ts";
import type { QueryArchive } from "../query/query-views.ts";

/** Whether the linked runs were named, or are all runs of the archive. */
export type LinkedRuns = "named" | "all";

/**
 * A table's rows in `tables/`, as a relation that is evaluated when it is read, limited to the runs of these manifests:
 * `runs` must list them. Null if there are no files, because a glob without matches is an error.
 */
export function linkedRows(
  { layout }: QueryArchive,
  manifests: readonly Manifest[],
  { name }: Table,
  runs: LinkedRuns,
): string | null {
  const linked = manifests.filter((manifest) => linkedParquet(manifest, name).length > 0);
  if (linked.length === 0) return null;
  if (runs === "named") {
    const folders = linked.map((manifest) => resolve(layout.tableDir(name, manifest)));
    return parquetRowsBelow(folders, "*.parquet");
  }
  const rows = parquetRowsBelow([resolve(layout.tablesDir(name))], "*/*/*.parquet");
  return `${rows} SEMI JOIN runs USING (instance_id, run_id)`;
}

/**
 * Throws if `tables/` is not as committed: `incomplete` while column types change, `archive_damaged` if the numbers of
 * rows differ.
 */
export async function requireLinked(
  connection: DuckDBConnection,
  { exactTypes }: QueryArchive,
  manifests: readonly Manifest[],
  table: Table,
  rows: string,
): Promise<void> {
  const { name } = table;
  const types = exactTypes(name);
  const prepared = await connection.prepare(`SELECT * FROM ${rows}`);
  const linked = new Map<string, string>();
  for (let at = 0; at < prepared.columnCount; at++)
    linked.set(prepared.columnName(at), String(prepared.columnType(at)));
  for (const column of storedColumns(table, types)) {
    const [is, wanted] = [linked.get(column.name) ?? "not there", columnType(column, types)];
    if (is === wanted) continue;
    throw new RunvaultError(
      "incomplete",
      `${name}.${column.name} is ${is} in tables/, but ${wanted} elsewhere`,
      {
        place: { table: name },
        hint: "Run the same `runvault maintain rebuild --widen` or `--extra` again: a change of the column's type was not finished.",
      },
    );
  }
  const committed = manifests
    .flatMap((manifest) => linkedParquet(manifest, name))
    .reduce((sum, file) => sum + file.rows, 0);
  const counted = await connection.runAndReadAll(`SELECT count(*) FROM ${rows}`);
  const found = Number(counted.getRows()[0]?.[0]);
  if (found === committed) return;
  throw new RunvaultError(
    "archive_damaged",
    `tables/${name} has ${countText(found, "row")}, but ${committed} ${agreeing(committed, "is", "are")} committed`,
    {
      place: { table: name },
      hint: "Run it again if a job is running; otherwise `runvault verify` names the files, and `runvault maintain rebuild --links` restores them.",
    },
  );
}
