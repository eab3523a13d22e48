import { defaultExactTypes } from "../../model/profile/exact-types.ts";
import { tableNamed, tables } from "../../model/profile/table.ts";
import { doublesOf } from "../double-view-name.ts";
import { tradeTableNames, tradeTableTypes } from "../trades/trade-tables.ts";
import { runColumnNames } from "./query-views.ts";

/** Every name that a query may read from, with its columns. */
export const viewColumns: ReadonlyMap<string, readonly string[]> = new Map([
  ["runs", runColumnNames],
  ...tables.flatMap(({ name, columns }): [string, string[]][] => {
    const names = columns.map((column) => column.name);
    const hasDoubles = columns.some(({ kind }) => kind === "exact");
    return hasDoubles
      ? [
          [name, names],
          [doublesOf(name), names],
        ]
      : [[name, names]];
  }),
  ...tradeTableNames.map((name): [string, string[]] => [
    name,
    tradeTableTypes((table) => defaultExactTypes(tableNamed(table)), name).map(([column]) => column),
  ]),
]);
