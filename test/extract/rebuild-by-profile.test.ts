// @module-tag slow
import { cpSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { diffArchives } from "../../src/archive/diff/diff.ts";
import { latestView } from "../../src/archive/manifest/table-view.ts";
import { verifyRun } from "../../src/archive/verify/verify.ts";
import { pendingWork } from "../../src/archive/write/pending-work.ts";
import { type AppliedProfile, rebuildByProfile } from "../../src/extract/rebuild/rebuild-by-profile.ts";
import { recordAttempt } from "../../src/extract/run/record-attempt.ts";
import { RunvaultError } from "../../src/model/error.ts";
import { type ColumnSource, type RowMap, rowMapFingerprint } from "../../src/model/profile/row-map.ts";
import { tableNamed } from "../../src/model/profile/table.ts";
import { parquetLines, segmentLines } from "../fixtures/archive/archived-lines.ts";
import { sharedDuckDB } from "../fixtures/archive/shared-duckdb.ts";
import { at, run, TableWorld } from "../fixtures/archive/table-world.ts";
import { filesBelow } from "../fixtures/command/kill-driver.ts";
import { ForeignSource } from "../fixtures/source/foreign-source.ts";
import { someOf } from "../fixtures/trials/cases.ts";

const field = (...path: string[]): ColumnSource => ({ kind: "field", path });
const absent: ColumnSource = { kind: "absent" };
const sides = [
  { wire: "B", column: "BUY" },
  { wire: "S", column: "SELL" },
];

const right: RowMap = {
  numbers: "exact",
  fields: "keep",
  ties: "bytes",
  columns: {
    run_id: { kind: "run" },
    instance_id: { kind: "instance" },
    seq: { kind: "derived" },
    ts_event: { kind: "field", path: ["time"], unit: "ms" },
    ts_init: { kind: "field", path: ["time"], unit: "ms" },
    resource_key: absent,
    account: field("acct"),
    portfolio: { kind: "constant", text: "main" },
    venue: field("instrument", "exchange"),
    symbol: field("instrument", "symbol"),
    trade_id: field("id"),
    client_order_id: field("order"),
    venue_order_id: absent,
    side: { kind: "field", path: ["side"], words: sides },
    price: field("px"),
    quantity: field("qty"),
    fee: absent,
    fee_currency: { kind: "field", path: ["feeCcy"], optional: true },
    liquidity: absent,
  },
  dropped: [],
};

const withColumns = (columns: RowMap["columns"], more: Partial<RowMap> = {}): RowMap => ({
  ...right,
  ...more,
  columns: { ...right.columns, ...columns },
});

const seconds: ColumnSource = { kind: "field", path: ["time"], unit: "s" };
const wrong: Readonly<Record<string, RowMap>> = {
  "a wrong unit": withColumns({
    ts_event: { kind: "field", path: ["time"], unit: "us" },
    ts_init: { kind: "field", path: ["time"], unit: "us" },
  }),
  "a unit that takes rows to another century": withColumns({ ts_event: seconds, ts_init: seconds }),
  "a wrong field": withColumns({ symbol: field("instrument", "exchange"), account: field("order") }),
  "another time": withColumns({ ts_event: { kind: "field", path: ["other"], unit: "ms" } }),
  "wrong words": withColumns({
    side: {
      kind: "field",
      path: ["side"],
      words: [
        { wire: "B", column: "SELL" },
        { wire: "S", column: "BUY" },
      ],
    },
  }),
  "an absent column that has a field": withColumns({ account: absent, trade_id: absent }),
  "numbers that had to be text": withColumns({}, { numbers: "text" }),
  "a seq of its own": withColumns({ seq: field("nr") }),
};

/** Of a number that goes back to `extra` nobody knows the spelling any more: a profile that drops the field can have it. */
const dropping: RowMap = { ...right, dropped: [["nr"], ["other"]] };
const targets: Readonly<Record<string, RowMap>> = { "another time": dropping, "a seq of its own": dropping };

const rowTexts = fc
  .array(
    fc.record({
      // seconds that keep within what nanoseconds can say
      time: fc.integer({ min: 1_640_995, max: 1_641_005 }).map((time) => time * 1000),
      other: fc.integer({ min: 1_640_995_200, max: 1_640_995_300 }),
      nr: fc.nat(1_000_000),
      px: fc.tuple(fc.nat(99_999), fc.nat(99)).map(([whole, part]) => `${whole}.${part}1`),
      qty: fc.nat(9),
      side: fc.constantFrom("B", "S"),
      symbol: fc.constantFrom("A", "B", "Ü"),
      feeCcy: fc.constantFrom("", ',"feeCcy":"EUR"'),
      extra: fc.constantFrom("", ',"lot":12345678901234567890.5', ',"note":{"a":[1,"x"]}'),
      acct: fc.constantFrom('"main"', '"desk 2"', "7"),
    }),
    { minLength: 40, maxLength: 120 },
  )
  .map((rows) =>
    rows.map(
      ({ time, other, nr, px, qty, side, symbol, feeCcy, extra, acct }, i) =>
        `{"id":"T${i % 50}","order":"O${i % 7}","nr":${nr * 1000 + i},"time":${time},"other":${other},"acct":${acct},"side":"${side}","px":${px},"qty":${qty},"instrument":{"exchange":"X","symbol":"${symbol}"}${feeCcy}${extra}}`,
    ),
  );

const profileOf = (map: RowMap): AppliedProfile => ({
  name: "acme",
  described: ["fills"],
  maps: { fills: map },
  whole: [],
});

let place: TableWorld;
let fresh: TableWorld;
beforeEach(async () => {
  place = await TableWorld.create();
  fresh = await TableWorld.create();
});
afterEach(async () => {
  await place[Symbol.asyncDispose]();
  await fresh[Symbol.asyncDispose]();
});

const job = () => ({
  ...{ archive: place.archive, run, clock: () => at(0), tool: "test", duckdb: sharedDuckDB },
  signal: new AbortController().signal,
});

async function expectEqual(): Promise<void> {
  const { runs, equal } = await diffArchives(place.archive, fresh.archive);
  const differences = runs.flatMap(({ tables, differences }) => [
    ...differences,
    ...tables.flatMap((table) => [...table.differences, table.firstDifference ?? ""]),
  ]);
  expect(differences.filter((one) => one !== "")).toEqual([]);
  expect(equal).toBe(true);
}

async function expectVerified(world: TableWorld): Promise<void> {
  const report = await verifyRun(await openArchive(world.archive.dir), run, {
    deep: true,
    duckdb: sharedDuckDB,
  });
  const { state } = (await world.archive.manifest(run))!;
  const amiss = report.checks.filter(
    ({ ok, check }) => !ok && !(state === "QUARANTINED" && check === "state"),
  );
  expect(amiss).toEqual([]);
}

describe("rows that are held, by a corrected profile", () => {
  test.each(someOf(Object.entries(wrong), 3))("are those of a fresh archive after %s", async (name, map) => {
    const target = targets[name] ?? right;
    // one sample a map: each archives and rebuilds, and shrinking would take minutes
    const [rows] = fc.sample(rowTexts, 1) as [string[]];
    const settings = { fingerprint: true };
    await place.archiveRun(new ForeignSource(run, "fills", rows, map), { settings });
    await fresh.archiveRun(new ForeignSource(run, "fills", rows, target), { settings });
    const { changed, manifest } = await rebuildByProfile(job(), profileOf(target));
    expect(changed).toBe(true);
    await expectEqual();
    await expectVerified(place);
    const { through, certificate } = latestView(manifest.tables.fills!);
    expect(through).toMatchObject({ profile: "acme", fingerprint: rowMapFingerprint(target) });
    expect(certificate!.restsOn.at(-1)).toMatch(/^rows that came by the profile acme as it was/);
    expect((await rebuildByProfile(job(), profileOf(target))).changed).toBe(false);
    // and the job that goes on with it has nothing to say against it
    const again = await place.archiveRun(new ForeignSource(run, "fills", rows, target));
    expect(latestView(again.manifest.tables.fills!).error).toBeNull();
  });
});

const some = Array.from(
  { length: 60 },
  (_, i) =>
    `{"id":"T${i}","order":"O","nr":${i},"time":${1_640_995_200_000 + (i >> 1)},"other":1,"acct":"a","side":"B","px":1.5,"qty":2,"instrument":{"exchange":"X","symbol":"A"}}`,
);

describe("a rebuild by another profile", () => {
  test("that is killed at any step is done by the next, and until it is committed nothing has changed", async () => {
    const source = new ForeignSource(run, "fills", some, wrong["a wrong unit"]!);
    await fresh.archiveRun(new ForeignSource(run, "fills", some, right));
    const steps: string[] = [];
    await place.archiveRun(source);
    await rebuildByProfile({ ...job(), step: (name) => void steps.push(name) }, profileOf(right));
    for (const [n, name] of someOf([...steps.entries()], 4)) {
      await place[Symbol.asyncDispose]();
      place = await TableWorld.create();
      await place.archiveRun(source);
      const { dir } = place.archive;
      let left = n + 1;
      const stopped = rebuildByProfile(
        {
          ...job(),
          step: () => {
            if (--left > 0) return;
            cpSync(dir, `${dir}-killed`, { recursive: true });
            throw new Error("stopped");
          },
        },
        profileOf(right),
      );
      await expect(stopped, name).rejects.toThrow("stopped");
      // who is killed leaves all as it stood
      await rm(dir, { recursive: true });
      await rename(`${dir}-killed`, dir);
      const { generation } = (await place.archive.manifest(run))!;
      if (generation === 1) {
        expect(await pendingWork(place.archive, () => {})).toMatchObject([{ by: "remap" }]);
        // neither profile goes on with work that is half done
        const outcome = await place.archiveRun(source);
        expect(outcome.changed).toBe(false);
        if (n === 0) {
          expect((await rebuildByProfile(job(), profileOf(wrong["a wrong unit"]!))).changed).toBe(false);
          expect(await pendingWork(place.archive, () => {})).toEqual([]);
        }
      }
      await rebuildByProfile(job(), profileOf(right));
      await expectEqual();
      expect(await filesBelow(join(place.archive.dir, "staging"))).toEqual([]);
    }
  });

  test("is refused by name where what is held does not say enough", async () => {
    const lossy = withColumns({
      side: {
        kind: "field",
        path: ["side"],
        lossy: true,
        words: [
          { wire: "B", column: "BUY" },
          { wire: "S", column: "BUY" },
        ],
      },
    });
    await place.archiveRun(new ForeignSource(run, "fills", some, lossy));
    await expect(rebuildByProfile(job(), profileOf(right))).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining("side is lossy"),
    });
    await place[Symbol.asyncDispose]();
    place = await TableWorld.create();
    await place.archiveRun(new ForeignSource(run, "fills", some, wrong["another time"]!));
    await expect(rebuildByProfile(job(), profileOf(right))).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringMatching(
        / ts_event \(other\) is "1[^"]*", and no column takes that field any more, /,
      ),
      place: { table: "fills" },
      hint: expect.stringMatching(
        /`runvault rm` and archive it again .* `dropped: \[{ from: other, lossy: true }\]`\.$/,
      ),
    });
    // whatever it is that stops it, nothing of it stays
    for (const left of ["pending", "staging"])
      expect(await filesBelow(join(place.archive.dir, left))).toEqual([]);
    const arrival = withColumns({}, { ties: "arrival" });
    await expect(rebuildByProfile(job(), profileOf(arrival))).rejects.toMatchObject({
      code: "invalid_argument",
    });
    const bars = { ...job(), tables: ["bars"] as const };
    await expect(rebuildByProfile(bars, profileOf(right))).rejects.toMatchObject({
      code: "invalid_argument",
      message: "the profile acme does not describe bars",
    });
    expect((await place.archive.manifest(run))!.generation).toBe(1);
  });

  test("leaves an attempt gone wrong that other rows do not mend as it was", async () => {
    await place.archiveRun(new ForeignSource(run, "fills", some, wrong["wrong words"]!));
    const committed = (await place.archive.manifest(run))!;
    const gone = new RunvaultError("run_not_found", "the gateway does not know the run");
    await recordAttempt({
      ...{ archive: place.archive, committed, tables: ["fills"], situation: "reset", isClosed: false },
      ...{
        error: gone,
        at: "2026-01-01T00:00:00.000Z",
        exactTypes: () => ({}),
        tool: "test",
        step: () => {},
      },
    });
    const before = (await place.archive.manifest(run))!.tables.fills!;
    expect([before.state, before.attempt.outcome]).toEqual(["INCOMPLETE", "INCOMPLETE"]);
    const { changed, manifest } = await rebuildByProfile(job(), profileOf(right));
    expect(changed).toBe(true);
    expect(manifest.state).toBe("INCOMPLETE");
    expect(manifest.tables.fills).toMatchObject({
      state: "INCOMPLETE",
      attempt: before.attempt,
      proven: { state: "COMPLETE", through: { fingerprint: rowMapFingerprint(right) } },
    });
  });

  test("keeps what no column takes, and gives it to a column that takes it now", async () => {
    const rows = some.map((row, i) => row.replace("}}", `},"lot":${i}.5,"big":1e400}`));
    await place.archiveRun(new ForeignSource(run, "fills", rows, right));
    const [before] = await segmentLines(place.archive, run, "fills");
    expect(before).toContain('"lot":0.5');
    await rebuildByProfile(job(), profileOf(withColumns({ fee: field("lot") })));
    const [after] = await segmentLines(place.archive, run, "fills");
    expect(after).toMatch(/"fee":"0.5",.*"extra":\{.*"big":1e400\}\}$/);
    expect(after).not.toContain('"lot"');
    const columns = tableNamed("fills").columns.length;
    const [line] = await parquetLines(place.archive, run, "fills");
    expect(Object.keys(JSON.parse(line!) as object)).toHaveLength(columns);
  });
});
