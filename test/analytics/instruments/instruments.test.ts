import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readInstruments } from "../../../src/analytics/instruments/read-instruments.ts";
import { resolveInstruments } from "../../../src/analytics/instruments/resolve-instruments.ts";
import type { RunFacts } from "../../../src/analytics/instruments/run-facts.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-instruments-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

async function read(text: string) {
  const file = join(folder, "instruments.yaml");
  await writeFile(file, text);
  return await readInstruments(file);
}

const rows = { rows: 2n, firstSeq: 1n };
const minute = 60_000_000_000n;

const facts: RunFacts = {
  run: { instanceId: "alpha-1", runId: "r1" },
  markets: [
    { symbol: "BTC", venue: "DARK", ...rows },
    { symbol: "BTC", venue: "X", ...rows },
  ],
  currencies: [{ currency: "USD", ...rows }],
  bars: [{ symbol: "BTC", venue: "X", intervalNs: minute, ...rows }],
};

describe("an instruments file", () => {
  test("is read with exact multipliers", async () => {
    const { entries } = await read(
      "- symbol: BTC*\n  multiplier: 0.001\n- symbol: '*'\n  venue: D?RK\n  multiplier: '0.000000000000000001'\n  kind: inverse\n  bars: { venue: X, interval: 1m }\n",
    );
    expect(entries).toEqual([
      { symbol: "BTC*", venue: "*", multiplier: "0.001", kind: "linear" },
      {
        symbol: "*",
        venue: "D?RK",
        multiplier: "0.000000000000000001",
        kind: "inverse",
        bars: { venue: "X", interval: minute },
      },
    ]);
  });

  test.each([
    [
      "- symbol: BTC\n  multplier: 5\n",
      2,
      3,
      "there is no key multplier in entry 1",
      "Did you mean multiplier?",
    ],
    [
      "- symbol: BTC\n  kind: invers\n",
      2,
      9,
      "kind of entry 1 must be linear or inverse, not invers",
      "Did you mean inverse?",
    ],
    [
      "- symbol: BTC\n  multiplier: 0\n",
      2,
      15,
      "multiplier of entry 1 must be a decimal number above zero",
      "",
    ],
    [
      "- symbol: BTC\n  multiplier: 1e-7\n",
      2,
      15,
      "multiplier of entry 1 must be a decimal number above zero",
      "in quotes",
    ],
    ["- symbol: BTC\n  bars: { interval: 1 }\n", 2, 21, "bars.interval of entry 1 must be", ""],
    ["- venue: X\n", 1, 3, "symbol of entry 1 is missing", "symbol: BTCUSD-PERP"],
    ["- symbol: '[a]'\n", 1, 11, "has a special character other than * and ?", ""],
    ["symbol: BTC\n", 1, 1, "the file must be a list of instruments", ""],
    ["", 1, 1, "the file is empty", "docs/instruments.md"],
  ])("that is wrong is told with line, column and remedy: %j", async (text, line, column, message, hint) => {
    const error = await read(text).then(
      () => null,
      (thrown: unknown) => thrown as { code: string; place: object; message: string; hint: string },
    );
    expect(error).toMatchObject({ code: "invalid_argument", place: { line, column } });
    expect(error!.message).toContain(message);
    expect(error!.hint).toContain(hint);
  });
});

describe("the instruments of a run", () => {
  test("are linear with the only currency and the only bars, all venues of a symbol together", () => {
    const { instruments, taken } = resolveInstruments(facts, null);
    expect(instruments).toEqual([
      {
        symbol: "BTC",
        venues: ["DARK", "X"],
        currency: "USD",
        multiplier: { value: 1n, scale: 0 },
        kind: "linear",
        bars: { symbol: "BTC", venue: "X", intervalNs: minute },
      },
    ]);
    expect(taken).toEqual(["BTC at DARK, X: linear, multiplier 1, USD, bars of BTC, 1m at X (assumed)"]);
  });

  test("are what the first matching entry says, and apart where the file tells venues apart", async () => {
    const file = await read(
      "- symbol: BTC\n  venue: DARK\n  multiplier: 0.10\n- symbol: '*'\n  currency: EUR\n",
    );
    const run = resolveInstruments(facts, file);
    expect(run.taken).toEqual([
      expect.stringMatching(
        /^BTC at DARK: linear, multiplier 0\.1, USD, bars of BTC, 1m at X \(entry 1 of .*; assumed: currency and bars\)$/,
      ),
      expect.stringMatching(/^BTC at X: linear, multiplier 1, EUR, .* \(entry 2 of .*; assumed: bars\)$/),
    ]);
    expect(run.of("BTC", "X")).toBe(run.instruments[1]);
  });

  test("have no currency that is one of the equity's in other letters", async () => {
    const file = await read("- symbol: BTC\n  currency: usd\n");
    expect(() => resolveInstruments(facts, file)).toThrow(
      "the instruments file has BTC traded in usd, but the equity rows are in USD",
    );
  });

  const other = { symbol: "BTC", venue: "Y", intervalNs: minute, rows: 5n, firstSeq: 7n };
  const currencies = [...facts.currencies, { currency: "EUR", rows: 1n, firstSeq: 9n }];
  test.each([
    [{ currencies }, "equity", "USD (2 rows from seq 1) and EUR (1 row from seq 9)", "Set `currency` of BTC"],
    [{ currencies: [] }, "equity", "there are no equity rows", "Set `currency` of BTC"],
    [{ bars: [...facts.bars, other] }, "bars", "1m at X (2 rows from seq 1) and 1m at Y", "Set `bars.venue`"],
    [
      { bars: [...facts.bars, { ...other, venue: "X", intervalNs: 5n * minute }] },
      "bars",
      "5m at X (5 rows from seq 7)",
      "Set `bars.interval`",
    ],
  ])("that are not clear are an error with the rows and the key to set: %#", (more, table, message, hint) => {
    let error: unknown;
    try {
      resolveInstruments({ ...facts, ...more }, null);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toMatchObject({
      code: "invalid_argument",
      place: { instance: "alpha-1", run: "r1", table },
      message: expect.stringContaining(message),
      hint: expect.stringContaining(hint),
    });
  });
});
