// @module-tag slow
import { expect, it } from "vitest";
import { RunvaultError } from "../../src/model/error.ts";
import { at, hours, repriced, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { ArraySource, type Manners } from "../fixtures/source/array-source.ts";

const day = 24n * (at(1) - at(0));
const times = { started: at(0), ended: at(1000) };
const all = world({ fills: hours(1000) }).get("fills")!;
/** Answers no more than eight days at once. */
const refusing = { times, longestNs: 8n * day, longer: "refused" } as const satisfies Manners;

it.each([
  ["counted", {}],
  ["uncounted", { literal: true }],
])("windows that are refused for their length are fetched in halves, %s", async (_, manners) => {
  await using tables = await TableWorld.create();
  const source = new ArraySource(run, new Map([["fills", all]]), { ...refusing, ...manners });
  const settings = { segmentBytes: 30_000, sliceRows: 100_000 };
  const { manifest } = await tables.archiveRun(source, { settings });
  expect(manifest.state).toBe("COMPLETE");
  await tables.expectRows("fills", all);
});

it("where no bounds at all are refused as well, a run without counts is read in halves around its time", async () => {
  await using tables = await TableWorld.create();
  const tooLong = new RunvaultError("invalid_argument", "no more than eight days", { status: 400 });
  const source = new ArraySource(run, new Map([["fills", all]]), {
    ...refusing,
    literal: true,
    refuses: ({ from, to }) => (from === undefined || to === undefined ? tooLong : undefined),
  });
  const { manifest } = await tables.archiveRun(source, { settings: { sliceRows: 100_000 } });
  expect(manifest.tables.fills).toMatchObject({ state: "COMPLETE" });
  await tables.expectRows("fills", all);
});

it("rows archived while the run grew are compared in halves where more is refused", async () => {
  await using tables = await TableWorld.create();
  const settings = { segmentBytes: 30_000, sliceRows: 100_000 };
  const source = new ArraySource(run, new Map([["fills", all.slice(0, 900)]]), { ...refusing, final: false });
  expect((await tables.archiveRun(source, { settings })).manifest.state).toBe("OPEN");
  const changed = [...all.slice(0, 500), ...repriced(all.slice(500, 510)), ...all.slice(510)];
  source.tables.set("fills", changed);
  source.manners = refusing;
  expect((await tables.archiveRun(source, { settings })).manifest.state).toBe("COMPLETE");
  await tables.expectRows("fills", changed);
});

it("a gateway that refuses whatever it is asked is not asked on and on", async () => {
  await using tables = await TableWorld.create();
  const source = new ArraySource(run, new Map([["fills", all]]), { ...refusing, longestNs: 1n });
  const job = tables.archiveRun(source, { settings: { sliceRows: 100_000 } });
  await expect(job).rejects.toMatchObject({ code: "invalid_argument" });
  expect(source.asked.length).toBeLessThan(20);
});

it("windows whose counts are refused for their length are counted in halves, night after night", async () => {
  await using tables = await TableWorld.create();
  for (const count of [800, 900, 1000]) {
    const source = new ArraySource(run, new Map([["fills", all.slice(0, count)]]), { times, final: false });
    const facts = source.facts.bind(source);
    source.facts = async (ref, { from, to }, ...rest) => {
      if (from !== undefined && to !== undefined && to - from > 8n * day)
        throw new RunvaultError("invalid_argument", "the window is too long", { status: 400 });
      return await facts(ref, { from, to }, ...rest);
    };
    expect((await tables.archiveRun(source)).manifest.state).toBe("OPEN");
    await tables.expectRows("fills", all.slice(0, count));
  }
});
