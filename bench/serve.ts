// Throughput of a served archive: a whole table of fills to `curl -o /dev/null`, in each form and with zstd; the server's
// peak memory under 1 and 32 readers at once; the fills of a filter against DuckDB's own COPY of the same lines to
// /dev/null; small requests a second and their slowest hundredth. The two sides of a ratio take turns.
//   npm run bench -- serve [--fills 1000000] [--rounds 3] [--seconds 5] [--readers 32] [--archive DIR]
//     [--filter venue=SIMEX-DARK] [--roapi PROGRAM]
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { glob, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs, promisify } from "node:util";
import { Pool } from "undici";
import { peakMb, roapi } from "./roapi.ts";
import { simulate } from "./simulate.ts";
import { median, timed } from "./timed.ts";

const { values } = parseArgs({
  args: process.argv.slice(2).filter((arg) => arg !== "serve"),
  options: {
    fills: { type: "string", default: "1000000" },
    rounds: { type: "string", default: "3" },
    seconds: { type: "string", default: "5" },
    readers: { type: "string", default: "32" },
    archive: { type: "string" },
    filter: { type: "string", default: "venue=SIMEX-DARK" },
    roapi: { type: "string" },
  },
});
const rounds = Number(values.rounds);
const run = promisify(execFile);
const main = join(import.meta.dirname, "..", "dist", "cli", "main.js");
const folder = await mkdtemp(join(tmpdir(), "runvault-bench-"));
const archive = values.archive ?? (await archived());

const server = spawn(process.execPath, [main, "serve", "--archive", archive], {
  stdio: ["ignore", "pipe", "inherit"],
});
try {
  const [base] = (await once(createInterface({ input: server.stdout }), "line")) as [string];
  const { instances } = await json<Instances>(`${base}/history/instances`);
  const {
    instance_id: instance,
    run_ids: [runId],
  } = instances[0]!;
  const fills = `${base}/history/fills?instance=${instance}&run_id=${runId}`;
  const { tables } = await json<Facts>(`${base}/history/storage?instance=${instance}&run_id=${runId}`);
  const facts = tables.find(({ table }) => table === "fills")!;
  const [rows, from, to] = [Number(facts.rows), BigInt(facts.min_ts_event), BigInt(facts.max_ts_event)];
  const text = (await curl(fills)).bytes;
  print("fills", `${rows} rows, ${(text / 1e6).toFixed(0)} MB of NDJSON`);

  for (const readers of [1, Number(values.readers)]) {
    // from here on the kernel notes a new peak
    await writeFile(`/proc/${server.pid}/clear_refs`, "5");
    const began = performance.now();
    await Promise.all(Array.from({ length: readers }, () => curl(fills)));
    const seconds = (performance.now() - began) / 1000;
    print(
      `${readers} readers at once`,
      `peak ${await peakMb(server.pid!)} MB, ${perSecond((readers * text) / 1e6, seconds)} MB/s`,
    );
  }

  const ways = {
    "whole table, NDJSON": [],
    "whole table, zstd": ["-H", "Accept-Encoding: zstd"],
    "whole table, Arrow": ["-H", "Accept: application/vnd.apache.arrow.stream"],
    "whole table, CSV": ["-H", "Accept: text/csv"],
  };
  const taken = new Map<string, Curled[]>();
  for (let round = 0; round < rounds; round++) {
    for (const [name, headers] of Object.entries(ways)) {
      taken.set(name, [...(taken.get(name) ?? []), await curl(fills, headers)]);
    }
  }
  for (const [name, curled] of taken) {
    const seconds = median(curled.map((one) => one.seconds));
    const sent = `${(curled[0]!.bytes / 1e6 / seconds).toFixed(0)} MB/s sent`;
    print(
      name,
      `${sent}, ${perSecond(text / 1e6, seconds)} MB/s of NDJSON, ${perSecond(rows, seconds)} rows/s`,
    );
  }

  const [column, value] = values.filter.split("=") as [string, string];
  const filtered = `${fills}&${column}=${encodeURIComponent(value)}`;
  const parquet = join(archive, "tables", "fills", "**", "*.parquet");
  const ours: number[] = [];
  const theirs: number[] = [];
  const chosen = (await fetch(filtered)).headers.get("runvault-rows");
  for (let round = 0; round < rounds; round++) {
    ours.push((await curl(filtered)).seconds);
    const copy = [join(import.meta.dirname, "copy-lines.ts"), parquet, column, value];
    const { stdout } = await run(process.execPath, copy);
    // the first time reads what the others have at hand
    theirs.push(median(stdout.trim().split("\n").slice(1).map(Number)));
  }
  const ratio = median(ours.map((seconds, round) => seconds / theirs[round]!)).toFixed(2);
  print(
    `${values.filter}, ${chosen} rows`,
    `${median(ours).toFixed(3)} s, COPY ${median(theirs).toFixed(3)} s, ratio ${ratio}`,
  );

  const somewhere = () => from + ((to - from) * BigInt(Math.floor(Math.random() * 1e6))) / 1_000_000n;
  const small: Record<string, () => string> = {
    "/health": () => `${base}/health`,
    "the first 10 rows": () => `${fills}&limit=10`,
    "10 rows from anywhere": () => `${fills}&from=${somewhere()}&limit=10`,
    "10 filtered rows": () => `${filtered}&limit=10`,
  };
  for (const [name, address] of Object.entries(small)) print(name, await load(address));
  if (values.roapi !== undefined) await beside(values.roapi, fills, rows, [column, value]);
} finally {
  server.kill("SIGTERM");
  await once(server, "close");
  await rm(folder, { recursive: true, force: true });
}

interface Curled {
  readonly seconds: number;
  readonly bytes: number;
}

/** A GET to /dev/null. Throws where the answer is not a whole 200. */
async function curl(address: string, headers: readonly string[] = []): Promise<Curled> {
  const format = "%{http_code} %{time_total} %{size_download}";
  const { stdout } = await run("curl", ["-sS", "-o", "/dev/null", "-w", format, ...headers, address]);
  const [status, seconds, bytes] = stdout.split(" ").map(Number) as [number, number, number];
  if (status !== 200) throw new Error(`${status}: ${address}`);
  return { seconds, bytes };
}

/** Eight connections that ask again as soon as they are answered. */
async function load(address: () => string): Promise<string> {
  const connections = 8;
  const pool = new Pool(new URL(address()).origin, { connections });
  const took: number[] = [];
  const until = performance.now() + Number(values.seconds) * 1000;
  const asking = async () => {
    while (performance.now() < until) {
      const began = performance.now();
      const { pathname, search } = new URL(address());
      const { statusCode, body } = await pool.request({ method: "GET", path: pathname + search });
      await body.arrayBuffer();
      if (statusCode !== 200) throw new Error(`${statusCode}: ${pathname}${search}`);
      took.push(performance.now() - began);
    }
  };
  try {
    await Promise.all(Array.from({ length: connections }, asking));
  } finally {
    await pool.close();
  }
  took.sort((a, b) => a - b);
  const at = (part: number) => `${took[Math.floor(took.length * part)]!.toFixed(1)} ms`;
  return `${perSecond(took.length, Number(values.seconds))} requests/s, median ${at(0.5)}, p99 ${at(0.99)}`;
}

/** The same requests to roapi, which returns JSON with rounded decimals, and Arrow, in turns with runvault. */
async function beside(
  program: string,
  fills: string,
  rows: number,
  [column, value]: readonly [string, string],
): Promise<void> {
  const files: string[] = [];
  for await (const file of glob(join(archive, "tables", "fills", "**", "*.parquet"))) files.push(file);
  const [parquet, ...others] = files;
  if (parquet === undefined || others.length > 0) throw new Error("roapi is given one file: use fewer fills");
  await using other = await roapi(program, parquet);
  const filter = `${encodeURIComponent(`filter[${column}]`)}=${encodeURIComponent(`'${value}'`)}`;
  const arrow = ["-H", "Accept: application/vnd.apache.arrow.stream"];
  const asked: Record<string, readonly [string, string, readonly string[]]> = {
    "whole table, text": [fills, other.rows, []],
    "whole table, Arrow": [fills, other.rows, arrow],
    [`${column}=${value}, text`]: [`${fills}&${column}=${value}`, `${other.rows}?${filter}`, []],
  };
  for (const [name, [ours, theirs, headers]] of Object.entries(asked)) {
    const seconds: [number, number][] = [];
    for (let round = 0; round < rounds; round++) {
      seconds.push([(await curl(ours, headers)).seconds, (await curl(theirs, headers)).seconds]);
    }
    const [mine, its] = [0, 1].map((side) => median(seconds.map((pair) => pair[side]!))) as [number, number];
    const ratio = median(seconds.map(([a, b]) => a / b)).toFixed(2);
    print(`beside roapi: ${name}`, `${mine.toFixed(2)} s, roapi ${its.toFixed(2)} s, ratio ${ratio}`);
  }
  print("roapi: /health", await load(() => other.health));
  print("roapi: any 10 rows", await load(() => `${other.rows}?limit=10`));
  print("roapi: 10 filtered rows", await load(() => `${other.rows}?${filter}&limit=10`));
  print("roapi: peak", `${await other.peakMb()} MB, for ${rows} rows`);
}

interface Instances {
  readonly instances: readonly { readonly instance_id: string; readonly run_ids: readonly string[] }[];
}

interface Facts {
  readonly tables: readonly Readonly<Record<"table" | "rows" | "min_ts_event" | "max_ts_event", string>>[];
}

async function json<T>(address: string): Promise<T> {
  return (await (await fetch(address)).json()) as T;
}

function perSecond(amount: number, seconds: number): string {
  return Math.round(amount / seconds).toLocaleString("en");
}

function print(what: string, figures: string): void {
  process.stdout.write(`${what.padEnd(28)} ${figures}\n`);
}

async function archived(): Promise<string> {
  await using gateway = await simulate(["--runs", "1", "--fills", values.fills]);
  const { url, instanceId, runId } = gateway;
  const made = join(folder, "archive");
  const command = `'${process.execPath}' '${main}' archive '${instanceId}/${runId}' --tables fills --gateway '${url}' --archive '${made}' -q`;
  await timed(command, folder);
  return made;
}
