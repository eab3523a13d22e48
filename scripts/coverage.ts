// npm run coverage [-- --json FILE] [TEST FILES...]: how many lines and branches of src/ the tests run. What runs in
// vitest's workers and in the processes that tests start counts alike; a process that is killed writes nothing down.
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative, sep } from "node:path";
import { parseArgs } from "node:util";
import type {} from "vitest/config"; // gives Vite's options `test`
import { startVitest } from "vitest/node";
import { coverageOfChildren } from "./coverage-of-children.ts";
import { addPlaces, type CoveredPlaces, coveredPlaces, type FileCoverage } from "./covered-places.ts";

const project = join(import.meta.dirname, "..");

/** Runs the tests; what they covered in the workers themselves. The processes that they start write into a folder. */
async function runTests(
  filters: string[],
  children: string,
  report: string,
): Promise<readonly FileCoverage[]> {
  process.env.RUNVAULT_COVERAGE_FOLDER = children;
  const coverage = {
    ...{ enabled: true, provider: "v8" as const, reportOnFailure: true },
    ...{
      include: ["src/**"],
      exclude: ["src/gen/**"],
      reporter: ["json" as const],
      reportsDirectory: report,
    },
  };
  // code that is watched is slower, by how much differs
  const options = { root: project, run: true, coverage, testTimeout: 300_000 };
  const setupFiles = [join(import.meta.dirname, "coverage-setup.ts")];
  const vitest = await startVitest(filters, options, { test: { setupFiles, hookTimeout: 300_000 } });
  await vitest.close();
  const text = await readFile(join(report, "coverage-final.json"), "utf8");
  return Object.values(JSON.parse(text) as Record<string, FileCoverage>);
}

const nameOf = (path: string) => relative(join(project, "src"), path).split(sep).join("/");

/** Places of all files by their names in src/. */
async function measure(filters: string[]): Promise<ReadonlyMap<string, CoveredPlaces>> {
  const folder = await mkdtemp(join(tmpdir(), "runvault-coverage-"));
  try {
    const children = join(folder, "children");
    await mkdir(children);
    // some tests start programs as a user without privileges
    await chmod(folder, 0o755);
    await chmod(children, 0o1777);
    const own = await runTests(filters, children, join(folder, "report"));
    const files = new Map(own.map((file) => [nameOf(file.path), coveredPlaces(file)]));
    let unknown = 0;
    for (const file of await coverageOfChildren(children, project)) {
      const name = nameOf(file.path);
      const places = files.get(name);
      if (places === undefined) continue;
      unknown += addPlaces(places, coveredPlaces(file));
    }
    if (unknown > 0) process.stderr.write(`${unknown} places that ran in processes are not counted\n`);
    return files;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

interface Figure {
  readonly covered: number;
  readonly total: number;
}

function figure(kind: keyof CoveredPlaces, files: readonly CoveredPlaces[]): Figure {
  const ran = files.flatMap((places) => [...places[kind].values()]);
  return { covered: ran.filter(Boolean).length, total: ran.length };
}

function cell({ covered, total }: Figure): string {
  const percent = total === 0 ? 100 : (100 * covered) / total;
  return `${percent.toFixed(2).padStart(6)} % ${`${covered}/${total}`.padStart(11)}`;
}

const { values, positionals } = parseArgs({ allowPositionals: true, options: { json: { type: "string" } } });
const files = await measure(positionals);
const names = [...files.keys()].sort();
const rooms = Map.groupBy(names, (name) => name.split("/")[0]!);

for (const [room, members] of [...rooms, ["all", names] as const]) {
  const places = members.map((name) => files.get(name)!);
  const [lines, branches] = [figure("lines", places), figure("branches", places)];
  process.stdout.write(`${room.padEnd(10)}  lines ${cell(lines)}   branches ${cell(branches)}\n`);
}
if (values.json !== undefined) {
  const byFile = names.map((name) => {
    const { lines, branches } = files.get(name)!;
    return [name, { lines: Object.fromEntries(lines), branches: Object.fromEntries(branches) }];
  });
  await writeFile(values.json, `${JSON.stringify(Object.fromEntries(byFile), null, 1)}\n`);
}
