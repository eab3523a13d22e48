import type { Archive } from "../../archive/archive.ts";
import { holdingsOf } from "../../archive/manifest/table-view.ts";
import type { Step } from "../../archive/write/run-journal.ts";
import { RunvaultError } from "../../model/error.ts";
import { extraTypes, hasExtraColumn } from "../../model/profile/extra-column.ts";
import { type TableName, tableNames } from "../../model/profile/table.ts";
import type { HistorySource } from "../../model/source.ts";
import { finishWidening, startWidening } from "../rebuild/widen.ts";

/** The tables whose row map keeps fields that fit no column. */
export function tablesWithExtra(
  source: Pick<HistorySource, "traits">,
  wanted: readonly TableName[] = tableNames,
): TableName[] {
  return wanted.filter((name) => source.traits?.(name)?.map?.fields === "keep");
}

/**
 * Adds the column `extra` to those of these tables that have no Parquet yet, so nothing has to be rebuilt. Returns the
 * others, which keep such fields only in segments until `rebuild --extra`.
 */
export async function addExtraColumns(
  archive: Archive,
  names: readonly TableName[],
  step: Step,
  signal: AbortSignal,
): Promise<TableName[]> {
  const lacking = names.filter((name) => !hasExtraColumn(archive.exactTypes(name)));
  if (lacking.length === 0) return [];
  const filled = new Set<TableName>();
  for (const { tables } of await archive.manifests()) {
    for (const name of lacking) {
      const table = tables[name];
      if (table !== undefined && holdingsOf(table).some(({ parquet }) => parquet.length > 0))
        filled.add(name);
    }
  }
  const free = lacking.filter((name) => !filled.has(name));
  if (free.length > 0 && !(await tryAdding(archive, free, step, signal))) return lacking;
  return lacking.filter((name) => filled.has(name));
}

/** False if another job is working with the earlier types. */
async function tryAdding(
  archive: Archive,
  names: readonly TableName[],
  step: Step,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await startWidening(archive, Object.fromEntries(names.map((name) => [name, extraTypes])), step);
    await finishWidening(archive, step, signal);
    return true;
  } catch (thrown) {
    if (RunvaultError.from(thrown).code !== "locked") throw thrown;
    return false;
  }
}
