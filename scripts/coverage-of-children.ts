import { readdir, readFile } from "node:fs/promises";
import type { Profiler } from "node:inspector";
import { stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { mergeScriptCovs } from "@bcoe/v8-coverage";
import { convert } from "ast-v8-to-istanbul";
import { parseAstAsync } from "vitest/node";
import type { FileCoverage } from "./covered-places.ts";

/**
 * What ran in processes with NODE_V8_COVERAGE set to `folder`, by source file: of the programs in dist, by their source
 * maps; of sources that Node stripped of types, where nothing moves.
 */
export async function coverageOfChildren(folder: string, project: string): Promise<readonly FileCoverage[]> {
  const ours = ["dist/", "src/"].map((name) => pathToFileURL(join(project, name)).href);
  const scripts = new Map<string, Profiler.ScriptCoverage>();
  for (const name of await readdir(folder)) {
    for (const script of await scriptsOf(join(folder, name))) {
      if (!ours.some((start) => script.url.startsWith(start))) continue;
      const before = scripts.get(script.url);
      scripts.set(script.url, mergeScriptCovs(before === undefined ? [script] : [before, script]));
    }
  }
  const files: FileCoverage[] = [];
  for (const coverage of scripts.values()) {
    const path = fileURLToPath(coverage.url);
    const text = await readFile(path, "utf8");
    const code = path.endsWith(".ts") ? stripTypeScriptTypes(text) : text;
    const converted = await convert({ code, ast: parseAstAsync(code), coverage });
    files.push(...(Object.values(converted) as FileCoverage[]));
  }
  return files;
}

/** The scripts that one process ran; none where it was killed while it wrote them down. */
async function scriptsOf(file: string): Promise<readonly Profiler.ScriptCoverage[]> {
  try {
    return (JSON.parse(await readFile(file, "utf8")) as { result: Profiler.ScriptCoverage[] }).result;
  } catch (error) {
    if (error instanceof SyntaxError) return [];
    throw error;
  }
}
