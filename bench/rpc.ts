// Rows a second over RPC: the client alone, against the REST client and against a plain connect-node client that builds
// messages, all from the same pre-rendered simulator in a separate process; and `archive --transport rpc` against REST.
//   npm run bench -- rpc [--fills 1000000] [--rounds 3]
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { simulate } from "./simulate.ts";
import { median, type Timed, timed } from "./timed.ts";

const { values } = parseArgs({
  args: process.argv.slice(2).filter((arg) => arg !== "rpc"),
  options: { fills: { type: "string", default: "1000000" }, rounds: { type: "string", default: "3" } },
});
const fills = Number(values.fills);
const rounds = Number(values.rounds);
const runvault = join(import.meta.dirname, "..", "dist", "cli", "main.js");
const drain = join(import.meta.dirname, "drain.ts");

await using gateway = await simulate(["--runs", "1", "--fills", String(fills)]);
const { url, instanceId, runId } = gateway;
const node = process.execPath;
const drained =
  (way: string, windows = 1) =>
  (folder: string) =>
    `'${node}' '${drain}' ${way} '${url}' '${instanceId}' '${runId}' ${windows} > '${folder}/rows'`;
const archived = (transport: string) => (folder: string) =>
  `'${node}' '${runvault}' archive '${instanceId}/${runId}' --tables fills --gateway '${url}' --archive '${folder}/archive' ` +
  `--transport ${transport} --json --quiet | grep -o '"fetchedRows": *[0-9]*' | grep -o '[0-9]*' > '${folder}/rows'`;

const ways: Record<string, (folder: string) => string> = {
  "rows over rpc": drained("rpc"),
  "rows over rpc, four windows": drained("rpc", 4),
  "rows over rest": drained("rest"),
  "rows by connect-node": drained("connect"),
  "archive over rpc": archived("rpc"),
  "archive over rest": archived("rest"),
};

interface Round extends Timed {
  /** The simulator's, beside the client's own. */
  readonly serverSeconds: number;
}

const results = new Map<string, Round[]>(Object.keys(ways).map((name) => [name, []]));
for (let round = 0; round <= rounds; round++) {
  for (const [name, command] of Object.entries(ways)) {
    const folder = await mkdtemp(join(tmpdir(), "runvault-bench-"));
    try {
      const before = gateway.processorSeconds();
      const run = await timed(command(folder), folder);
      const serverSeconds = gateway.processorSeconds() - before;
      const rows = Number(await readFile(join(folder, "rows"), "utf8"));
      // a figure for rows that are not all there would be worth nothing
      if (rows !== fills) throw new Error(`${name}: ${rows} of ${fills} rows came`);
      // the first round warms caches up
      if (round > 0) results.get(name)!.push({ ...run, serverSeconds });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }
}

const base = results.get("rows over rpc")!;
process.stdout.write(`${fills} fills, ${rounds} rounds in turns\n`);
for (const [name, runs] of results) {
  const seconds = runs.map((run) => run.seconds);
  const ratios = runs.map((run, i) => run.seconds / base[i]!.seconds);
  const figures = [
    `wall ${seconds
      .toSorted((a, b) => a - b)
      .map((s) => s.toFixed(1))
      .join(", ")} s`,
    `${Math.round(fills / median(seconds)).toLocaleString("en")} rows/s`,
    `processor ${median(runs.map((run) => run.processorSeconds)).toFixed(1)} s`,
    `simulator's ${median(runs.map((run) => run.serverSeconds)).toFixed(1)} s`,
    `peak ${Math.max(...runs.map((run) => run.peakMb)).toFixed(0)} MB`,
    `${median(ratios).toFixed(2)} of the rows over rpc`,
  ];
  process.stdout.write(`${name.padEnd(28)} ${figures.join("; ")}\n`);
}
process.stdout.write(`${"simulator".padEnd(28)} peak ${gateway.peakMb().toFixed(0)} MB\n`);
