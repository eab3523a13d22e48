import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ReconcileOptions } from "../../src/analytics/reconcile/reconcile.ts";
import type { TableName } from "../../src/model/profile/table.ts";
import type { HistorySource, RowRequest } from "../../src/model/source.ts";
import { openSimulator, type Simulator } from "../../src/simulator/simulator.ts";
import { reconciled } from "../fixtures/archive/reconciled-world.ts";
import { nanos } from "../fixtures/source/book-check.ts";

type Row = Record<string, string>;
type Edit = (row: Row, index: number) => void;

let dir: string;
let world: Simulator;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "runvault-wrong-"));
  world = await openSimulator({ runs: 1, failed: 0, rows: 6_000, cacheDir: dir });
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await rm(dir, { recursive: true, force: true });
});

/** The world with rows of tables changed, each row by its place in the order of seq. */
function changed(edits: Partial<Record<TableName, Edit>>): HistorySource {
  async function* rows(request: RowRequest): AsyncGenerator<Uint8Array> {
    const edit = edits[request.table];
    let rest = "";
    for await (const chunk of world.rows(request)) {
      if (edit === undefined) {
        yield chunk;
        continue;
      }
      const lines = (rest + Buffer.from(chunk).toString()).split("\n");
      rest = lines.pop()!;
      const out = lines.map((line) => {
        const row = JSON.parse(line) as Row;
        edit(row, Number(row.seq));
        return `${JSON.stringify(row)}\n`;
      });
      yield Buffer.from(out.join(""));
    }
  }
  return new Proxy(world, {
    get: (target, name) => {
      if (name === "rows") return rows;
      if (name === "answer") return undefined;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

function add(row: Row, column: string, amount: bigint): void {
  const sum = nanos(row[column]!) + amount;
  const digits = String(sum < 0n ? -sum : sum).padStart(10, "0");
  const text = `${digits.slice(0, -9)}.${digits.slice(-9)}`.replace(/\.?0+$/, "");
  row[column] = sum < 0n ? `-${text}` : text;
}

async function verdicts(edits: Partial<Record<TableName, Edit>>, options: Partial<ReconcileOptions> = {}) {
  const run = (await world.runs("alpha-1"))![0]!;
  const { checks } = await reconciled(dir, changed(edits), run, options);
  return new Map(checks.map((check) => [check.number, check]));
}

const at =
  (place: number, change: (row: Row) => void): Edit =>
  (row, index) => {
    if (index === place) change(row);
  };

test.each<[string, Partial<Record<TableName, Edit>>, number]>([
  [
    "two fees that are wrong and cancel before the last point",
    {
      fills: (row, index) =>
        index === 20 ? add(row, "fee", 7n) : index === 60 ? add(row, "fee", -7n) : undefined,
    },
    2,
  ],
  [
    "cash and position value that are wrong by opposite amounts",
    {
      equity: at(100, (row) => {
        add(row, "cash", 5n);
        add(row, "position_value", -5n);
      }),
    },
    3,
  ],
  [
    "realized and unrealized profit that are wrong by opposite amounts",
    {
      equity: at(100, (row) => {
        add(row, "realized", 5n);
        add(row, "unrealized", -5n);
      }),
    },
    4,
  ],
  [
    "equity and cash that are wrong by the same amount",
    {
      equity: at(100, (row) => {
        add(row, "cash", 5n);
        add(row, "equity", 5n);
      }),
    },
    2,
  ],
  ["cash alone", { equity: at(100, (row) => add(row, "cash", 5n)) }, 1],
  [
    "a side that is not the order's",
    {
      fills: at(20, (row) => {
        row.side = row.side === "BUY" ? "SELL" : "BUY";
      }),
    },
    2,
  ],
  [
    "a bar's close",
    {
      bars: at(200, (row) => {
        add(row, "close", 100_000_000_000n);
      }),
    },
    2,
  ],
  [
    "a worth before the first fill",
    {
      equity: at(2, (row) => {
        add(row, "position_value", 9n);
        add(row, "equity", 9n);
      }),
    },
    5,
  ],
])("%s break a check that can tell", async (_, edits, number) => {
  const found = await verdicts(edits);
  expect(found.get(number)!.verdict).toBe("BREAKS");
});

test("fees in another currency are not checked, and nothing holds that rests on them", async () => {
  const found = await verdicts({
    fills: (row) => {
      row.fee_currency = "BNB";
    },
  });
  for (const number of [2, 3, 4]) {
    expect(found.get(number)).toMatchObject({
      verdict: "NOT CHECKED",
      reason: expect.stringContaining("a currency other than"),
    });
  }
});

test("a tolerance takes differences up to it, and none above", async () => {
  const edits = { equity: at(100, (row: Row) => add(row, "equity", 5n)) };
  expect((await verdicts(edits, { tolerance: { value: 5n, scale: 9 } })).get(1)!.verdict).toBe("HOLDS");
  expect((await verdicts(edits, { tolerance: { value: 4n, scale: 9 } })).get(1)!.verdict).toBe("BREAKS");
});

test("books kept otherwise than was named break", async () => {
  expect((await verdicts({}, { accounting: "margin" })).get(3)!.verdict).toBe("BREAKS");
});

test("a run without fills balances where there is something to check, and says where there is not", async () => {
  await using quiet = await openSimulator({ runs: 1, failed: 0, fills: 0, cacheDir: dir });
  const { checks } = await reconciled(dir, quiet, (await quiet.runs("alpha-1"))![0]!);
  expect(checks.filter(({ verdict }) => verdict === "BREAKS")).toEqual([]);
  for (const { verdict, rows } of checks) if (verdict === "HOLDS") expect(rows).toBeGreaterThan(0);
});
