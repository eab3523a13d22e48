// @module-tag slow
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { exactOf } from "../../../src/analytics/instruments/instrument.ts";
import type { ReconcileOptions } from "../../../src/analytics/reconcile/reconcile.ts";
import type { Check } from "../../../src/analytics/reconcile/reconcile-report.ts";
import type { RunRef } from "../../../src/model/source.ts";
import { parseTime } from "../../../src/model/time.ts";
import { openSimulator, type Simulator } from "../../../src/simulator/simulator.ts";
import {
  add,
  double,
  type EditedRow,
  type EditedTables,
  editedWorld,
} from "../../fixtures/archive/edited-world.ts";
import { currenciesOf, reconciled } from "../../fixtures/archive/reconciled-world.ts";
import type { Manners } from "../../fixtures/source/array-source.ts";
import { nanos } from "../../fixtures/source/book-check.ts";

type Edit = (tables: EditedTables, summary: Record<string, string>) => void;

const hour = 3_600_000_000_000n;

let dir: string;
let world: Simulator;
let run: RunRef;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "runvault-attacked-rows-"));
  world = await openSimulator({ runs: 1, failed: 0, rows: 2_000, transfers: 4, cacheDir: dir });
  run = (await world.runs("alpha-1"))![0]!;
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await rm(dir, { recursive: true, force: true });
});

async function checksOf(
  edit: Edit,
  options: Partial<ReconcileOptions> = {},
  manners: Manners = {},
): Promise<readonly Check[]> {
  const source = await editedWorld(world, run, edit, manners);
  return (await reconciled(dir, source, run, options)).checks;
}

function earlier(row: EditedRow, time: bigint): void {
  for (const column of ["ts_event", "ts_init"]) row[column] = String(BigInt(row[column]!) - time);
}

/** A row of `orders` and its order's fills. */
function filledStep({ orders, fills }: EditedTables, kind: string): [EditedRow, EditedRow[]] {
  for (const step of orders) {
    const own = fills.filter((fill) => fill.client_order_id === step.client_order_id);
    const isLater = own.every(({ ts_event }) => BigInt(ts_event!) > BigInt(orders[0]!.ts_event!));
    if (step.kind === kind && own.length > 1 && isLater) return [step, own];
  }
  throw new Error(`no ${kind} with fills`);
}

test("rows that nobody touched balance, of a run whose times are known", async () => {
  const checks = await checksOf(() => {}, {}, { times: { started: 1n, ended: 2n } });
  expect(checks.map(({ verdict, reason }) => [verdict, reason])).toEqual(Array(8).fill(["HOLDS", null]));
});

describe("rows that leave every sum as it was break the one check that can tell:", () => {
  test.each<[string, number, string, Edit]>([
    [
      "a trade that is there twice, where another is lost",
      6,
      "trade_id of another fill",
      (tables) => {
        const [, [one, other]] = filledStep(tables, "FILLED");
        other!.trade_id = one!.trade_id!;
      },
    ],
    [
      "a fill of an order that the venue calls otherwise",
      6,
      "venue_order_id differs from the order's",
      ({ fills }) => {
        fills[5]!.venue_order_id = "V-of-another";
      },
    ],
    [
      "an order that was canceled when all of it was filled",
      6,
      "CANCELED, but filled completely",
      (tables) => {
        const [step] = filledStep(tables, "FILLED");
        step.kind = step.status = "CANCELED";
      },
    ],
    [
      "an order that is partly filled when all of it is",
      6,
      "PARTIALLY_FILLED, but filled completely",
      (tables) => {
        const [step] = filledStep(tables, "FILLED");
        step.kind = step.status = "PARTIALLY_FILLED";
      },
    ],
    [
      "a filled quantity ahead of its fills",
      6,
      "filled_quantity before its fills",
      (tables) => {
        const [step] = filledStep(tables, "PARTIALLY_FILLED");
        const accepted = tables.orders.find(
          ({ kind, client_order_id }) => kind === "ACCEPTED" && client_order_id === step.client_order_id,
        )!;
        step.ts_event = String(BigInt(accepted.ts_event!) + 1n);
      },
    ],
    [
      "a summary with another run's id",
      8,
      'run_id is "2022-01-02-001"',
      (_, summary) => {
        summary.run_id = "2022-01-02-001";
      },
    ],
    [
      "a figure of the run that ends before the run does",
      7,
      "total_return of the run",
      ({ metrics }) => {
        earlier(metrics.find(({ name }) => name === "total_return")!, hour / 4n);
      },
    ],
    [
      "a figure that is no number, where days would give none and points give one",
      7,
      "sharpe of the run",
      ({ metrics }) => {
        metrics.find(({ name }) => name === "sharpe")!.value = "NaN";
      },
    ],
  ])("%s", async (_, number, what, edit) => {
    const checks = await checksOf((tables, summary) => {
      edit(tables, summary);
      // recomputing figures takes longer than all other checks
      if (number < 7) tables.metrics = [];
    });
    expect(checks.filter(({ verdict }) => verdict !== "HOLDS").map((check) => check.number)).toEqual(
      number < 7 ? [number, 7] : [number],
    );
    expect(checks[number - 1]).toMatchObject({ verdict: "BREAKS", breaks: 1 });
    expect(checks[number - 1]!.first[0]!.what).toContain(what);
  });

  test("an order and its fills from before the run began", async () => {
    let started = 0n;
    const edit: Edit = ({ fills, orders, equity }) => {
      const id = fills[0]!.client_order_id;
      started = BigInt(equity[0]!.ts_event!) - 24n * hour;
      for (const row of [...fills, ...orders]) if (row.client_order_id === id) earlier(row, 48n * hour);
    };
    // which says when it begins
    await editedWorld(world, run, edit);
    const checks = await checksOf(edit, {}, { times: { started, ended: started + 72n * hour } });
    expect(checks[5]).toMatchObject({ verdict: "BREAKS" });
    expect(checks[5]!.notes.join()).toContain("before the run began");
  });
});

test("a backtest that ran long after its rows has times of another clock, and no break for it", async () => {
  const started = parseTime("2030-01-01T00:00:00Z");
  const checks = await checksOf(() => {}, {}, { times: { started, ended: started + hour } });
  expect(checks.map(({ verdict }) => verdict)).toEqual(Array(8).fill("HOLDS"));
  expect(checks[5]!.notes.join()).toContain("another clock");
});

test("a tolerance is of money: the summary's counts have none", async () => {
  const tolerance = exactOf("1");
  const checks = await checksOf(
    (_, summary) => {
      summary.orders = String(Number(summary.orders) + 1);
      add(summary, "fees", 1_000_000_000n);
    },
    { tolerance },
  );
  expect(checks[7]).toMatchObject({ verdict: "BREAKS", breaks: 1 });
  expect(checks[7]!.first[0]!.what).toContain("orders is");
});

describe("what no row can tell is not checked:", () => {
  test("fills behind the last point of their own portfolio, though another has later ones", async () => {
    const checks = await checksOf(({ equity, fills }) => {
      const points = equity.map((row) => ({ ...row }));
      const last = BigInt(equity.at(-1)!.seq!);
      equity.splice(
        equity.findLastIndex(({ ts_event }) => BigInt(ts_event!) < BigInt(fills.at(-1)!.ts_event!)) - 10,
      );
      for (const [index, row] of points.entries()) {
        const nothing = { cash: "0", position_value: "0", equity: "0", realized: "0", unrealized: "0" };
        equity.push({ ...row, ...nothing, portfolio: "other", seq: String(last + BigInt(index) + 1n) });
      }
    });
    for (const number of [2, 3, 4])
      expect(checks[number - 1]).toMatchObject({
        ...{ verdict: "NOT CHECKED", breaks: 0 },
        reason: expect.stringMatching(/come after the last point of their account/),
      });
  });

  test("a fee in a currency that the account has points of, in either of the two", async () => {
    const checks = await checksOf(
      ({ fills, equity, events }) => {
        const fee = nanos(fills[5]!.fee!);
        fills[5]!.fee_currency = "EUR";
        const first = BigInt(events[0]!.ts_event!);
        double(events, events.find(({ kind }) => kind === "account.deposit")!, {
          ...{ ts_event: String(first), ts_init: String(first), amount: "100", currency: "EUR" },
        });
        const point = { currency: "EUR", cash: "100", position_value: "0", equity: "100" };
        double(equity, equity[0]!, { ...point, realized: "0", unrealized: "0" });
        double(equity, equity.at(-2)!, { ...point, realized: "0", unrealized: "0" });
        const paid = equity.at(-1)!;
        for (const column of ["cash", "equity", "realized"]) add(paid, column, -fee);
      },
      { instruments: currenciesOf({ "*": "USD" }) },
    );
    for (const number of [2, 3, 4])
      expect(checks[number - 1]).toMatchObject({
        ...{ verdict: "NOT CHECKED", breaks: 0 },
        reason: expect.stringContaining("in a currency other than USD"),
      });
  });
});
