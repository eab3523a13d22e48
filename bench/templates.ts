// The simulator's cost of serving runs with a template's rows, compared with rendered runs: its
// processor time for all rows over REST and over RPC, in turns, and for a list of all runs.
//   npm run bench -- templates [--templates 40] [--rows 20000] [--rounds 5] [--list 5000]
import { parseArgs } from "node:util";
import { openRestGateway } from "../src/gateway/rest/rest-gateway.ts";
import { openRpcGateway } from "../src/gateway/rpc/rpc-gateway.ts";
import { tableNames } from "../src/model/profile/table.ts";
import type { HistorySource, RunRef } from "../src/model/source.ts";
import { simulate } from "./simulate.ts";
import { median } from "./timed.ts";

const { values } = parseArgs({
  args: process.argv.slice(2).filter((arg) => arg !== "templates"),
  options: {
    templates: { type: "string", default: "40" },
    rows: { type: "string", default: "20000" },
    rounds: { type: "string", default: "5" },
    list: { type: "string", default: "5000" },
  },
});
const rounds = Number(values.rounds);
const templates = Number(values.templates);

async function drain(source: HistorySource, runs: readonly RunRef[]): Promise<number> {
  let bytes = 0;
  for (const { instanceId, runId } of runs) {
    for (const table of tableNames) {
      for await (const chunk of source.rows({ instanceId, runId, table })) bytes += chunk.length;
    }
  }
  return bytes;
}

{
  const options = ["--templates", values.templates, "--runs", String(2 * templates), "--rows", values.rows];
  await using gateway = await simulate(options);
  const seconds = async (work: () => Promise<unknown>) => {
    const before = gateway.processorSeconds();
    await work();
    return gateway.processorSeconds() - before;
  };
  for (const [name, open] of [
    ["REST", openRestGateway],
    ["RPC", openRpcGateway],
  ] as const) {
    await using source = open({ baseUrl: gateway.url });
    const runs = (await source.runs(gateway.instanceId))!;
    const megabytes = (await drain(source, runs)) / 2e6;
    const taken: { rendered: number; moved: number }[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const rendered = await seconds(() => drain(source, runs.slice(0, templates)));
      taken.push({ rendered, moved: await seconds(() => drain(source, runs.slice(templates))) });
    }
    const rendered = median(taken.map((one) => one.rendered));
    const moved = median(taken.map((one) => one.moved));
    process.stdout.write(
      `${name.padEnd(5)} ${megabytes.toFixed(0)} MB: rendered ${rendered.toFixed(2)} s, moved ${moved.toFixed(2)} s of processor time\n`,
    );
  }
  process.stdout.write(`peak ${gateway.peakMb().toFixed(0)} MB\n`);
}

await using gateway = await simulate(["--templates", "4", "--runs", values.list, "--rows", "2000"]);
const list = async () =>
  await (await fetch(`${gateway.url}/history/runs?instance=${gateway.instanceId}`)).bytes();
for (let warm = 0; warm < 3; warm += 1) await list();
const before = gateway.processorSeconds();
for (let round = 0; round < 20; round += 1) await list();
const each = ((gateway.processorSeconds() - before) * 1000) / 20;
process.stdout.write(`list of ${values.list} runs: ${each.toFixed(0)} ms of processor time\n`);
