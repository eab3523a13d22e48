// npm run worlds -- --worlds N --seed S [--path P] [--kind K] [--json]: archives from so many gateways that misbehave, each
// each in its own world, and compares what the archive says with the truth. Prints how often each outcome came
// about; a failure is printed with the line that repeats it. Kinds are `faults`, the default, those of kind-plan.ts,
// by their names or as `all`, `faulty` or `honest`.
import { parseArgs } from "node:util";
import fc from "fast-check";
import makeScratch from "../test/fixtures/command/scratch.ts";
import { isKept, kindsNamed, tryKind } from "../test/fixtures/worlds/kinds/kind-tally.ts";
import { shownTallies, shownWorld } from "../test/fixtures/worlds/kinds/kind-text.ts";
import { runWorld, type Tally } from "../test/fixtures/worlds/run-world.ts";
import { worldPlan } from "../test/fixtures/worlds/world-plan.ts";

const { values } = parseArgs({
  options: {
    worlds: { type: "string" },
    seed: { type: "string", default: String(Date.now() % 1_000_000_007) },
    path: { type: "string" },
    kind: { type: "string", default: "faults" },
    json: { type: "boolean", default: false },
  },
});
const seed = Number(values.seed);
const startedMs = performance.now();
const removeScratch = await makeScratch();
try {
  if (values.kind === "faults") await tryFaults(Number(values.worlds ?? 10_000));
  else await tryKinds(Number(values.worlds ?? 1000));
} finally {
  await removeScratch();
}

async function tryKinds(worlds: number): Promise<void> {
  const kinds = kindsNamed(values.kind);
  if (values.path !== undefined) {
    for (const kind of kinds) console.log(await shownWorld(kind, seed, Number(values.path)));
    return;
  }
  const tallies = [];
  for (const kind of kinds) {
    const tally = await tryKind(kind, seed, worlds);
    tallies.push(tally);
    if (!isKept(tally)) process.exitCode = 1;
    if (!values.json) process.stderr.write(`${kind}: ${tally.seconds} s\n`);
  }
  console.log(values.json ? JSON.stringify({ seed, worlds, kinds: tallies }) : shownTallies(tallies));
}

async function tryFaults(worlds: number): Promise<void> {
  const tally: Tally = new Map();
  if (!values.json) console.log(`${worlds} worlds of seed ${seed}`);
  const result = await fc.check(
    fc.asyncProperty(worldPlan, (plan) => runWorld(plan, tally)),
    {
      numRuns: worlds,
      seed,
      ...(values.path === undefined ? {} : { path: values.path, endOnFailure: true }),
    },
  );
  const outcomes = [...tally].sort(([a], [b]) => (a < b ? -1 : 1));
  if (values.json)
    console.log(JSON.stringify({ seed, worlds, kind: "faults", outcomes: Object.fromEntries(outcomes) }));
  else for (const [name, count] of outcomes) console.log(`${String(count).padStart(8)}  ${name}`);
  if (!values.json) console.log(`${Math.round((performance.now() - startedMs) / 1000)} s`);
  if (!result.failed) return;
  console.error(fc.stringify(result.counterexample));
  console.error(result.errorInstance);
  console.error(`to repeat it: npm run worlds -- --seed ${seed} --path ${result.counterexamplePath}`);
  process.exitCode = 1;
}
