// @module-tag slow
import fc from "fast-check";
import { describe, expect, it } from "vitest";
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
