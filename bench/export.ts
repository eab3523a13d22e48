// Wall time, CPU time and peak memory of `runvault export` in each format against DuckDB's own COPY of the same
// Parquet files. DuckDB has no writer of Arrow here, so both Arrow forms are compared with its COPY to Parquet. The two
// take turns. Prints medians and ratios.
//   npm run bench -- export [--fills 1000000] [--rounds 3] [--archive DIR]
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { simulate } from "./simulate.ts";
import { median, type Timed, timed } from "./timed.ts";

const { values } = parseArgs({
  args: process.argv.slice(2).filter((arg) => arg !== "export"),
  options: {
    fills: { type: "string", default: "1000000" },
    rounds: { type: "string", default: "3" },
    archive: { type: "string" },
  },
});
const rounds = Number(values.rounds);
const runvault = `'${process.execPath}' '${join(import.meta.dirname, "..", "dist", "cli", "main.js")}'`;
const copy = `'${process.execPath}' '${join(import.meta.dirname, "copy-parquet.ts")}'`;
const peers = {
  parquet: "parquet",
  arrow: "parquet",
  "arrow-stream": "parquet",
  duckdb: "duckdb",
  ndjson: "json",
  csv: "csv",
};

const folder = await mkdtemp(join(tmpdir(), "runvault-bench-"));
try {
  const archive = values.archive ?? (await archived());
  process.stdout.write(
    "format        runvault: s, processor s, MB    COPY: s, processor s, MB    s / s   processor\n",
  );
  for (const [format, peer] of Object.entries(peers)) {
    const ours: Timed[] = [];
    const theirs: Timed[] = [];
    for (let round = 0; round < rounds; round++) {
      const out = join(folder, `out-${round}`);
      ours.push(
        await timed(`${runvault} export fills -q --archive '${archive}' -f ${format} -o '${out}'`, folder),
      );
      await rm(out);
      theirs.push(await timed(`${copy} '${archive}/tables/fills/**/*.parquet' '${out}' ${peer}`, folder));
      await rm(out);
    }
    const told = (runs: readonly Timed[]) =>
      [
        median(runs.map(({ seconds }) => seconds)).toFixed(1),
        median(runs.map(({ processorSeconds }) => processorSeconds)).toFixed(1),
        Math.max(...runs.map(({ peakMb }) => peakMb)).toFixed(0),
      ].join("  ");
    const ratio = (of: (run: Timed) => number) =>
      median(ours.map((run, i) => of(run) / of(theirs[i]!))).toFixed(2);
    const ratios = `${ratio(({ seconds }) => seconds)}   ${ratio(({ processorSeconds }) => processorSeconds)}`;
    process.stdout.write(`${format.padEnd(14)}${told(ours).padEnd(30)}${told(theirs).padEnd(28)}${ratios}\n`);
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}

async function archived(): Promise<string> {
  await using gateway = await simulate(["--runs", "1", "--fills", values.fills]);
  const { url, instanceId, runId } = gateway;
  const archive = join(folder, "archive");
  const command = `${runvault} archive '${instanceId}/${runId}' --tables fills --gateway '${url}' --archive '${archive}' -q`;
  await timed(command, folder);
  return archive;
}
