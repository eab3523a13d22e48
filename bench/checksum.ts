// The cost of row checksums: of a simulated gateway and of a served archive to compute one, whole and of a tenth of the
// time, and of `archive --require hashed` beside `--require counted`, in turns, and on what was counted before.
//   npm run bench -- checksum [--fills 1000000] [--rounds 3]
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { simulate } from "./simulate.ts";
import { median, type Timed, timed } from "./timed.ts";

const { values } = parseArgs({
  args: process.argv.slice(2).filter((arg) => arg !== "checksum"),
  options: {
    fills: { type: "string", default: "1000000" },
    rounds: { type: "string", default: "3" },
  },
});
const rounds = Number(values.rounds);
const main = join(import.meta.dirname, "..", "dist", "cli", "main.js");
const folder = await mkdtemp(join(tmpdir(), "runvault-bench-"));
const worldOptions = ["--runs", "1", "--fills", values.fills];

interface Facts {
  readonly tables: readonly { table: string; rows: string; min_ts_event: string; max_ts_event: string }[];
}

try {
  await using gateway = await simulate(worldOptions);
  const query = `instance=${gateway.instanceId}&run_id=${gateway.runId}&table=fills`;
  const dirOf = (round: number, require: string) => join(folder, `${require}-${round}`);
  const job = (dir: string, require: string) =>
    timed(
      `${process.execPath} ${main} archive ${gateway.instanceId}/${gateway.runId} --gateway ${gateway.url} --archive ${dir} --tables fills --require ${require}`,
      folder,
    );

  const taken = new Map<string, Timed[]>();
  const note = (name: string, one: Timed) => taken.set(name, [...(taken.get(name) ?? []), one]);
  // the first has nothing warm
  await job(join(folder, "warm"), "counted");
  for (let round = 0; round < rounds; round++) {
    note("archive --require counted", await job(dirOf(round, "counted"), "counted"));
    note("archive --require hashed", await job(dirOf(round, "hashed"), "hashed"));
    note("archive --require hashed, counted before", await job(dirOf(round, "counted"), "hashed"));
  }
  for (const [name, times] of taken) {
    const [wall, processor, peak] = (["seconds", "processorSeconds", "peakMb"] as const).map((what) =>
      median(times.map((one) => one[what])),
    ) as [number, number, number];
    print(name, `${wall.toFixed(1)} s, processor ${processor.toFixed(1)} s, peak ${peak.toFixed(0)} MB`);
  }

  const before = gateway.processorSeconds();
  const asked = await checksums(`${gateway.url}/history/storage?${query}`);
  const processor = (gateway.processorSeconds() - before) / rounds;
  print(
    "checksum of the simulator",
    `${asked.whole.toFixed(2)} s, processor ${processor.toFixed(2)} s with a tenth`,
  );

  const server = spawn(process.execPath, [main, "serve", "--archive", join(folder, "warm")], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const [base] = (await once(createInterface({ input: server.stdout }), "line")) as [string];
    const of = await checksums(`${base}/history/storage?${query}`);
    print("checksum of serve", `${of.whole.toFixed(2)} s, of a tenth of the time ${of.tenth.toFixed(2)} s`);
  } finally {
    server.kill("SIGTERM");
    await once(server, "close");
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}

/** Seconds that the checksum of the whole table takes, and that of the middle tenth of its time. */
async function checksums(storage: string): Promise<{ whole: number; tenth: number }> {
  const { tables } = (await (await fetch(storage)).json()) as Facts;
  const [from, to] = [BigInt(tables[0]!.min_ts_event), BigInt(tables[0]!.max_ts_event)];
  const [start, end] = [45n, 55n].map((part) => from + ((to - from) * part) / 100n);
  const took = { whole: [] as number[], tenth: [] as number[] };
  for (let round = 0; round < rounds; round++) {
    for (const [what, window] of [
      ["whole", ""],
      ["tenth", `&from=${start}&to=${end}`],
    ] as const) {
      const began = performance.now();
      const answer = await fetch(`${storage}&with_checksum=true${window}`);
      if (answer.status !== 200) throw new Error(`${answer.status}: ${await answer.text()}`);
      await answer.arrayBuffer();
      took[what].push((performance.now() - began) / 1000);
    }
  }
  return { whole: median(took.whole), tenth: median(took.tenth) };
}

function print(name: string, text: string): void {
  process.stdout.write(`${name}: ${text}\n`);
}
