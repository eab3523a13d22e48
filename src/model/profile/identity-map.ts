import type { ColumnSource, RowMap } from "./row-map.ts";
import type { Table } from "./table.ts";

/** The map of rows that are already canonical. */
export function identityMap({ columns }: Pick<Table, "columns">): RowMap {
  return {
    numbers: "text",
    fields: "keep",
    ties: "bytes",
    columns: Object.fromEntries(columns.map(({ name }) => [name, { kind: "field", path: [name] } as const])),
    dropped: [],
  };
}

/** Whether the map leaves rows unchanged: each column is the field of the same name. */
export function isIdentityMap(map: RowMap): boolean {
  const isItself = ([name, source]: [string, ColumnSource]) =>
    source.kind === "field" &&
    source.path.length === 1 &&
    source.path[0] === name &&
    (source.unit ?? "ns") === "ns" &&
    source.words === undefined &&
    source.optional === undefined;
  return map.numbers === "text" && map.dropped.length === 0 && Object.entries(map.columns).every(isItself);
}
