import { readFile } from "node:fs/promises";
import type { DuckDBConnection } from "@duckdb/node-api";
import { packageFile } from "../../model/package-file.ts";
import type { MacroName } from "./macro-names.ts";

/** The SQL files in this folder, each after those whose macros it calls. */
const calledFiles = {
  normal: [],
  series: [],
  benchmark: ["series"],
  performance: ["normal", "benchmark"],
  drawdowns: ["series"],
  monthly: ["series"],
  rolling: ["benchmark"],
  "counted-figure": ["performance"],
  instruments: [],
  execution: ["series", "counted-figure", "instruments"],
  factors: ["counted-figure", "instruments"],
} as const satisfies Readonly<Record<string, readonly string[]>>;

export type MacroFile = keyof typeof calledFiles;

export const macroFiles = Object.keys(calledFiles) as MacroFile[];

const fileOf: Readonly<Record<MacroName, MacroFile>> = {
  session_points: "series",
  session_returns: "series",
  benchmark_returns: "benchmark",
  performance: "performance",
  drawdowns: "drawdowns",
  monthly: "monthly",
  rolling: "rolling",
  execution: "execution",
  order_funnel: "execution",
  factor_ic: "factors",
  factor_ic_series: "factors",
  factor_quantiles: "factors",
  factor_coverage: "factors",
};

const texts = new Map<string, Promise<string>>();

/**
 * Makes macros in the database that the connection uses, and those that they call: all where none are named. DuckDB binds
 * each body as it makes it, which takes longer than most queries do: name the few that you need. The tables
 * that the bodies read have to be there. Leaves out the files in `made`, and adds to it those that it ran.
 */
export async function createMacros(
  connection: DuckDBConnection,
  names: readonly MacroName[] = Object.keys(fileOf) as MacroName[],
  made = new Set<MacroFile>(),
): Promise<void> {
  const needed = new Set<MacroFile>();
  const need = (file: MacroFile) => {
    needed.add(file);
    for (const called of calledFiles[file]) need(called);
  };
  for (const name of names) need(fileOf[name]);
  for (const file of macroFiles.filter((file) => needed.has(file) && !made.has(file))) {
    await connection.run(await textOf(file));
    made.add(file);
  }
}

function textOf(file: string): Promise<string> {
  const known = texts.get(file) ?? readFile(packageFile(`src/analytics/sql/${file}.sql`), "utf8");
  texts.set(file, known);
  return known;
}
