// npm run trials [-- --minutes 60] [--seed N] [KIND…]: tests that find more the longer they run, with other seeds in each
// round. Each find is printed with the line that repeats it. Exits with 1 where there is one.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { trialKinds } from "../test/fixtures/trials/trial-kinds.ts";
import { seedVariable, timesVariable } from "../test/fixtures/trials/trials.ts";

const project = join(import.meta.dirname, "..");
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: "string", default: "60" },
    rounds: { type: "string", default: "Infinity" },
    seed: { type: "string", default: String(Date.now() % 1_000_000_007) },
  },
});
const stranger = positionals.find((name) => !(name in trialKinds));
if (stranger !== undefined) {
  const list = Object.entries(trialKinds).map(([name, { what }]) => `  ${name}: ${what}`);
  throw new Error(`no kind of trials is called ${stranger}; there are\n${list.join("\n")}`);
}
const kinds = positionals.length === 0 ? Object.keys(trialKinds) : positionals;
const untilMs = performance.now() + Number(values.minutes) * 60_000;
const tally = new Map<string, { rounds: number; finds: number }>();

rounds: for (let round = 0; round < Number(values.rounds); round++) {
  for (const name of kinds) {
    if (performance.now() >= untilMs) break rounds;
    const seed = Number(values.seed) + round;
    const found = tryOnce(name, seed);
    const { rounds, finds } = tally.get(name) ?? { rounds: 0, finds: 0 };
    tally.set(name, { rounds: rounds + 1, finds: finds + (found === null ? 0 : 1) });
    if (found === null) continue;
    process.exitCode = 1;
    process.stdout.write(`${found}\nto repeat it: npm run trials -- --seed ${seed} --rounds 1 ${name}\n\n`);
  }
}
for (const [name, { rounds, finds }] of tally) {
  process.stdout.write(`${name}: ${rounds} rounds, ${finds} with a find\n`);
}

/** Runs a kind's tests with a seed. What they print where one fails, else null. */
function tryOnce(name: string, seed: number): string | null {
  const { files, times } = trialKinds[name]!;
  const env = { ...process.env, [seedVariable]: String(seed), [timesVariable]: String(times) };
  const args = [
    "vitest",
    "run",
    ...files,
    "--reporter=dot",
    "--testTimeout=3600000",
    "--hookTimeout=3600000",
  ];
  const { status, stdout, stderr } = spawnSync("npx", args, { cwd: project, env, encoding: "utf8" });
  const seconds = `${Math.round(performance.now() / 1000)} s`;
  process.stderr.write(`${seconds}: ${name}, seed ${seed}: ${status === 0 ? "nothing found" : "a find"}\n`);
  return status === 0 ? null : `${stdout}\n${stderr}`;
}
