import type { ColumnSource, RowMap } from "./row-map.ts";
import type { Table } from "./table.ts";

/** The map of rows that are canonical as they come. */
export function identityMap({ columns }: Pick<Table, "columns">): RowMap {
  return {
    numbers: "text",
    fields: "keep",
    ties: "bytes",
    columns: Object.fromEntries(columns.map(({ name }) => [name, { kind: "field", path: [name] } as const])),
    dropped: [],
  };
}

/** Whether rows that go through the map are the rows that came: each column has the field of its own name, as it stands there. */
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
