import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { missingFileVariable } from "./requirement.ts";

/** Set up once for all test files; when they are done, says how many tests were skipped, and for want of what. */
export default async function countMissingRequirements(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), "runvault-missing-"));
  const file = join(folder, "missing");
  await writeFile(file, "");
  process.env[missingFileVariable] = file;
  return async () => {
    const counts = new Map<string, number>();
    for (const name of (await readFile(file, "utf8")).split("\n").filter(Boolean)) {
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    await rm(folder, { recursive: true, force: true });
    if (counts.size === 0) return;
    const wants = [...counts].map(([name, count]) => `${name}: ${count}`).join(", ");
    const skipped = project.vitest.state
      .getTestModules()
      .flatMap((module) => [...module.children.allTests("skipped")]).length;
    process.stderr.write(`skipped for want of: ${wants}; ${skipped} tests skipped in all\n`);
  };
}
