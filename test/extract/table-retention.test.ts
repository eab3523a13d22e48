// @module-tag slow
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { HistorySource } from "../../src/model/source.ts";
import { segmentLines } from "../fixtures/archive/archived-lines.ts";
import { at, hours, repriced, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";
import { isTestAll } from "../fixtures/trials/cases.ts";

const modes = [
  ["with facts", {}],
  ["without facts", { literal: true }],
] as const;

describe.each(modes)("a gateway %s that keeps rows for some time only", (_, manners) => {
  it("takes nothing from a growing run: what it dropped stays proven, with a note, and the rest goes on", async () => {
    await using tables = await TableWorld.create();
    const all = world({ fills: hours(60) }).get("fills")!;
    const source = new ArraySource(run, new Map([["fills", all.slice(0, 40)]]), { final: false, ...manners });
    await tables.archiveRun(source);
    source.tables.set("fills", all.slice(13, 60));
    const { manifest } = await tables.archiveRun(source);
    expect(manifest.tables.fills).toMatchObject({
      state: "OPEN",
      attempt: { outcome: "ok", notes: [expect.stringContaining("no longer has rows before")] },
    });
    const shown = manifest.tables.fills!.proven!.certificate!.rows;
    await tables.expectRows("fills", all.slice(0, shown));
    expect(shown).toBeGreaterThanOrEqual(59);
    // and once more, further on
    source.tables.set("fills", all.slice(29, 60));
    expect((await tables.archiveRun(source)).manifest.state).toBe("OPEN");
    await tables.expectRows("fills", all.slice(0, shown));
  });

  it("is not believed where rows are gone behind its first one", async () => {
    await using tables = await TableWorld.create();
    const all = world({ fills: hours(60) }).get("fills")!;
    const source = new ArraySource(run, new Map([["fills", all.slice(0, 40)]]), { final: false, ...manners });
    await tables.archiveRun(source);
    source.tables.set("fills", all.slice(13, 60).toSpliced(5, 3));
    const { manifest } = await tables.archiveRun(source);
    expect(manifest.tables.fills!.attempt.outcome).not.toBe("ok");
    expect(manifest.tables.fills!.proven!.state).toBe("OPEN");
    const shown = manifest.tables.fills!.proven!.certificate!.rows;
    await tables.expectRows("fills", all.slice(0, shown));
  });
});

describe.each([
  ["with facts", { final: false }, null],
  ["without facts", { final: false, literal: true }, null],
  ["that is finished and has versions alone", {}, "1"],
] as const)("a gateway %s that drops its first rows between two questions", (_, manners, version) => {
  // ends that cannot be shown, windows that are short, or rows that are kept nowhere: each is another question's alarm
  it.each([1, 2, 3, 6, 10])("takes nothing and raises no alarm: ahead of answer %i", async (answer) => {
    await using tables = await TableWorld.create();
    const all = world({ fills: hours(60) }).get("fills")!;
    const source = new ArraySource(run, new Map([["fills", all.slice(0, 40)]]), manners);
    if (version !== null) Object.assign(source, { facts: async () => null });
    await tables.archiveRun(source);
    const change = (rows: typeof all) => {
      source.tables.set("fills", rows);
      if (version !== null) source.storageVersion = String(Number(source.storageVersion) + 1);
    };
    change(all.slice(2, 60));
    const begun = source.asked.length;
    source.manners = {
      ...manners,
      refuses: (_, asked) => {
        if (asked === begun + answer) change(all.slice(5, 60));
        return undefined;
      },
    };
    const { manifest } = await tables.archiveRun(source);
    expect(manifest.tables.fills!.attempt.error).toBeNull();
    const shown = manifest.tables.fills!.proven!.certificate!.rows;
    await tables.expectRows("fills", all.slice(0, shown));
  });
});

it.each([0, 1])("one node that begins later takes no rows out of what came: node %i first", async (turn) => {
  await using tables = await TableWorld.create();
  const all = world({ fills: hours(60) }).get("fills")!;
  const nodes = [0, 6].map((first) => new ArraySource(run, new Map([["fills", all.slice(first)]])));
  let asked = turn;
  const node = () => nodes[asked++ % 2]!;
  const source: HistorySource = {
    label: "two nodes",
    instances: () => node().instances(),
    runs: (id) => node().runs(id),
    facts: (ref, bounds) => node().facts(ref, bounds),
    document: (ref, kind) => node().document(ref, kind),
    rows: (request) => node().rows(request),
    [Symbol.asyncDispose]: async () => {},
  };
  const { manifest } = await tables.archiveRun(nodes[0]!, { source });
  const { proven, attempt } = manifest.tables.fills!;
  if (attempt.outcome === "ok") expect(proven!.certificate!.rows).toBe(60);
});

describe.each(modes)("a growing run's table that a gateway %s drops whole", (_, manners) => {
  it("stays OPEN as it was proven, with a note, and goes on with the rows that come", async () => {
    await using tables = await TableWorld.create();
    const all = world({ fills: hours(60) }).get("fills")!;
    const orders = world({ orders: hours(60) }).get("orders")!;
    const source = new ArraySource(run, new Map(), { final: false, ...manners });
    const night = async (fills: typeof all, until: number) => {
      source.tables.set("fills", fills).set("orders", orders.slice(0, until));
      return (await tables.archiveRun(source)).manifest.tables.fills!;
    };
    await night(all.slice(0, 20), 20);
    const { state, attempt } = await night([], 40);
    expect([state, attempt.notes.join()]).toEqual([
      "OPEN",
      expect.stringContaining("no longer has the table's"),
    ]);
    await tables.expectRows("fills", all.slice(0, 20));
    const later = await night(all.slice(50), 60);
    expect([later.state, later.attempt.notes.join()]).toEqual([
      "OPEN",
      expect.stringContaining("no longer has rows"),
    ]);
    await tables.expectRows("fills", [...all.slice(0, 20), ...all.slice(50)]);
  });
});

it("a growing run's table of which facts count no row is shrunk where its route gives some", async () => {
  await using tables = await TableWorld.create();
  const source = new ArraySource(run, world({ fills: hours(20) }), { final: false });
  await tables.archiveRun(source);
  const none = new ArraySource(run, new Map(), { final: false });
  Object.assign(source, { facts: none.facts.bind(none) });
  expect((await tables.archiveRun(source)).manifest.tables.fills!.attempt.error!.code).toBe("shrunk");
});

it("rows that a gateway no longer has are proven by no more than what proved them", async () => {
  await using tables = await TableWorld.create();
  const all = world({ fills: hours(60) }).get("fills")!;
  const source = new ArraySource(run, new Map([["fills", all]]), { literal: true });
  const proofOf = async (require: "any" | "hashed" = "any") => {
    const { manifest } = await tables.archiveRun(source, { settings: { require } });
    const { proven, attempt } = manifest.tables.fills!;
    return [proven!.certificate!.proof, attempt.outcome];
  };
  expect(await proofOf()).toEqual(["exhausted", "ok"]);
  // facts come, and the first rows go
  source.manners = { hashes: "named" };
  source.storageVersion = "2";
  source.tables.set("fills", all.slice(20));
  expect(await proofOf()).toEqual(["exhausted", "ok"]);
  expect(await proofOf("hashed")).toEqual(["exhausted", "UNVERIFIED"]);
  await tables.expectRows("fills", all);
  // and come back
  source.tables.set("fills", all);
  source.storageVersion = "3";
  expect(await proofOf("hashed")).toEqual(["hashed", "ok"]);
  source.tables.set("fills", all.slice(20));
  source.storageVersion = "4";
  expect(await proofOf("hashed")).toEqual(["hashed", "ok"]);
  await tables.expectRows("fills", all);
});

it("is not taken for what a gateway shows without bounds: rows that it still gives between some are brought", async () => {
  await using tables = await TableWorld.create();
  const hour = at(1) - at(0);
  const manners = { literal: true, defaultWindowNs: 20n * hour };
  const source = new ArraySource(run, world({ fills: hours(30), orders: hours(30) }), {
    ...manners,
    final: false,
    times: { started: at(0), ended: at(30) },
  });
  await tables.archiveRun(source);
  // a day on, the last hours have no fills
  source.tables.set("fills", repriced(source.tables.get("fills")!));
  source.tables.set("orders", world({ orders: hours(90) }).get("orders")!);
  source.manners = { ...manners, times: { started: at(0), ended: at(90) } };
  const { manifest } = await tables.archiveRun(source);
  expect(manifest.tables.fills).toMatchObject({ state: "COMPLETE", attempt: { notes: [] } });
  await tables.expectRows("fills", source.tables.get("fills")!);
});

it("whatever a gateway drops, adds and changes from night to night, what is shown never becomes fewer rows without a word", async () => {
  const night = fc.record({
    first: fc.integer({ min: 0, max: 50 }),
    rows: fc.integer({ min: 1, max: 60 }),
    hole: fc.option(fc.integer({ min: 0, max: 59 }), { freq: 3 }),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(night, { minLength: 2, maxLength: 4 }),
      fc.boolean(),
      async (nights, literal) => {
        await using tables = await TableWorld.create();
        const all = world({ fills: hours(61) }).get("fills")!;
        const source = new ArraySource(run, new Map(), { final: false, literal });
        let proven = 0;
        for (const { first, rows, hole } of nights) {
          const there = all.slice(first, Math.max(first, rows) + 1).filter((_, i) => i !== hole);
          source.tables.set("fills", there);
          const { manifest } = await tables.archiveRun(source);
          const shown = new Set(await segmentLines(tables.archive, run, "fills"));
          // counts cannot tell a row that took another's place in its window from a correction
          expect(shown.size).toBeGreaterThanOrEqual(proven);
          if (manifest.tables.fills!.attempt.outcome === "ok") proven = shown.size;
        }
      },
    ),
    { numRuns: isTestAll ? 12 : 5 },
  );
});
