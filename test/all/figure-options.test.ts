import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readInstruments } from "../../src/analytics/instruments/read-instruments.ts";
import { metricsSchema } from "../../src/analytics/metrics/metrics-document.ts";
import { openQuery } from "../../src/analytics/query/query.ts";
import { openArchive } from "../../src/archive/archive.ts";
import { formatRun } from "../../src/model/run-argument.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { type DegenerateArchive, degenerateArchive } from "../fixtures/degenerate/degenerate-archive.ts";
import { at, bars, equity, fill } from "../fixtures/degenerate/degenerate-rows.ts";
import { textOf } from "../fixtures/degenerate/page-text.ts";

let archive: DegenerateArchive;
let run: string;
beforeAll(async () => {
  const own = fill(10.5, "BUY", 51);
  const order = (["SUBMITTED", "ACCEPTED", "FILLED"] as const).map((kind, step) => ({
    ...own,
    ...{ kind, status: kind, type: "MARKET", arrival_price: 50, filled_quantity: step === 2 ? 1 : 0 },
    ...{ average_price: step === 2 ? 51 : 0, seq: step + 1 },
  }));
  // ten seconds ahead of the order
  const book = (["BID", "ASK"] as const).map((side) => ({
    ...{ ts_event: at(10.5) - 10_000_000_000n, venue: "V", symbol: "X", snapshot_id: 1, level: 0, side },
    ...{ price: side === "BID" ? 49 : 51, quantity: 1 },
  }));
  const prices = Array.from({ length: 48 }, (_, index) => 50 + (index % 7));
  archive = await degenerateArchive({
    name: "two currencies, and bars of two venues",
    rows: {
      equity: [...equity([100, 101, 103]), ...equity([100, 101, 103], { currency: "EUR" })],
      fills: [own, fill(20, "SELL", 52, 1, { client_order_id: own.client_order_id! })],
      orders: order,
      order_book: book,
      bars: [...bars(prices), ...bars(prices, { venue: "W" })],
      factors: prices.map((price, index) => ({
        ...{ ts_event: at(index + 1), venue: "V", symbol: "X", portfolio: "core", factor: "signal" },
        value: (price * 31) % 17,
      })),
    },
    instruments: "- symbol: X\n  currency: EUR\n  multiplier: 10\n  bars: { venue: V }\n",
  });
  run = formatRun(archive.ref);
});
afterAll(() => archive[Symbol.asyncDispose]());

const command = (name: string, ...args: string[]) =>
  runInside([name, "--archive", archive.dir, "--instruments", archive.instruments!, ...args]);

async function section(name: string, ...args: string[]) {
  const { status, stdout, stderr } = await command("metrics", run, "--json", ...args);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  const document = metricsSchema.parse(JSON.parse(stdout));
  return { options: document.options, ...document.runs[0]!.sections.find((one) => one.name === name)! };
}

describe("--book-age", () => {
  const slippage = async (...args: string[]) => {
    const { conventions, groups, options } = await section("execution", ...args);
    const part = groups[0]!.parts.find(({ by }) => by === "slippage");
    return { conventions, mid: part!.figures.mid!, bookAge: options.bookAge };
  };

  test("is a minute, and stands in the convention of what rests on it", async () => {
    const { conventions, mid, bookAge } = await slippage();
    expect(bookAge).toBe("60s");
    expect(conventions).toContain("against books at most 60 s old");
    expect(mid).toMatchObject({ convention: expect.stringContaining("at most 60.0 s old"), n: 2 });
  });

  test("leaves out books that are older", async () => {
    const { conventions, mid, bookAge } = await slippage("--book-age", "5s");
    expect(bookAge).toBe("5s");
    expect(conventions).toContain("against books at most 5 s old");
    expect(mid).toEqual({ value: null, reason: "no book was recent enough" });
    expect((await slippage("--book-age", "10s")).mid).toMatchObject({ n: 2 });
    expect((await slippage("--book-age", "9999ms")).mid).toMatchObject({ value: null });
  });

  test.each(["5", "0s", "-5s", "2d", "soon", ""])("refuses %j", async (text) => {
    const { status, stderr } = await command("metrics", run, `--book-age=${text}`);
    expect({ status, isNamed: stderr.includes("--book-age") }).toEqual({ status: 2, isNamed: true });
  });
});

describe("--horizons", () => {
  test("are those that returns after factors are counted over, and stand in the convention", async () => {
    const { conventions, groups, options } = await section("factors", "--horizons", "12,2");
    expect(options.horizons).toEqual([2, 12]);
    expect(conventions).toContain("over 2, 12 bars");
    const keys = groups[0]!.parts.filter(({ by }) => by === "ic_through_time").map(({ key }) => key);
    expect(keys).toEqual(["signal 2 bars X V", "signal 12 bars X V"]);
  });

  test.each(["", "0", "1,1", "1,,5", "1.5", "x", "-1", "1000001", "1,2,3,4,5,6,7,8,9,10,11,12,13"])(
    "refuse %j",
    async (text) => {
      const { status, stderr } = await command("metrics", run, `--horizons=${text}`);
      expect({ status, isNamed: stderr.includes("--horizons") }).toEqual({ status: 2, isNamed: true });
    },
  );
});

test("the page says which age and which horizons it was made with", async () => {
  const out = join(archive.folder, "page.html");
  const { status, stderr } = await command(
    "report",
    run,
    "--out",
    out,
    "--book-age",
    "5s",
    "--horizons",
    "2",
  );
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  const page = textOf(await readFile(out, "utf8"));
  for (const said of ["--book-age 5s", "--horizons 2", "books at most 5 s old", "over 2 bars"])
    expect(page.includes(said), said).toBe(true);
});

describe("--instruments", () => {
  const args = "('alpha-1', '2022-01-01-001')";
  const sql = `SELECT account, currency, metric, order_type, value, reason FROM execution${args} ORDER BY ALL`;
  const factors = `SELECT * FROM factor_ic${args} ORDER BY ALL`;
  const asked = async (statement: string) =>
    JSON.parse((await command("query", statement, "--format", "json")).stdout) as Record<string, unknown>[];

  test("reach the macros of execution and factors, as they reach metrics", async () => {
    const rows = await asked(sql);
    expect(
      new Set(
        rows
          .filter(({ metric }) => metric !== "fees" && metric !== "rebates")
          .map(({ currency }) => currency),
      ),
    ).toEqual(new Set(["EUR"]));
    const of = (metric: string) => rows.find((row) => row.metric === metric && row.order_type !== null);
    expect(of("slippage_bar")).toMatchObject({ reason: null });
    const { groups } = await section("execution");
    const told = groups[0]!.parts.find(({ by }) => by === "slippage")!.figures.bar!;
    expect(of("slippage_bar")!.value).toBe(told.value);
    expect((await asked(factors)).filter(({ value }) => value !== null).length).toBeGreaterThan(0);
    const without = await runInside(["query", "--archive", archive.dir, sql, "--format", "json"]);
    expect(without.stdout).toContain("no row says which a symbol is traded in");
  });

  test("reach a later statement of one session, too", async () => {
    const instruments = await readInstruments(archive.instruments!);
    await using query = await openQuery(await openArchive(archive.dir), { instruments });
    const answer = async (statement: string) => {
      const rows: string[] = [];
      for await (const batch of (await query.run(statement)).batches()) rows.push(...batch.map(String));
      return rows;
    };
    const first = await answer(sql);
    expect(first.length).toBeGreaterThan(0);
    await answer(factors);
    expect(await answer(sql)).toEqual(first);
  });

  test("are in an exported file, whose macros answer alike", async () => {
    const file = join(archive.folder, "run.duckdb");
    const { status, stderr } = await command(
      "export",
      "--format",
      "duckdb",
      "--with-analytics",
      "--out",
      file,
    );
    expect(status, stderr).toBe(0);
    const instance = await DuckDBInstance.create(file, { threads: "1" });
    const connection = await instance.connect();
    const rows = async (statement: string) =>
      (await connection.runAndReadAll(`SELECT to_json(q) FROM (${statement}) q`))
        .getRows()
        .map(([row]) => String(row));
    const own = async (statement: string) =>
      (await asked(`SELECT to_json(q) AS row FROM (${statement}) q`)).map(({ row }) => String(row));
    expect(await rows(sql)).toEqual(await own(sql));
    expect(await rows(factors)).toEqual(await own(factors));
    connection.closeSync();
    instance.closeSync();
  });
});
