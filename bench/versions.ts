// `runvault archive` of two builds, in turns from the same pre-rendered source: ratios of processor and wall time, pair by
// pair, and whether the archives are equal.
//   npm run bench -- versions --before DIST [--fills 1000000 | --bars FILE] [--rounds 15] [-- options of archive]
import { spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { simulate } from "./simulate.ts";
import { median, type Timed, timed } from "./timed.ts";

const { values, positionals } = parseArgs({
  args: process.argv.slice(2).filter((arg) => arg !== "versions"),
  allowPositionals: true,
  options: {
    before: { type: "string" },
    fills: { type: "string", default: "1000000" },
    bars: { type: "string" },
    rounds: { type: "string", default: "15" },
  },
});
if (values.before === undefined)
  throw new Error("--before DIST is missing: the dist folder of another build");
const world = values.bars === undefined ? ["--fills", values.fills] : ["--bars", values.bars];
const tables = values.bars === undefined ? ["--tables", "fills"] : [];
const rounds = Number(values.rounds);

await using gateway = await simulate(["--runs", "1", ...world]);
const { url, instanceId, runId } = gateway;
const builds = { before: values.before, now: join(import.meta.dirname, "..", "dist") };
const results: Record<keyof typeof builds, Timed[]> = { before: [], now: [] };
const folder = await mkdtemp(join(tmpdir(), "runvault-bench-"));
try {
  for (let round = 0; round <= rounds; round++) {
    for (const name of ["before", "now"] as const) {
      const archive = join(folder, name);
      await rm(archive, { recursive: true, force: true });
      const options = ["--gateway", url, "--archive", archive, "-q", ...tables, ...positionals];
      const command = [
        process.execPath,
        join(builds[name], "cli", "main.js"),
        "archive",
        `${instanceId}/${runId}`,
      ];
      const run = await timed([...command, ...options].map((word) => `'${word}'`).join(" "), folder);
      // the first round warms caches up
      if (round > 0) results[name].push(run);
    }
  }
  const { status } = spawnSync(
    process.execPath,
    [join(builds.now, "cli", "main.js"), "maintain", "diff", join(folder, "before"), join(folder, "now")],
    { stdio: ["ignore", "ignore", "inherit"] },
  );
  if (status !== 0) throw new Error(`diff of the two archives: exit ${status}`);
} finally {
  await rm(folder, { recursive: true, force: true });
}

process.stdout.write(`archives equal; ${rounds} rounds after a warm-up\n`);
for (const [what, of] of [
  ["processor s", (run: Timed) => run.processorSeconds],
  ["wall s", (run: Timed) => run.seconds],
  ["peak MB", (run: Timed) => run.peakMb],
] as const) {
  const ratios = results.now.map((run, index) => of(run) / of(results.before[index]!));
  const medians = (["before", "now"] as const).map((name) => median(results[name].map(of)).toFixed(2));
  process.stdout.write(
    `${what.padEnd(12)} before ${medians[0]}, now ${medians[1]}, now / before ${median(ratios).toFixed(3)} (${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})\n`,
  );
}
