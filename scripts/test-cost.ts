// npm run test:cost [-- --json FILE] [--cases N] [TEST FILES...]: the processor seconds that the tests take, by file and
// by test, the most expensive first. Linux only, which counts the time of children.
import { writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { parseArgs } from "node:util";
import type {} from "vitest/config"; // gives Vite's options `test`
import { startVitest, type TestModule } from "vitest/node";

const project = join(import.meta.dirname, "..");

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: "string" },
    cases: { type: "string", default: "40" },
    project: { type: "string", multiple: true },
  },
});

interface Cost {
  readonly file: string;
  readonly project: string;
  readonly processorMs: number;
  readonly wallMs: number;
  readonly cases: readonly { readonly name: string; readonly processorMs: number; readonly wallMs: number }[];
}

const processorMsOf = (meta: object) => ("processorMs" in meta ? Number(meta.processorMs) : 0);

function costOf(module: TestModule): Cost {
  const cases = [...module.children.allTests()].map((test) => ({
    name: test.fullName,
    processorMs: Math.round(processorMsOf(test.meta())),
    wallMs: Math.round(test.diagnostic()?.duration ?? 0),
  }));
  const { collectDuration, setupDuration, duration } = module.diagnostic();
  return {
    file: relative(project, module.moduleId),
    project: module.project.name,
    processorMs: Math.round(processorMsOf(module.meta())),
    wallMs: Math.round(collectDuration + setupDuration + duration),
    cases: cases.sort((a, b) => b.processorMs - a.processorMs),
  };
}

const startedMs = performance.now();
const vitest = await startVitest(
  positionals,
  { root: project, run: true, ...(values.project === undefined ? {} : { project: values.project }) },
  { test: { setupFiles: [join(import.meta.dirname, "test-cost-setup.ts")] } },
);
const costs = vitest.state
  .getTestModules()
  .map(costOf)
  .sort((a, b) => b.processorMs - a.processorMs);
await vitest.close();

const seconds = (ms: number) => (ms / 1000).toFixed(1).padStart(8);
const sum = (of: readonly { readonly processorMs: number }[]) =>
  of.reduce((total, { processorMs }) => total + processorMs, 0);
const { user, system } = process.cpuUsage();
const lines = [
  `${seconds(performance.now() - startedMs)} s by the clock`,
  `${seconds((user + system) / 1000)} s of processor time for vitest itself`,
  ...[...Map.groupBy(costs, (cost) => cost.project)].map(
    ([name, of]) => `${seconds(sum(of))} s of processor time in ${of.length} files of ${name}`,
  ),
  "",
  ...costs.map(({ file, processorMs, wallMs }) => `${seconds(processorMs)} ${seconds(wallMs)}  ${file}`),
  "",
  ...costs
    .flatMap(({ file, cases }) => cases.map((each) => ({ ...each, file })))
    .sort((a, b) => b.processorMs - a.processorMs)
    .slice(0, Number(values.cases))
    .map(
      ({ file, name, processorMs, wallMs }) => `${seconds(processorMs)} ${seconds(wallMs)}  ${file}: ${name}`,
    ),
];
process.stdout.write(`${lines.join("\n")}\n`);
if (values.json !== undefined) await writeFile(values.json, `${JSON.stringify(costs, null, 1)}\n`);
