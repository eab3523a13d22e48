import type { TableName } from "../../model/profile/table.ts";

const series = ["equity", "events"] as const satisfies readonly TableName[];
const orders = [
  "orders",
  "fills",
  "factors",
  "bars",
  "order_book",
  "equity",
] as const satisfies readonly TableName[];
const factors = ["factors", "bars", "orders", "fills", "equity"] as const satisfies readonly TableName[];
const withBenchmark = [...series, "bars"] as const satisfies readonly TableName[];

/** The macros that a statement may call, with the tables that each reads. */
export const macroNames = {
  session_points: series,
  session_returns: series,
  benchmark_returns: withBenchmark,
  performance: withBenchmark,
  drawdowns: series,
  monthly: series,
  rolling: series,
  execution: orders,
  order_funnel: ["orders"],
  factor_ic: factors,
  factor_ic_series: factors,
  factor_quantiles: factors,
  factor_coverage: factors,
} as const satisfies Readonly<Record<string, readonly TableName[]>>;

export type MacroName = keyof typeof macroNames;

export function isMacroName(name: string): name is MacroName {
  return Object.hasOwn(macroNames, name);
}

/** Whether one of these distinguishes markets by facts about their instruments. */
export function needInstruments(names: readonly MacroName[]): boolean {
  return names.some((name) => macroNames[name] === orders || macroNames[name] === factors);
}

/** The tables that macros of these names read, each once. */
export function tablesOfMacros(names: readonly MacroName[]): readonly TableName[] {
  return [...new Set(names.flatMap((name) => macroNames[name]))];
}
