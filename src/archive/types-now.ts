import type { ExactTypes } from "../model/profile/exact-types.ts";
import { type TableName, tableNames } from "../model/profile/table.ts";
import type { Archive } from "./archive.ts";

/** The current types, fixed from a job's first bucket to its commit. */
export function typesNow(archive: Archive): (table: TableName) => ExactTypes {
  const types = new Map(tableNames.map((name) => [name, archive.exactTypes(name)]));
  return (name) => types.get(name)!;
}
