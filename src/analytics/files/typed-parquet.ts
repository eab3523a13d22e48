import { RunvaultError } from "../../model/error.ts";
import { type ExactTypes, sameTypes } from "../../model/profile/exact-types.ts";
import type { TableName } from "../../model/profile/table.ts";
import type { CommittedParquet } from "./committed-parquet.ts";

/** Parquet files of a table whose exact columns have the same types. */
export interface TypedParquet {
  readonly exactTypes: ExactTypes;
  readonly files: readonly CommittedParquet[];
}

/**
 * The files by their types, one group but while a column of the archive is being widened. Readers that are given files
 * of two types in one list refuse them or round in silence, so each group is read apart and cast to the archive's types.
 * A group is a stretch of the list: rows keep its order.
 */
export function byTypes(files: readonly CommittedParquet[]): TypedParquet[] {
  const groups: { exactTypes: ExactTypes; files: CommittedParquet[] }[] = [];
  for (const file of files) {
    const last = groups.at(-1);
    if (last !== undefined && sameTypes(last.exactTypes, file.exactTypes)) last.files.push(file);
    else groups.push({ exactTypes: file.exactTypes, files: [file] });
  }
  return groups;
}

/** Throws `incomplete` if the files of a table, or groups of them, are not all of one type. */
export function refuseMixedTypes(
  table: TableName,
  files: readonly { readonly exactTypes: ExactTypes }[],
): void {
  const [first] = files;
  const second = first && files.find(({ exactTypes }) => !sameTypes(exactTypes, first.exactTypes));
  if (first === undefined || second === undefined) return;
  const column = Object.keys({ ...first.exactTypes, ...second.exactTypes }).find(
    (name) => first.exactTypes[name] !== second.exactTypes[name],
  )!;
  const typeIn = ({ exactTypes }: { readonly exactTypes: ExactTypes }) => exactTypes[column] ?? "not there";
  throw mixedTypes(table, column, typeIn(first), typeIn(second));
}

function mixedTypes(table: TableName, column: string, one: string, other: string): RunvaultError {
  return new RunvaultError("incomplete", `${table}.${column} is ${one} in some runs and ${other} in others`, {
    place: { table },
    hint: "Run the same `runvault maintain rebuild --widen` or `--extra` again: a change of the column's type was not finished.",
  });
}
