import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunRef } from "../../src/model/source.ts";
import { openSimulator, type Simulator, type SimulatorOptions } from "../../src/simulator/simulator.ts";
import { requires } from "../fixtures/command/requirement.ts";
import { bookBreaks, rowsOf } from "../fixtures/source/book-check.ts";
import { btc, writeFirstBars } from "../fixtures/source/recorded-bars.ts";

const hourMs = 3_600_000;
let cacheDir: string;

beforeAll(async () => {
  cacheDir = await mkdtemp(join(tmpdir(), "simulator-books-"));
});
afterAll(async () => {
  await rm(cacheDir, { recursive: true, force: true });
});

type Books = Pick<SimulatorOptions, "accounting" | "currencies" | "symbols" | "transfers" | "fundingMs">;

const moves = [
  { transfers: 0, fundingMs: 0 },
  { transfers: 7, fundingMs: hourMs },
];
// any three of the four choices in all their combinations: the fourth goes by them
const someBooks: Books[] = (["spot", "margin"] as const).flatMap((accounting, first) =>
  [["USD"], ["USD", "EUR"]].flatMap((currencies, second) =>
    [1, 3].map((symbols, third) => ({
      ...{ accounting, currencies, symbols },
      ...moves[(first + second + third) % 2]!,
    })),
  ),
);

async function runsOf(world: Simulator): Promise<RunRef[]> {
  const runs: RunRef[] = [];
  for (const { instanceId } of await world.instances()) runs.push(...(await world.runs(instanceId))!);
  return runs;
}

test.each(someBooks)(
  "the books hold at every point: $accounting, $currencies, $symbols symbols, $transfers transfers",
  async (books) => {
    await using world = await openSimulator({ ...books, cacheDir, rows: 3_000, runs: 3, failed: 3 });
    const runs = await runsOf(world);
    expect(runs).toHaveLength(3);
    for (const run of runs) {
      expect(await bookBreaks(world, run, books.accounting)).toEqual([]);
      const { currencies } = books;
      const [points, bars] = [await rowsOf(world, run, "equity"), await rowsOf(world, run, "bars")];
      const byCurrency = Map.groupBy(points, ({ currency }) => currency!);
      const bySymbol = Map.groupBy(bars, ({ symbol }) => symbol!);
      expect([...byCurrency.keys()].sort()).toEqual([...currencies].sort());
      expect(bySymbol.size).toBe(books.symbols);
      // a point in every currency at every bar of the first instrument; the others lack a bar now and then
      const counts = [...bySymbol.values()].map(({ length }) => length).sort((a, b) => b - a);
      for (const { length } of byCurrency.values()) expect(length).toBe(counts[0]);
      for (const count of counts.slice(1)) expect(count).toBeLessThan(counts[0]!);
      const quoted = new Map(
        (await rowsOf(world, run, "fills")).map((fill) => [fill.symbol, fill.fee_currency]),
      );
      const expected = [...bySymbol.keys()].map((symbol) => {
        const number = Number(/-(\d+)$/.exec(symbol)?.[1] ?? 1);
        return [symbol, currencies[(number - 1) % currencies.length]] as const;
      });
      expect(quoted).toEqual(new Map(expected));
    }
  },
);

describe("books with everything at once", () => {
  const books = { accounting: "margin", currencies: ["USD", "EUR"], symbols: 3, transfers: 9 } as const;

  test("hold over days, with fills of a given number, and for runs that have a template's rows", async () => {
    const days = { ...books, fundingMs: 8 * hourMs, cacheDir, runs: 1 };
    await using long = await openSimulator({ ...days, rows: 60_000, transfers: 40 });
    const [run] = await runsOf(long);
    expect(await bookBreaks(long, run!, "margin")).toEqual([]);
    const windows = (await rowsOf(long, run!, "metrics")).map(
      ({ window, currency }) => `${window} ${currency}`,
    );
    expect(new Set(windows)).toEqual(new Set(["day USD", "day EUR", "run USD", "run EUR"]));

    await using counted = await openSimulator({ ...days, fills: 3_001 });
    const [many] = await runsOf(counted);
    expect(await bookBreaks(counted, many!, "margin")).toEqual([]);
    expect(await rowsOf(counted, many!, "fills")).toHaveLength(3_001);

    await using moved = await openSimulator({ ...days, rows: 4_000, runs: 5, templates: 2 });
    for (const other of await runsOf(moved)) expect(await bookBreaks(moved, other, "margin")).toEqual([]);
  });

  test("have as many transfers as asked for, and every kind of event, with the sign that the contract gives", async () => {
    await using world = await openSimulator({ ...books, fundingMs: hourMs, cacheDir, runs: 1, rows: 15_000 });
    const [run] = await runsOf(world);
    const events = (await rowsOf(world, run!, "events")).filter(({ amount }) => amount !== "");
    const signs = new Map<string, Set<number>>();
    for (const { kind, amount } of events) {
      signs.set(kind!, (signs.get(kind!) ?? new Set()).add(Math.sign(Number(amount))));
    }
    expect(signs.get("account.deposit")).toEqual(new Set([1]));
    expect(signs.get("account.withdrawal")).toEqual(new Set([-1]));
    expect(signs.get("account.funding")).toEqual(new Set([1, -1]));
    expect(signs.get("account.adjustment")).toEqual(new Set([1, -1]));
    expect(signs.get("account.interest")).toEqual(new Set([1]));
    for (const currency of books.currencies) {
      const transfers = events.filter(
        (event) => event.currency === currency && /deposit|withdrawal/.test(event.kind!),
      );
      // and the deposit that the run begins with
      expect(transfers).toHaveLength(1 + books.transfers);
    }
    // funding is rate × value of the position that it names, at the close it names, and long positions pay it
    for (const { kind, payload, amount } of events) {
      if (kind !== "account.funding") continue;
      const { rate, quantity, mark } = JSON.parse(payload!) as Record<string, string>;
      expect(Number(amount)).toBeCloseTo(-Number(rate) * Number(quantity) * Number(mark), 7);
    }
  });

  test("are the same for the same seed, others for another, and others for each option", async () => {
    const common = { ...books, fundingMs: hourMs, cacheDir, runs: 1, rows: 2_000, edge: 1 };
    const hashes = async (options: Partial<SimulatorOptions>): Promise<string> => {
      const dir = await mkdtemp(join(cacheDir, "again-"));
      await using world = await openSimulator({ ...common, ...options, cacheDir: dir });
      const facts = await world.facts((await runsOf(world))[0]!, {}, undefined, { withHash: true });
      return [...facts!.values()].map(({ rowHash }) => String(rowHash)).join();
    };
    const first = await hashes({});
    expect(await hashes({})).toBe(first);
    for (const other of [
      { seed: "2" },
      { accounting: "spot" as const },
      { currencies: ["USD"] },
      { symbols: 2 },
      { transfers: 3 },
      { fundingMs: 0 },
      { edge: 0 },
    ]) {
      expect(await hashes(other)).not.toBe(first);
    }
  });
});

test("a world with every option at its default is the world without any", async () => {
  const dir = await mkdtemp(join(cacheDir, "default-"));
  const small = { cacheDir: dir, seed: "7", instances: 2, runs: 3, rows: 4_000, failed: 3 };
  const defaults = { symbols: 1, currencies: ["USD"], accounting: "spot" as const, edge: 0, transfers: 0 };
  await using world = await openSimulator({ ...small, ...defaults, fundingMs: 0, bookFaults: [] });
  const [first, , failed] = await runsOf(world);
  // as rendered before there were these options
  expect((await world.runs("alpha-1"))![0]!.storageVersion).toBe("64058eb70ab7-3704");
  const hashes = async (run: RunRef) =>
    Object.fromEntries(
      [...(await world.facts(run, {}, undefined, { withHash: true }))!].map(([table, { rowHash }]) => [
        table,
        String(rowHash),
      ]),
    );
  expect(await hashes(first!)).toEqual({
    fills: "2580883546904357078032",
    orders: "5664710066076702861274",
    bars: "3895332718863422682714",
    order_book: "7493891547631721969457",
    factors: "11040508787213616033706",
    events: "185669741004368770599",
    equity: "3673289414563623634718",
    metrics: "50496808971986465698",
  });
  expect(await hashes(failed!)).toEqual({
    fills: "1737227000309423662759",
    orders: "3940816090216108299149",
    bars: "2192879012030608081172",
    order_book: "4299627591995185509017",
    factors: "6608016226569139905624",
    events: "100246693193666547411",
    equity: "2263084284563423692017",
    metrics: "42688308943331081846",
  });
});

test.skipIf(!requires("recordings"))(
  "an edge makes the strategy win on the recorded bars, with drawdowns and recoveries",
  async () => {
    const bars = join(cacheDir, "week.csv.gz");
    writeFirstBars(btc, 7 * 24 * 60, bars);
    await using world = await openSimulator({ bars, edge: 10, runs: 1, cacheDir });
    const [run] = await runsOf(world);
    const equity = (await rowsOf(world, run!, "equity")).map((point) => Number(point.equity));
    expect(equity.at(-1)! / 1_000_000 - 1).toBeGreaterThan(0.005);
    const drawdowns: number[] = [];
    let peak = 1_000_000;
    let deepest = 0;
    for (const value of equity) {
      deepest = Math.min(deepest, value / peak - 1);
      if (value < peak) continue;
      if (deepest < 0) drawdowns.push(deepest);
      deepest = 0;
      peak = value;
    }
    // each of these was recovered from
    expect(drawdowns.length).toBeGreaterThan(20);
    expect(Math.min(...drawdowns)).toBeLessThan(-0.001);
    expect(await bookBreaks(world, run!, "spot")).toEqual([]);
  },
);

test.each([
  ["symbols", { symbols: 0 }],
  ["transfers", { transfers: -1 }],
  ["currencies", { currencies: [] }],
  ["currencies", { currencies: ["USD", "USD"] }],
  ["currencies", { currencies: ["U$D"] }],
  ["edge", { edge: 0.001 }],
  ["edge", { edge: 2_000 }],
  ["funding", { fundingMs: 90_000 }],
])("an option %s out of its range is refused: %j", async (name, options) => {
  await expect(openSimulator({ cacheDir, ...options })).rejects.toMatchObject({
    code: "invalid_argument",
    message: expect.stringContaining(name),
  });
});
