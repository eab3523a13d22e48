// The cost of a profile: `archive` of a gateway that names, spells and numbers its fills in its own way, beside `archive` of
// the default gateway with the same values, in turns. Both are counted, and the row hashes must be the same.
//   npm run bench -- profiles [--transport rest|rpc] [--fills 1000000] [--rounds 5]
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { finished } from "node:stream/promises";
import { parseArgs } from "node:util";
import { simulate } from "./simulate.ts";
import { median, type Timed, timed } from "./timed.ts";

const { values } = parseArgs({
  args: process.argv.slice(2).filter((arg) => arg !== "profiles"),
  options: {
    transport: { type: "string", default: "rest" },
    fills: { type: "string", default: "1000000" },
    rounds: { type: "string", default: "5" },
  },
});
const isRpc = values.transport === "rpc";
const rounds = Number(values.rounds);
const root = join(import.meta.dirname, "..");
const main = join(root, "dist", "cli", "main.js");
const folder = await mkdtemp(join(tmpdir(), "runvault-bench-"));
const pathOf = (name: string) => join(folder, name);

/** Its own names, milliseconds, words and bare numbers, like most foreign gateways. */
const columns = `    run_id: ${isRpc ? "execution" : "executionId"}
    instance_id: desk
    ts_event: { from: time, unit: ms }
    ts_init: { from: received, unit: ms }
    account: acct
    venue: exchange
    symbol: ticker
`;
const ownColumns = `    columns:
      side: { from: side, words: ${isRpc ? "{ SIDE_BUY: BUY, SIDE_SELL: SELL }" : "{ B: BUY, S: SELL }"} }
      price: px
      quantity: qty
      fee_currency: ${isRpc ? "fee_ccy" : "feeCcy"}
      liquidity: { from: maker, words: { true: MAKER, false: TAKER } }
`;

const restProfile = `profile: 1
name: recorded
extends: default
rows:
  numbers: exact
  columns:
${columns}tables:
  fills:
    times: { unit: ms, from: inclusive, to: exclusive }
${ownColumns}`;

const rpcProfile = `profile: 1
name: recorded
rpc:
  protocol: connect
  descriptors: own.binpb
  parameters: { instance: desk, run: execution, from: after, to: before, limit: per_page }
  times: { unit: ms, from: inclusive, to: exclusive }
  documents:
    instances: { method: recorded.Tape.Desks, list: desks, id: name, runs: executions }
    runs: { method: recorded.Tape.Executions, parameters: { instance: desk }, list: executions, id: id, started: opened,
            ended: closed, unit: ms, status: state, final: sealed, storage_version: version }
    storage: { method: recorded.Tape.Count, list: tallies, table: table, rows: rows, first: first, last: last, unit: ms,
               final: sealed, parameters: { instance: desk, run: execution, from: after, to: before } }
  tables:
    fills: { method: recorded.Tape.Trades, rows: trades, pages: { send: cursor, next: next }, largest_limit: 10000 }
rows:
  numbers: exact
  columns:
${columns}tables:
  fills:
${ownColumns}`;

interface Fill extends Record<string, string> {
  readonly ts_event: string;
}

/** Writes the simulated fills to the millisecond, as the default gateway has them and as the other has. */
async function writeRows(): Promise<void> {
  await using gateway = await simulate(["--runs", "1", "--fills", values.fills]);
  const query = new URLSearchParams({ instance: gateway.instanceId, run_id: gateway.runId });
  const fetched = pathOf("simulated.ndjson");
  await timed(`curl -sf -o '${fetched}' '${gateway.url}/history/fills?${query}'`, folder);
  const outputs = ["default.ndjson", "foreign.ndjson", "times"].map((name) =>
    createWriteStream(pathOf(name)),
  );
  for await (const line of createInterface({ input: createReadStream(fetched) })) {
    const row = JSON.parse(line) as Fill;
    const own = {
      ...row,
      ...{ run_id: "recorded", instance_id: "alpha-1" },
      ts_event: `${row.ts_event.slice(0, -6)}000000`,
      ts_init: `${row.ts_init!.slice(0, -6)}000000`,
      side: row.side === "SELL" ? "SELL" : "BUY",
      liquidity: row.liquidity === "MAKER" ? "MAKER" : "TAKER",
    };
    const texts = [JSON.stringify(own), foreign(own), own.ts_event];
    for (const [at, output] of outputs.entries()) {
      if (!output.write(`${texts[at]}\n`)) await once(output, "drain");
    }
  }
  for (const output of outputs) await finished(output.end());
}

function foreign(row: Fill): string {
  if (isRpc) return foreignMessage(row);
  const names: Record<string, string> = {
    ...{ run_id: "executionId", instance_id: "desk", ts_event: "time", ts_init: "received", account: "acct" },
    ...{ venue: "exchange", symbol: "ticker", price: "px", quantity: "qty", fee_currency: "feeCcy" },
    liquidity: "maker",
  };
  const members = Object.entries(row).map(([column, value]) => {
    const name = JSON.stringify(names[column] ?? column);
    if (column === "ts_event" || column === "ts_init") return `${name}:${value.slice(0, -6)}`;
    if (["price", "quantity", "fee"].includes(column) && value !== "") return `${name}:${value}`;
    if (column === "side") return `${name}:"${value[0]}"`;
    if (column === "liquidity") return `${name}:${value === "MAKER"}`;
    return `${name}:${JSON.stringify(value)}`;
  });
  return `{${members.join(",")}}`;
}

/** The same as protobuf JSON of a message of recorded.proto. */
function foreignMessage(row: Fill): string {
  const { run_id, instance_id, ts_event, ts_init, account, venue, symbol, price, quantity, fee, ...same } =
    row;
  const { side, fee_currency, liquidity, ...more } = same;
  return JSON.stringify({
    ...more,
    ...{ execution: run_id, desk: instance_id, acct: account, exchange: venue, ticker: symbol },
    time: ts_event.slice(0, -6),
    received: ts_init!.slice(0, -6),
    side: `SIDE_${side}`,
    ...{ px: Number(price), qty: Number(quantity), fee: Number(fee), fee_ccy: fee_currency },
    maker: liquidity === "MAKER",
  });
}

/** Serves the rows of a file in the contract's words or in the gateway's own. */
async function serve(file: string, form: "contract" | "own"): Promise<{ url: string } & AsyncDisposable> {
  const rest = ["rest-gateway.ts", pathOf(file), pathOf("times"), form === "own" ? "1000000" : "1"];
  const rpc = ["rpc-gateway.ts", form, pathOf(file), pathOf("times"), pathOf(`${form}.binpb`)];
  const [script, ...args] = isRpc ? rpc : rest;
  const child = spawn(process.execPath, [join(import.meta.dirname, "recorded", script!), ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [url] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  return {
    url,
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGTERM");
      await once(child, "close");
    },
  };
}

try {
  await writeRows();
  await writeFile(pathOf("profile.yaml"), isRpc ? rpcProfile : restProfile);
  if (isRpc) {
    const build = (input: string, output: string) =>
      execFileSync("npx", ["buf", "build", join(root, input), "-o", pathOf(output)], { cwd: root });
    build("proto", "contract.binpb");
    build("bench/recorded", "own.binpb");
  }
  await using own = await serve("default.ndjson", "contract");
  await using other = await serve("foreign.ndjson", "own");
  const archive = async (url: string, options: string) => {
    const dir = pathOf("archive");
    const command = `archive alpha-1/recorded --tables fills --transport ${values.transport} --require counted --quiet --archive '${dir}'`;
    const taken = await timed(
      `'${process.execPath}' '${main}' ${command} --gateway ${url} ${options}`,
      folder,
    );
    const manifest = await readFile(join(dir, "runs", "alpha-1", "recorded.json"), "utf8");
    await rm(dir, { recursive: true });
    return { taken, rows: /"rowHash":(\{[^}]*\}|null)/.exec(manifest)![1]! };
  };
  const ways = {
    default: (more: string) => archive(own.url, more),
    profile: (more: string) => archive(other.url, `--profile '${pathOf("profile.yaml")}' ${more}`),
  };
  // these warm caches up as well
  const rows = [await ways.default("--fingerprint"), await ways.profile("--fingerprint")];
  if (rows[0]!.rows !== rows[1]!.rows || rows[0]!.rows === "null") {
    throw new Error(`the rows differ: ${rows[0]!.rows}, ${rows[1]!.rows}`);
  }
  const taken: Record<keyof typeof ways, Timed[]> = { default: [], profile: [] };
  for (let round = 0; round < rounds; round++) {
    for (const name of ["default", "profile"] as const) taken[name].push((await ways[name]("")).taken);
  }
  const of = (name: keyof typeof ways, what: keyof Timed) => taken[name].map((one) => one[what]);
  for (const name of ["default", "profile"] as const) {
    const [wall, processor, peak] = [of(name, "seconds"), of(name, "processorSeconds"), of(name, "peakMb")];
    print(
      `${name}: ${median(wall)} s, ${median(processor).toFixed(2)} s of processor time, ${median(peak).toFixed(0)} MB`,
    );
  }
  const ratio = (what: keyof Timed) =>
    median(of("profile", what).map((value, round) => value / of("default", what)[round]!)).toFixed(2);
  print(
    `profile / default: ${ratio("seconds")} of the time, ${ratio("processorSeconds")} of the processor time`,
  );
} finally {
  await rm(folder, { recursive: true, force: true });
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
