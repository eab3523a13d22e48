// npm run worlds -- --worlds N --seed S [--path P]: archives from so many gateways that misbehave, each in a world of its
// own, and holds what the archive says against what was true. Prints how often each outcome came about; a failure is
// printed with the seed and path that repeat it.
import { parseArgs } from "node:util";
import fc from "fast-check";
import { runWorld, type Tally } from "../test/fixtures/worlds/run-world.ts";
import { worldPlan } from "../test/fixtures/worlds/world-plan.ts";

const { values } = parseArgs({
  options: {
    worlds: { type: "string", default: "10000" },
    seed: { type: "string", default: String(Date.now() % 1_000_000_007) },
    path: { type: "string" },
  },
});
const seed = Number(values.seed);
const tally: Tally = new Map();
console.log(`${values.worlds} worlds of seed ${seed}`);
const startedMs = performance.now();
const result = await fc.check(
  fc.asyncProperty(worldPlan, (plan) => runWorld(plan, tally)),
  {
    numRuns: Number(values.worlds),
    seed,
    ...(values.path === undefined ? {} : { path: values.path, endOnFailure: true }),
  },
);
for (const [name, count] of [...tally].sort(([a], [b]) => (a < b ? -1 : 1))) {
  console.log(`${String(count).padStart(8)}  ${name}`);
}
console.log(`${Math.round((performance.now() - startedMs) / 1000)} s`);
if (result.failed) {
  console.error(fc.stringify(result.counterexample));
  console.error(result.errorInstance);
  console.error(`to repeat it: npm run worlds -- --seed ${seed} --path ${result.counterexamplePath}`);
  process.exitCode = 1;
}
