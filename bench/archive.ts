// Wall time and peak memory of `runvault archive` against what one would put together by hand from the same gateway:
//   i   curl to a file, then DuckDB COPY to Parquet
//   ii  the same with equal work: curl through tee into zstd -1 and sha256sum, then COPY and a count
// Paired: the three take turns on the same pre-rendered source. Prints medians and ratios.
//   npm run bench -- archive [--fills 1000000] [--rounds 5]
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { DuckDBInstance } from "@duckdb/node-api";
import { simulate } from "./simulate.ts";
import { median, type Timed, timed } from "./timed.ts";

const { values } = parseArgs({
  args: process.argv.slice(2).filter((arg) => arg !== "archive"),
  options: { fills: { type: "string", default: "1000000" }, rounds: { type: "string", default: "5" } },
});
const fills = Number(values.fills);
const rounds = Number(values.rounds);
const runvault = join(import.meta.dirname, "..", "dist", "cli", "main.js");
const copy = join(import.meta.dirname, "copy.ts");

await using gateway = await simulate(["--runs", "1", "--fills", String(fills)]);
const { url, instanceId, runId } = gateway;
const query = new URLSearchParams({ instance: instanceId, run_id: runId });
const rows = `'${url}/history/fills?${query}'`;
const node = process.execPath;

const ways: Record<string, (folder: string) => string> = {
  runvault: (folder) =>
    `'${node}' '${runvault}' archive '${instanceId}/${runId}' --tables fills --gateway '${url}' --archive '${folder}/archive' --quiet`,
  "curl, COPY": (folder) =>
    `curl -sf -o '${folder}/fills.ndjson' ${rows}; '${node}' '${copy}' '${folder}/fills.ndjson' '${folder}/fills.parquet'`,
  "curl, tee, zstd, sha256sum, COPY, count": (folder) =>
    `curl -sf ${rows} | tee >(zstd -q -1 -o '${folder}/fills.ndjson.zst') >(sha256sum > '${folder}/fills.sha256') > '${folder}/fills.ndjson'; ` +
    `'${node}' '${copy}' '${folder}/fills.ndjson' '${folder}/fills.parquet' count`,
};

const results = new Map<string, Timed[]>(Object.keys(ways).map((name) => [name, []]));
for (let round = 0; round <= rounds; round++) {
  for (const [name, command] of Object.entries(ways)) {
    const folder = await mkdtemp(join(tmpdir(), "runvault-bench-"));
    try {
      const run = await timed(command(folder), folder);
      if (name === "runvault") await expectRows(folder);
      // the first round warms caches up
      if (round > 0) results.get(name)!.push(run);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }
}

/** A figure for rows that are not all there would be worth nothing. */
async function expectRows(folder: string): Promise<void> {
  const instance = await DuckDBInstance.create(":memory:");
  const connection = await instance.connect();
  const reader = await connection.runAndReadAll(
    `SELECT count(*)::INTEGER FROM '${folder}/archive/tables/fills/**/*.parquet'`,
  );
  const [[count]] = reader.getRows() as [[number]];
  connection.closeSync();
  instance.closeSync();
  if (count !== fills) throw new Error(`the archive holds ${count} rows, not ${fills}`);
}

const ours = results.get("runvault")!;
process.stdout.write(`archive of ${fills} fills, ${rounds} rounds after a warm-up\n\n`);
process.stdout.write(
  "way                                       wall s (min, median, max)   peak MB   runvault / way\n",
);
for (const [name, runs] of results) {
  const seconds = runs.map((run) => run.seconds);
  const ratio = median(ours.map((run, i) => run.seconds / runs[i]!.seconds));
  const spread = [Math.min(...seconds), median(seconds), Math.max(...seconds)]
    .map((s) => s.toFixed(2))
    .join("  ");
  const peak = Math.max(...runs.map((run) => run.peakMb)).toFixed(0);
  process.stdout.write(`${name.padEnd(42)}${spread.padEnd(28)}${peak.padStart(7)}   ${ratio.toFixed(2)}\n`);
}
