// @module-tag slow
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type TableName, tableNames } from "../../src/model/profile/table.ts";
import type { RunRef } from "../../src/model/source.ts";
import { type BookFaultKind, bookFaultKinds, parseBookFault } from "../../src/simulator/books/book-fault.ts";
import { openSimulator, type Simulator } from "../../src/simulator/simulator.ts";
import { type Break, bookBreaks, type Identity, nanos, rowsOf } from "../fixtures/source/book-check.ts";

const options = {
  rows: 4_000,
  symbols: 3,
  currencies: ["USD", "EUR"],
  transfers: 5,
  fundingMs: 3_600_000,
  runs: 1,
};
let cacheDir: string;

beforeAll(async () => {
  cacheDir = await mkdtemp(join(tmpdir(), "simulator-faults-"));
});
afterAll(async () => {
  await rm(cacheDir, { recursive: true, force: true });
});

async function runOf(world: Simulator, instanceId = "alpha-1"): Promise<RunRef> {
  return (await world.runs(instanceId))![0]!;
}

/** What each fault breaks; identities that contain each other break together. */
const broken: Readonly<Record<BookFaultKind, readonly Identity[]>> = {
  "lose-fill": ["orders"],
  "double-fill": ["orders"],
  "shift-fee": ["cash", "equity", "realized"],
  "lose-transfer": ["cash", "equity"],
  "shift-equity": ["equity", "sum"],
  "wrong-mark": ["equity", "value"],
  "lose-order": ["orders"],
  "skip-state": ["states"],
  "shift-average": ["orders"],
  "other-metric": ["metrics"],
};

/** Faults that break every point from one on; the others break one thing once. */
const lasting: readonly BookFaultKind[] = ["shift-fee", "lose-transfer"];

describe.each(["spot", "margin"] as const)("in books kept as %s", (accounting) => {
  test.each(bookFaultKinds.map(({ kind }) => kind))("%s breaks what it says, in one place", async (kind) => {
    const bookFaults = [parseBookFault(`${kind}@*`)];
    await using world = await openSimulator({ ...options, accounting, cacheDir, bookFaults });
    const run = await runOf(world);
    const breaks = await bookBreaks(world, run, accounting);
    const identities = [...new Set(breaks.map(({ identity }) => identity))].sort();
    expect(identities).toEqual(broken[kind]);
    for (const identity of identities) {
      const places = [...new Set(breaks.filter((one) => one.identity === identity).map(({ at }) => at))];
      if (!lasting.includes(kind)) expect(places).toHaveLength(1);
      else await expectLasting(world, run, breaks, places);
    }
    // the rows are all there is: counts say nothing
    const facts = await world.facts(run, {});
    for (const table of tableNames) {
      expect((await rowsOf(world, run, table)).length).toBe(Number(facts!.get(table)!.rows));
    }
  });
});

/** That breaks begin at a point and go on to the last one of its currency, by one amount. */
async function expectLasting(world: Simulator, run: RunRef, breaks: readonly Break[], places: string[]) {
  const [first] = places;
  const currency = first!.split(" ")[1];
  const points = (await rowsOf(world, run, "equity"))
    .filter((point) => point.currency === currency)
    .map(({ ts_event }) => `${ts_event} ${currency}`);
  expect(places).toEqual(points.slice(points.indexOf(first!)));
  expect(places.length).toBeLessThan(points.length);
  expect(new Set(breaks.map(({ off }) => off)).size).toBe(1);
}

/** Lines of a table without what tells of their arrival, which a row more or less changes for those after it. */
async function linesOf(world: Simulator, table: TableName): Promise<string[]> {
  const rows = await rowsOf(world, await runOf(world), table);
  return rows.map(({ seq: _seq, ts_init: _init, ...rest }) => JSON.stringify(rest));
}

/** What one has and the other has not, row by row. */
async function difference(sound: Simulator, faulty: Simulator, table: TableName) {
  const [ours, theirs] = [await linesOf(sound, table), await linesOf(faulty, table)];
  const parsed = (lines: readonly string[]) =>
    lines.map((line) => JSON.parse(line) as Record<string, string>);
  const [known, shown] = [new Set(ours), new Set(theirs)];
  return {
    lost: parsed(ours.filter((line) => !shown.has(line))),
    added: parsed(theirs.filter((line) => !known.has(line))),
    rows: theirs.length - ours.length,
  };
}

// lose-fill and double-fill are in the books as well, and with them in equity and its figures
test.each<[BookFaultKind, TableName, number, string[], TableName[]]>([
  ["double-fill", "fills", 1, [], ["equity", "metrics"]],
  ["lose-fill", "fills", -1, [], ["equity", "metrics"]],
  ["shift-fee", "fills", 0, ["fee"], []],
  ["lose-transfer", "events", -1, [], ["metrics"]],
  ["skip-state", "orders", -1, [], []],
  ["shift-average", "orders", 0, ["average_price"], []],
  ["other-metric", "metrics", 0, ["value"], []],
  ["shift-equity", "equity", 0, ["equity"], ["metrics"]],
  ["wrong-mark", "equity", 0, ["position_value", "equity", "unrealized"], ["metrics"]],
])("%s changes one row of %s", async (kind, table, rows, changed, besides) => {
  // without funding, for interest is of cash, which a fill moves
  const plain = { ...options, fundingMs: 0, cacheDir };
  await using sound = await openSimulator(plain);
  await using faulty = await openSimulator({ ...plain, bookFaults: [parseBookFault(`${kind}@alpha-1`)] });
  const found = await difference(sound, faulty, table);
  expect(found.rows).toBe(rows);
  expect(found.added).toHaveLength(changed.length > 0 ? 1 : 0);
  expect(found.lost).toHaveLength(changed.length > 0 || rows < 0 ? 1 : 0);
  if (changed.length > 0) {
    const [before, after] = [found.lost[0]!, found.added[0]!];
    expect(Object.keys(before).filter((name) => before[name] !== after[name])).toEqual(changed);
    if (kind === "shift-fee") expect(nanos(after.fee!) - nanos(before.fee!)).toBe(1n);
    if (kind === "shift-equity") expect(nanos(after.equity!) - nanos(before.equity!)).toBe(10_000_000n);
  }
  for (const other of tableNames) {
    if (other === table) continue;
    const { lost, added } = await difference(sound, faulty, other);
    // the last event says how many fills there were
    const changes = [...lost, ...added].filter((row) => row.kind !== "runtime.stopped");
    if (besides.includes(other)) expect(changes).not.toEqual([]);
    else expect(changes).toEqual([]);
  }
});

test("lose-order takes every row of one order, whose fills stay", async () => {
  await using sound = await openSimulator({ ...options, cacheDir });
  await using faulty = await openSimulator({
    ...options,
    cacheDir,
    bookFaults: [parseBookFault("lose-order@*")],
  });
  const { lost, added } = await difference(sound, faulty, "orders");
  expect(added).toEqual([]);
  const [id, ...others] = [...new Set(lost.map(({ client_order_id }) => client_order_id))];
  expect(others).toEqual([]);
  const fills = await rowsOf(faulty, await runOf(faulty), "fills");
  expect(fills.some(({ client_order_id }) => client_order_id === id)).toBe(true);
});

test.each(["2", "3"])("every fault breaks every run of a world of seed %s, failed ones too", async (seed) => {
  for (const { kind } of bookFaultKinds) {
    const bookFaults = [parseBookFault(`${kind}@*`)];
    const common = { ...options, rows: 2_000, runs: 2, failed: 2, accounting: "margin" as const };
    await using world = await openSimulator({ ...common, cacheDir, seed, bookFaults });
    for (const run of (await world.runs("alpha-1"))!) {
      const breaks = await bookBreaks(world, run, "margin");
      expect([...new Set(breaks.map(({ identity }) => identity))].sort()).toEqual(broken[kind]);
    }
  }
});

test("the seed decides the place, and each instance may have a fault of its own", async () => {
  const place = async (seed: string): Promise<string> => {
    const dir = await mkdtemp(join(cacheDir, "seed-"));
    const bookFaults = [parseBookFault("skip-state@*")];
    await using world = await openSimulator({ ...options, cacheDir: dir, seed, bookFaults });
    return (await bookBreaks(world, await runOf(world), "spot"))[0]!.at;
  };
  const places = await Promise.all(["1", "1", "2", "3"].map(place));
  expect(places[0]).toBe(places[1]);
  expect(new Set(places).size).toBe(3);

  const bookFaults = ["lose-order@alpha-1", "skip-state@gamma-3"].map(parseBookFault);
  await using world = await openSimulator({ ...options, instances: 3, runs: 2, cacheDir, bookFaults });
  const found = new Map<string, Identity[]>();
  for (const instanceId of ["alpha-1", "beta-2", "gamma-3"]) {
    for (const run of (await world.runs(instanceId))!) {
      const breaks = await bookBreaks(world, run, "spot");
      found.set(
        `${instanceId}/${run.runId}`,
        breaks.map(({ identity }) => identity),
      );
    }
  }
  expect([...found.values()]).toEqual([["orders"], ["orders"], [], [], ["states"], ["states"]]);
});

test.each([
  [
    ["lose-transfer@*"],
    { transfers: 0 },
    /does not have a deposit or withdrawal after its start/,
    /--transfers/,
  ],
  [["lose-fill@*"], { fills: 0 }, /alpha-1\/2022-01-01-001 does not have a fill/, /--fills/],
  [["wrong-mark@*"], { fills: 0 }, /does not have an equity point with an open position/, /--fills/],
  [["lose-fill@alpha-2"], {}, /there is no instance alpha-2/, /alpha-1/],
  [
    ["lose-fill@alpha-1", "shift-fee@*"],
    {},
    /alpha-1 already have a fault, lose-fill@alpha-1/,
    /--instances/,
  ],
])("%j in a world %j is refused", async (texts, more, message, hint) => {
  const dir = await mkdtemp(join(cacheDir, "refused-"));
  const bookFaults = texts.map(parseBookFault);
  await expect(openSimulator({ ...options, ...more, cacheDir: dir, bookFaults })).rejects.toMatchObject({
    code: "invalid_argument",
    message: expect.stringMatching(message),
    hint: expect.stringMatching(hint),
  });
});

test.each([
  "lose-fill",
  "lose-fill@",
  "lose-fill@fills:3",
  "lose-fill@*:1",
  "lose-fill@alpha-1*2",
  "lose-fil@*",
])("%s is no fault in books, and is told the form", (text) => {
  expect(() => parseBookFault(text)).toThrow(
    expect.objectContaining({
      code: "invalid_argument",
      message: expect.stringContaining("KIND@INSTANCE"),
      hint: expect.stringContaining("lose-fill, double-fill"),
    }),
  );
});
