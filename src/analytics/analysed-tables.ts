import type { TableName } from "../model/profile/table.ts";
import { type MacroName, macroNames, tablesOfMacros } from "./sql/macro-names.ts";
import { tradedTables } from "./trades/traded-tables.ts";

/** The tables that the macros and the tables of trades read: a database with analytics needs them. */
export const analysedTables: readonly TableName[] = [
  ...new Set([...tablesOfMacros(Object.keys(macroNames) as MacroName[]), ...tradedTables]),
];
