// @module-tag slow
import { createHash } from "node:crypto";
import { mkdtemp, readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type TableName, tableNamed, tableNames } from "../../src/model/profile/table.ts";
import type { RunRef } from "../../src/model/source.ts";
import { parseTime } from "../../src/model/time.ts";
import { canonicalLine, type Row } from "../../src/row/line.ts";
import { openSimulator, type Simulator } from "../../src/simulator/simulator.ts";
import { recordings, requires } from "../fixtures/command/requirement.ts";

type Fields = Record<string, string>;

let cacheDir: string;

beforeAll(async () => {
  cacheDir = await mkdtemp(join(tmpdir(), "simulator-world-"));
});
afterAll(async () => {
  await rm(cacheDir, { recursive: true, force: true });
});

async function linesOf(world: Simulator, run: RunRef, table: TableName): Promise<string[]> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of world.rows({ instanceId: run.instanceId, runId: run.runId, table }))
    chunks.push(chunk);
  const text = Buffer.concat(chunks).toString();
  expect(text === "" || text.endsWith("\n")).toBe(true);
  return text.split("\n").slice(0, -1);
}

async function rowsOf(world: Simulator, run: RunRef, table: TableName): Promise<Fields[]> {
  return (await linesOf(world, run, table)).map((line) => JSON.parse(line) as Fields);
}

/** An exact decimal in billionths. */
function nanos(text: string): bigint {
  // no expect here, nor in the loops over rows: it would take most of the time
  if (!/^(-?(?!0\d)\d{1,9}(\.\d{0,8}[1-9])?)$/.test(text)) throw new Error(`not canonical: ${text}`);
  const negative = text.startsWith("-");
  const [whole, fraction = ""] = text.replace("-", "").split(".");
  const magnitude = BigInt(whole + fraction.padEnd(9, "0"));
  return negative ? -magnitude : magnitude;
}

function grouped(rows: readonly Fields[], field: string): Map<string, Fields[]> {
  return Map.groupBy(rows, (row) => row[field]!);
}

async function everyRun(world: Simulator): Promise<RunRef[]> {
  const runs: RunRef[] = [];
  for (const { instanceId } of await world.instances()) runs.push(...(await world.runs(instanceId))!);
  return runs;
}

/** SHA-256 over the names and bytes of every file below a folder. */
async function treeHash(folder: string): Promise<string> {
  const hash = createHash("sha256");
  for (const entry of (await readdir(folder, { recursive: true, withFileTypes: true })).sort((a, b) =>
    join(a.parentPath, a.name) < join(b.parentPath, b.name) ? -1 : 1,
  )) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    hash.update(path.slice(folder.length)).update(await readFile(path));
  }
  return hash.digest("hex");
}

const worlds = [
  { name: "generated bars", options: { seed: "7", instances: 2, runs: 3, rows: 6_000 } },
  { name: "a given number of fills", options: { seed: "9", runs: 1, fills: 5_000 } },
];

describe.each(worlds)("a world of $name", ({ options }) => {
  let world: Simulator;
  let runs: RunRef[];
  beforeAll(async () => {
    world = await openSimulator({ ...options, cacheDir });
    runs = await everyRun(world);
  });

  test("has canonical lines in key order, with seq rising by ts_init and some rows late", async () => {
    let late = 0;
    for (const run of runs) {
      for (const name of tableNames) {
        const table = tableNamed(name);
        const lines = await linesOf(world, run, name);
        expect(lines.length).toBeGreaterThan(0);
        let previous = { event: 0n, seq: 0n };
        const arrivals: { seq: bigint; init: bigint }[] = [];
        let latest = 0n;
        const wrong: string[] = [];
        for (const line of lines) {
          const row = JSON.parse(line) as Row;
          const isOwn = row.run_id === run.runId && row.instance_id === run.instanceId;
          const [event, init, seq] = [row.ts_event, row.ts_init, row.seq].map((text) =>
            BigInt(text as string),
          );
          const isNext = event! > previous.event || (event === previous.event && seq! > previous.seq);
          if (canonicalLine(table, row) !== line || !isOwn || !isNext || init! <= event!) wrong.push(line);
          previous = { event: event!, seq: seq! };
          arrivals.push({ seq: seq!, init: init! });
          if (seq! < latest) late += 1;
          else latest = seq!;
        }
        expect(wrong).toEqual([]);
        arrivals.sort((a, b) => (a.seq < b.seq ? -1 : 1));
        const early = arrivals.filter(({ init }, i) => i > 0 && init < arrivals[i - 1]!.init);
        expect(early).toEqual([]);
      }
    }
    expect(late).toBeGreaterThan(10);
  });

  test("gives every fill an order whose steps add up to its fills", async () => {
    for (const run of runs) {
      const orders = grouped(await rowsOf(world, run, "orders"), "client_order_id");
      const fills = grouped(await rowsOf(world, run, "fills"), "client_order_id");
      for (const [id, parts] of fills) {
        const steps = orders.get(id);
        if (steps === undefined) throw new Error(`a fill of ${id}, which is no order`);
        let quantity = 0n;
        let turnover = 0n;
        for (const part of parts) {
          expect(nanos(part.quantity!) > 0n).toBe(true);
          expect([part.side, part.venue, part.symbol]).toEqual([
            steps[0]!.side,
            steps[0]!.venue,
            steps[0]!.symbol,
          ]);
          quantity += nanos(part.quantity!);
          turnover += nanos(part.quantity!) * nanos(part.price!);
        }
        const last = steps.at(-1)!;
        expect(nanos(last.filled_quantity!)).toBe(quantity);
        // half-even to nine decimals: at most half a unit away
        const off = nanos(last.average_price!) * quantity - turnover;
        expect((off < 0n ? -off : off) * 2n <= quantity).toBe(true);
        expect(quantity <= nanos(last.quantity!)).toBe(true);
      }
      for (const [id, steps] of orders) {
        expect(steps[0]!.kind).toBe("SUBMITTED");
        expect(["ACCEPTED", "REJECTED"]).toContain(steps[1]!.kind);
        const filled = steps.filter(({ kind }) => kind === "FILLED" || kind === "PARTIALLY_FILLED");
        expect(filled.length).toBe(fills.get(id)?.length ?? 0);
        expect(steps.some(({ kind }) => kind === "FILLED")).toBe(
          steps.at(-1)!.filled_quantity === steps[0]!.quantity,
        );
        if (steps.at(-1)!.kind === "CANCELED") expect(steps.at(-1)!.reason).not.toBe("");
      }
    }
  });

  test("marks equity = cash + position exactly, with cash and position from fills and fees alone", async () => {
    for (const run of runs) {
      const fills = await rowsOf(world, run, "fills");
      const closes = new Map((await rowsOf(world, run, "bars")).map((bar) => [bar.ts_event!, bar.close!]));
      const points = await rowsOf(world, run, "equity");
      expect(points.length).toBe(closes.size);
      let cash = nanos("1000000");
      let position = 0n;
      let next = 0;
      for (const point of points) {
        for (; next < fills.length && BigInt(fills[next]!.ts_event!) <= BigInt(point.ts_event!); next += 1) {
          const fill = fills[next]!;
          const sign = fill.side === "BUY" ? 1n : -1n;
          const product = nanos(fill.price!) * nanos(fill.quantity!);
          expect(product % 1_000_000_000n).toBe(0n);
          const notional = product / 1_000_000_000n;
          const fee = nanos(fill.fee!);
          expect(fee % 10n).toBe(0n);
          const rate = fill.liquidity === "MAKER" ? 100n : 500n;
          const off = fee * 1_000_000n - notional * rate;
          expect((off < 0n ? -off : off) <= 5_000_000n).toBe(true);
          cash -= sign * notional + fee;
          position += sign * nanos(fill.quantity!);
        }
        expect(nanos(point.cash!)).toBe(cash);
        expect(nanos(point.position_value!) * 1_000_000_000n).toBe(
          position * nanos(closes.get(point.ts_event!)!),
        );
        expect(nanos(point.equity!)).toBe(cash + nanos(point.position_value!));
        expect(nanos(point.equity!) - nanos("1000000")).toBe(
          nanos(point.realized!) + nanos(point.unrealized!),
        );
      }
      expect(next).toBe(fills.length);
      const summary = JSON.parse(Buffer.from((await world.document(run, "summary"))!).toString()) as Fields;
      expect(summary.final_equity).toBe(points.at(-1)!.equity);
      expect(summary.fills).toBe(String(fills.length));
      expect(nanos(summary.fees!)).toBe(fills.reduce((sum, fill) => sum + nanos(fill.fee!), 0n));
      if (options.fills !== undefined) expect(fills.length).toBe(options.fills);
    }
  });

  test("computes its metrics from equity and its factors from the bars", async () => {
    for (const run of runs) {
      const equity = (await rowsOf(world, run, "equity")).map((point) => Number(point.equity));
      const returns = equity.map((value, position) => value / (equity[position - 1] ?? 1_000_000) - 1);
      const mean = returns.reduce((sum, value) => sum + value, 0) / returns.length;
      const variance = returns.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (returns.length - 1);
      const metrics = (await rowsOf(world, run, "metrics")).filter(({ window }) => window === "run");
      const figures = new Map(metrics.map(({ name, value }) => [name, Number(value)]));
      expect(figures.get("total_return")).toBeCloseTo(equity.at(-1)! / 1_000_000 - 1, 12);
      expect(figures.get("volatility")).toBeCloseTo(Math.sqrt(variance * 525_600), 9);
      expect(figures.get("sharpe")).toBeCloseTo((mean / Math.sqrt(variance)) * Math.sqrt(525_600), 5);
      let peak = 1_000_000;
      let drawdown = 0;
      for (const value of equity) {
        peak = Math.max(peak, value);
        drawdown = Math.min(drawdown, value / peak - 1);
      }
      expect(figures.get("max_drawdown")).toBeCloseTo(drawdown, 12);

      const closes = (await rowsOf(world, run, "bars")).map((bar) => Number(bar.close));
      const slow = (await rowsOf(world, run, "factors")).filter(({ factor }) => factor === "slow_ma");
      expect(slow.length).toBe(closes.length);
      expect(slow[10]!.value).toBe("NaN");
      for (let bar = 11; bar < closes.length; bar += 1) {
        const average = closes.slice(bar - 11, bar + 1).reduce((sum, close) => sum + close, 0) / 12;
        expect(Number(slow[bar]!.value)).toBeCloseTo(average, 6);
      }
    }
  });

  test("surrounds the bar's close with its order book", async () => {
    const run = runs[0]!;
    const closes = new Map(
      (await rowsOf(world, run, "bars")).map((bar) => [bar.ts_event, nanos(bar.close!)]),
    );
    for (const [, levels] of grouped(await rowsOf(world, run, "order_book"), "snapshot_id")) {
      expect(levels.length).toBe(10);
      expect(new Set(levels.map((level) => level.ts_event)).size).toBe(1);
      for (const level of levels) {
        const close = closes.get(level.ts_event)!;
        expect(level.side === "BID" ? nanos(level.price!) < close : nanos(level.price!) > close).toBe(true);
      }
    }
  });
});

test("a world shows every kind of order step, event and ending", async () => {
  await using world = await openSimulator({ ...worlds[0]!.options, cacheDir });
  const runs = await everyRun(world);
  const steps = new Set<string>();
  const types = new Set<string>();
  const kinds = new Set<string>();
  const venues = new Set<string>();
  for (const run of runs) {
    for (const order of await rowsOf(world, run, "orders")) {
      steps.add(`${order.kind} ${order.status}`);
      types.add(`${order.type} ${order.time_in_force}`);
      venues.add(order.venue!);
    }
    for (const event of await rowsOf(world, run, "events")) {
      kinds.add(event.kind!);
      if (event.payload !== "") expect(JSON.parse(event.payload!)).toBeTypeOf("object");
      if (event.kind === "account.order_rejected") expect(event.payload).toContain('"');
    }
  }
  expect([...steps].sort()).toEqual([
    "ACCEPTED ACCEPTED",
    "CANCELED CANCELED",
    "CANCEL_REQUESTED PENDING_CANCEL",
    "EXPIRED EXPIRED",
    "FILLED FILLED",
    "PARTIALLY_FILLED PARTIALLY_FILLED",
    "REJECTED REJECTED",
    "SUBMITTED SUBMITTED",
  ]);
  expect([...types].sort()).toEqual(["LIMIT DAY", "LIMIT GTC", "MARKET IOC", "STOP_LIMIT GTC"]);
  expect([...venues].sort()).toEqual(["SIMEX", "SIMEX-DARK"]);
  for (const kind of [
    "runtime.started",
    "runtime.stopped",
    "runtime.failed",
    "account.deposit",
    "account.order_rejected",
  ]) {
    expect([...kinds]).toContain(kind);
  }
  const [finished, , failed] = await world.runs("alpha-1").then((list) => list!);
  expect([finished!.status, failed!.status]).toEqual(["FINISHED", "FAILED"]);
  const seqs = await rowsOf(world, runs.at(-1)!, "fills");
  expect(BigInt(seqs[0]!.seq!) > 2n ** 63n).toBe(true);
});

test("the same seed gives the same bytes, another seed others, and a rendered world is used again", async () => {
  const small = { instances: 2, runs: 3, rows: 2_000, growing: true };
  const first = await mkdtemp(join(cacheDir, "first-"));
  const second = await mkdtemp(join(cacheDir, "second-"));
  const other = await mkdtemp(join(cacheDir, "other-"));
  await openSimulator({ ...small, seed: "golden", cacheDir: first });
  await openSimulator({ ...small, seed: "golden", cacheDir: second });
  await openSimulator({ ...small, seed: "silver", cacheDir: other });
  expect(await treeHash(first)).toBe(await treeHash(second));
  expect(await treeHash(first)).not.toBe(await treeHash(other));
  // changes only together with the render version in src/simulator/world/world.ts
  expect(await treeHash(first)).toBe("454dd814fc0df464f8bab1d4b197e119e5f4de1495e2fc1014f95ec7673396e7");
  await openSimulator({ ...small, seed: "golden", cacheDir: first });
  expect((await readdir(first)).length).toBe(1);
});

test("a torn or half-rendered world in the cache never counts", async () => {
  const dir = await mkdtemp(join(cacheDir, "torn-"));
  const options = { rows: 500, runs: 1, cacheDir: dir };
  await openSimulator(options);
  const whole = await treeHash(dir);
  const [key] = await readdir(dir);
  await truncate(join(dir, key!, "run-0", "bars.ndjson"), 100);
  await openSimulator(options);
  expect(await treeHash(dir)).toBe(whole);
  await rm(join(dir, key!, "world.json"));
  await openSimulator(options);
  expect(await treeHash(dir)).toBe(whole);
});

test("two openings at once render one world", async () => {
  const dir = await mkdtemp(join(cacheDir, "race-"));
  const opened = await Promise.all([1, 2, 3].map(() => openSimulator({ rows: 500, runs: 1, cacheDir: dir })));
  expect((await readdir(dir)).length).toBe(1);
  const lines = await Promise.all(
    opened.map(async (world) => linesOf(world, (await everyRun(world))[0]!, "events")),
  );
  expect(lines[0]).toEqual(lines[2]);
});

describe.skipIf(!requires("recordings")).each([
  { file: "btc-perp-1m-2022-01.csv.gz", columns: "timestamp,open,high,low,close,volume" },
  { file: "gbpusd-m1-bid-2012.csv.gz", columns: "timestamp,open,high,low,close" },
])("the first recorded bars of $file", ({ file, columns }) => {
  // test/all/real-bars.test.ts trades on all of them
  const bars = 5_000;

  test("come back value by value", async () => {
    const text = gunzipSync(await readFile(join(recordings, file))).toString();
    const lines = text.split("\n", bars + 1);
    expect(lines[0]).toBe(columns);
    const path = join(cacheDir, file);
    await writeFile(path, gzipSync(`${lines.join("\n")}\n`));
    await using world = await openSimulator({ bars: path, runs: 1, cacheDir });
    const [run] = await everyRun(world);
    const rows = await rowsOf(world, run!, "bars");
    const ours = rows.map((row) =>
      [row.ts_event, row.ts_open, row.open, row.high, row.low, row.close, row.volume].join(),
    );
    const theirs = lines.slice(1).map((line) => {
      const [timestamp, open, high, low, close, volume = ""] = line.split(",");
      const closed = parseTime(timestamp!);
      const values = [open, high, low, close, volume].map((value) => canonical(value!));
      return [closed, closed - 60_000_000_000n, ...values].join();
    });
    expect(ours).toEqual(theirs);
    expect((await rowsOf(world, run!, "fills")).length).toBeGreaterThan(100);
    const last = (await rowsOf(world, run!, "equity")).at(-1)!;
    expect(nanos(last.equity!)).toBe(nanos(last.cash!) + nanos(last.position_value!));
  });
});

function canonical(text: string): string {
  return text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text;
}

test.each([
  ["a missing column", "timestamp,open,high,low\n2022-01-01 00:00:00,1,1,1\n", "invalid_argument", /close/],
  [
    "a price that is no number",
    "timestamp,open,high,low,close\n2022-01-01 00:00:00,1,x,1,1\n",
    "invalid_argument",
    /high.*x/,
  ],
  [
    "a price with ten decimals",
    "timestamp,open,high,low,close\n2022-01-01 00:00:00,1,1,1,0.0000000001\n",
    "value_out_of_range",
    /0\.0000000001/,
  ],
  [
    "a time that does not rise",
    "timestamp,open,high,low,close\n2022-01-01 00:01:00,1,1,1,1\n2022-01-01 00:01:00,1,1,1,1\n",
    "invalid_argument",
    /60 seconds/,
  ],
  [
    "a time that is none",
    "timestamp,open,high,low,close\nyesterday,1,1,1,1\n",
    "invalid_argument",
    /yesterday/,
  ],
  ["no bars", "timestamp,open,high,low,close\n", "invalid_argument", /no bars/],
])("a file of bars with %s is refused", async (_what, text, code, message) => {
  const dir = await mkdtemp(join(cacheDir, "bad-"));
  const file = join(dir, "bad.csv.gz");
  await writeFile(file, gzipSync(text));
  await expect(openSimulator({ bars: file, cacheDir: dir })).rejects.toMatchObject({
    code,
    message: expect.stringMatching(message),
    place: expect.objectContaining({ file }),
  });
  expect((await readdir(dir)).length).toBe(1);
});

// hourly bars were labelled as one-minute bars
test("bars of a file have the length that the file has, gaps or not", async () => {
  const dir = await mkdtemp(join(cacheDir, "hourly-"));
  const file = join(dir, "bars.csv");
  const times = ["01:00", "03:00", "04:00"].map((time) => `2022-01-01 ${time}:00,100,101,99,100\n`);
  await writeFile(file, `timestamp,open,high,low,close\n${times.join("")}`);
  await using world = await openSimulator({ bars: file, runs: 1, cacheDir: dir });
  const [run] = await everyRun(world);
  const rows = await rowsOf(world, run!, "bars");
  const lengths = rows.map((row) => BigInt(row.ts_event!) - BigInt(row.ts_open!));
  expect(lengths).toEqual([3_600_000_000_000n, 3_600_000_000_000n, 3_600_000_000_000n]);
  expect(rows[0]!.interval_ns).toBe("3600000000000");
  expect(rows[0]!.resource_key).toMatch(/\.1h$/);
});

test("a file of bars that is missing or no gzip is refused by name", async () => {
  const dir = await mkdtemp(join(cacheDir, "bad-"));
  const file = join(dir, "bars.csv.gz");
  await expect(openSimulator({ bars: file, cacheDir: dir })).rejects.toMatchObject({
    code: "invalid_argument",
  });
  await writeFile(file, "timestamp,open,high,low,close\n");
  await expect(openSimulator({ bars: file, cacheDir: dir })).rejects.toMatchObject({
    code: "invalid_argument",
  });
});
