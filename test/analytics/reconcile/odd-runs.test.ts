// @module-tag slow
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { InstrumentsFile } from "../../../src/analytics/instruments/read-instruments.ts";
import { type ReconcileOptions, reconcile } from "../../../src/analytics/reconcile/reconcile.ts";
import type { ReconciledRun } from "../../../src/analytics/reconcile/reconcile-report.ts";
import { type Archive, openArchive } from "../../../src/archive/archive.ts";
import { archiveRun } from "../../../src/extract/run/archive-run.ts";
import { RunvaultError } from "../../../src/model/error.ts";
import type { HistorySource, RunRef } from "../../../src/model/source.ts";
import { naturalOrder } from "../../../src/model/text/natural-order.ts";
import { wallClock } from "../../../src/model/time.ts";
import { openSimulator, type Simulator } from "../../../src/simulator/simulator.ts";
import { add, type EditedTables, editedWorld } from "../../fixtures/archive/edited-world.ts";
import { reconciled } from "../../fixtures/archive/reconciled-world.ts";
import { sharedDuckDB } from "../../fixtures/archive/shared-duckdb.ts";
import { nanos } from "../../fixtures/source/book-check.ts";
import { quickRetry } from "../../fixtures/source/quick-retry.ts";

let dir: string;
let world: Simulator;
let run: RunRef;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "runvault-odd-"));
  world = await openSimulator({ runs: 1, failed: 0, rows: 3_000, transfers: 2, cacheDir: dir });
  run = (await world.runs("alpha-1"))![0]!;
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await rm(dir, { recursive: true, force: true });
});

const options: ReconcileOptions = {
  ...{ instruments: null, tolerance: null, memoryLimitMb: 512 },
  accounting: "auto",
  order: "auto",
};

async function edited(
  edit: (tables: EditedTables, summary: Record<string, string>) => void,
  more: Partial<ReconcileOptions> = {},
): Promise<ReconciledRun> {
  return await reconciled(dir, await editedWorld(world, run, edit), run, more);
}

async function archive(source: HistorySource, more: object = {}): Promise<Archive> {
  const into = await openArchive(join(dir, `archive-${crypto.randomUUID()}`), { create: true, ...more });
  await archiveRun({
    ...{
      source,
      archive: into,
      run,
      clock: wallClock,
      retry: quickRetry(),
      tool: "test",
      duckdb: sharedDuckDB,
    },
    signal: new AbortController().signal,
    settings: { segmentBytes: 8_000_000, sliceRows: 50_000, concurrency: 2 },
  });
  return into;
}

function verdicts({ checks }: ReconciledRun): string[] {
  return checks.map(({ verdict }) => verdict);
}

const allHold = Array(8).fill("HOLDS");

describe("tables that are not there, or not proven", () => {
  const refusing = (code: "history_unavailable" | "malformed_row") =>
    editedWorld(world, run, () => {}, {
      refuses: ({ table }) => (table === "fills" ? new RunvaultError(code, "no fills") : undefined),
    });

  test("what is not proven is refused, and said at the top where it is allowed", async () => {
    const into = await archive(await refusing("malformed_row"));
    await expect(reconcile(into, [run], options)).rejects.toMatchObject({
      code: "incomplete",
      place: { table: "fills" },
    });
    const { report, shortfall } = await reconcile(into, [run], { ...options, allowIncomplete: true });
    expect(report.runs[0]!.checks[1]).toMatchObject({ verdict: "NOT CHECKED" });
    expect(report.runs[0]!.checks[5]).toMatchObject({ verdict: "NOT CHECKED" });
    expect(shortfall.withheld.map(({ table }) => table)).toEqual(["fills"]);
  });

  test("a table that was not archived leaves its checks unchecked, and the others as they are", async () => {
    const into = await openArchive(join(dir, "some-tables"), { create: true });
    await archiveRun({
      ...{ source: world, archive: into, run, clock: wallClock, retry: quickRetry(), tool: "test" },
      ...{ duckdb: sharedDuckDB, tables: ["fills", "equity", "bars", "orders"] },
      signal: new AbortController().signal,
      settings: { segmentBytes: 8_000_000, sliceRows: 50_000, concurrency: 2 },
    });
    const found = (await reconcile(into, [run], options)).report.runs[0]!;
    expect(verdicts(found)).toEqual([
      ...["HOLDS", "NOT CHECKED", "NOT CHECKED", "NOT CHECKED"],
      ...["HOLDS", "HOLDS", "NOT CHECKED", "NOT CHECKED"],
    ]);
    expect(found.checks[1]!.reason).toContain("events was not archived");
    expect(found).toMatchObject({ verdict: "NOT CHECKED", accounting: null, costs: null, fillOrder: null });
  });
});

describe("few rows", () => {
  test("no equity: nothing but the orders and counts is checked", async () => {
    const found = await edited((tables) => {
      tables.equity = [];
    });
    expect(found.checks.filter(({ verdict }) => verdict === "BREAKS")).toEqual([]);
    for (const number of [1, 2, 3, 4, 5, 7])
      expect(found.checks[number - 1]).toMatchObject({
        verdict: "NOT CHECKED",
        reason: expect.stringContaining("no equity points"),
      });
    expect(found.checks[5]!.verdict).toBe("HOLDS");
  });

  test("an amount that no point has: what needs it is not checked, and the reason names it", async () => {
    const found = await edited((tables) => {
      tables.equity = tables.equity.map((point) => ({ ...point, position_value: "" }));
    });
    for (const number of [1, 2, 3, 4, 5])
      expect(found.checks[number - 1]).toMatchObject({
        verdict: "NOT CHECKED",
        reason: expect.stringContaining("the equity points have no position_value"),
      });
    expect(found.checks[5]!.verdict).toBe("HOLDS");
  });

  test("an amount that one point lacks is an error", async () => {
    const lacking = edited((tables) => {
      tables.equity[1] = { ...tables.equity[1]!, cash: "" };
    });
    await expect(lacking).rejects.toMatchObject({ code: "malformed_row" });
  });

  test("one point: it is checked, and what comes after it is not", async () => {
    const found = await edited((tables, summary) => {
      tables.equity = tables.equity.slice(0, 1);
      tables.metrics = [];
      summary.final_equity = tables.equity[0]!.equity!;
    });
    for (const number of [2, 3, 4])
      expect(found.checks[number - 1]).toMatchObject({
        ...{ verdict: "NOT CHECKED", rows: 1, breaks: 0 },
        reason: expect.stringMatching(/fills and events come after the last point of their account/),
      });
    expect(found.checks[6]).toMatchObject({ verdict: "NOT CHECKED", reason: "there are no rows to check" });
  });

  test("a symbol without bars: it is told which, and what needs no marks is checked", async () => {
    const found = await edited((tables) => {
      tables.bars = [];
    });
    expect(found.checks[1]).toMatchObject({
      verdict: "NOT CHECKED",
      reason: expect.stringContaining("no bars of BTC-PERP"),
    });
    expect(found.checks[0]!.verdict).toBe("HOLDS");
    expect(found.checks[4]!.verdict).toBe("NOT CHECKED");
  });

  test("points before a symbol's first bar are marked at its last fill, and counted", async () => {
    const found = await edited(
      (tables) => {
        tables.bars = tables.bars.slice(100);
        const first = BigInt(tables.bars[0]!.ts_event!);
        let [quantity, price] = [0n, 0n];
        let fill = 0;
        const booked = tables.fills.toSorted((a, b) =>
          a.ts_event === b.ts_event
            ? naturalOrder(a.trade_id!, b.trade_id!)
            : Number(BigInt(a.ts_event!) - BigInt(b.ts_event!)),
        );
        for (const point of tables.equity) {
          if (BigInt(point.ts_event!) >= first) break;
          for (; fill < booked.length; fill++) {
            const row = booked[fill]!;
            if (BigInt(row.ts_event!) > BigInt(point.ts_event!)) break;
            quantity += (row.side === "BUY" ? 1n : -1n) * nanos(row.quantity!);
            price = nanos(row.price!);
          }
          const off = (quantity * price) / 1_000_000_000n - nanos(point.position_value!);
          for (const column of ["position_value", "equity", "unrealized"]) add(point, column, off);
        }
        // what the product has beyond the ninth decimal is cut off here
      },
      { tolerance: { value: 1n, scale: 9 } },
    );
    expect(found.checks.slice(0, 5).map(({ verdict }) => verdict)).toEqual(allHold.slice(0, 5));
    expect(found.checks[1]!.notes.join()).toMatch(/points come before a symbol's first bar/);
  });
});

test("an inverse instrument balances within a billionth a fill, and breaks beyond", async () => {
  const inverse: InstrumentsFile = {
    file: "instruments.yaml",
    entries: [{ symbol: "*", venue: "*", currency: "USD", multiplier: "100", kind: "inverse" }],
  };
  // what the fills come to at the marks, worked out here in doubles and cut to nine decimals
  const rebooked = (tables: EditedTables) => {
    let [fill, bar, move, quantity, cash, close] = [0, 0, 0, 0, 0, 0];
    for (const point of tables.equity) {
      const ts = BigInt(point.ts_event!);
      for (; fill < tables.fills.length && BigInt(tables.fills[fill]!.ts_event!) <= ts; fill++) {
        const { side, quantity: size, price, fee } = tables.fills[fill]!;
        const signed = (side === "BUY" ? 1 : -1) * Number(size);
        cash += (signed * 100) / Number(price) - Number(fee);
        quantity = Math.round((quantity + signed) * 1e9) / 1e9;
      }
      for (; bar < tables.bars.length && BigInt(tables.bars[bar]!.ts_event!) <= ts; bar++)
        close = Number(tables.bars[bar]!.close);
      for (; move < tables.events.length && BigInt(tables.events[move]!.ts_event!) <= ts; move++) {
        const { kind, amount } = tables.events[move]!;
        if (kind!.startsWith("account.") && amount !== "") cash += Number(amount);
      }
      const value = close === 0 ? 0 : (-quantity * 100) / close;
      const text = (number: number) => {
        const digits = number.toFixed(9).replace(/\.?0+$/, "");
        return digits === "-0" ? "0" : digits;
      };
      point.cash = text(cash);
      point.position_value = text(value);
      point.equity = "0";
      add(point, "equity", nanos(point.cash) + nanos(point.position_value));
    }
  };
  const check = async (edit: (tables: EditedTables) => void) => {
    const source = await editedWorld(world, run, edit);
    return (await reconciled(dir, source, run, { instruments: inverse })).checks;
  };
  const sound = await check(rebooked);
  expect(sound[1]).toMatchObject({ verdict: "HOLDS" });
  expect(sound[1]!.rows).toBeGreaterThan(100);
  const wrong = await check((tables) => {
    rebooked(tables);
    const point = tables.equity.at(-1)!;
    for (const column of ["cash", "equity"]) add(point, column, 2n * BigInt(tables.fills.length));
  });
  expect(wrong[1]).toMatchObject({ verdict: "BREAKS", breaks: 1 });
});

test("a widened archive balances to the last digit", async () => {
  const wide = "DECIMAL(38,18)";
  const types = {
    fills: { price: wide, quantity: wide, fee: wide },
    bars: { open: wide, high: wide, low: wide, close: wide },
    orders: { price: wide, quantity: wide, filled_quantity: wide, average_price: wide },
    equity: { cash: wide, position_value: wide, equity: wide, realized: wide, unrealized: wide },
    events: { amount: wide },
  };
  const into = await archive(world, { exactTypes: types });
  expect(into.exactTypes("fills").price).toBe(wide);
  const found = (await reconcile(into, [run], options)).report.runs[0]!;
  expect(verdicts(found)).toEqual(allHold);
});

test("a run that goes on balances up to its horizon, and its summary waits", async () => {
  const into = await archive(await editedWorld(world, run, () => {}, { final: false }));
  const found = (await reconcile(into, [run], options)).report.runs[0]!;
  expect(found.checks.slice(0, 6).map(({ verdict }) => verdict)).toEqual(allHold.slice(0, 6));
  expect(found.checks[7]).toMatchObject({
    verdict: "NOT CHECKED",
    reason: expect.stringContaining("the run is still growing"),
  });
});

test("accounts and portfolios are kept apart, whatever their names", async () => {
  const names = { account: `<script>alert("1")</script>`, portfolio: `it's \\ ; "x"` };
  const found = await edited((tables, summary) => {
    for (const table of ["fills", "orders", "events", "equity", "metrics"] as const) {
      const copies = tables[table].map((row) => ({ ...row }));
      const last = BigInt(copies.length + 10);
      for (const [index, row] of copies.entries()) {
        Object.assign(row, names, { seq: String(last + BigInt(index) * 2n + 1_000_000n) });
        if (row.client_order_id !== undefined) row.client_order_id = `<b>${row.client_order_id}`;
      }
      tables[table].push(...copies);
    }
    summary.orders = String(2 * Number(summary.orders));
    summary.fills = String(2 * Number(summary.fills));
    add(summary, "fees", nanos(summary.fees!));
  });
  expect(verdicts(found)).toEqual(allHold);
  expect(found.checks[1]!.rows).toBe(found.checks[0]!.rows);
});
