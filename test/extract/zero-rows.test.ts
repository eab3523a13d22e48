// @module-tag slow
import { describe, expect, it } from "vitest";
import { latestView } from "../../src/archive/manifest/table-view.ts";
import { knownSource, rememberSource } from "../../src/archive/sources.ts";
import { SeenSource } from "../../src/extract/proof/seen-source.ts";
import { madeUpId } from "../../src/extract/proof/zero-rows.ts";
import { RunvaultError } from "../../src/model/error.ts";
import type { TableName } from "../../src/model/profile/table.ts";
import { at, hours, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { ArraySource, type Manners } from "../fixtures/source/array-source.ts";

const day = 86_400_000_000_000n;
const times = { started: at(0), ended: at(100) };
const met = (...routes: TableName[]) => new SeenSource({ routes, empty: {} });
const two = () => world({ fills: hours(30), factors: [] });

async function stateOf(
  manners: Manners,
  seen: SeenSource,
  { rows = two(), only }: { rows?: ReturnType<typeof world>; only?: readonly TableName[] } = {},
) {
  await using tables = await TableWorld.create();
  const source = new ArraySource(run, rows, { times, ...manners });
  const { manifest } = await tables.archiveRun(source, { seen, ...(only && { tables: only }) });
  const { state, error } = latestView(manifest.tables.factors ?? manifest.tables.fills!);
  return { state, error, asked: source.asked };
}

describe("a table without rows, where nothing counts them", () => {
  it("is COMPLETE where its route has given rows of some run, and other tables of the run have rows", async () => {
    expect((await stateOf({ literal: true }, met("factors"))).state).toBe("COMPLETE");
    expect((await stateOf({ literal: true, unknownRuns: "empty" }, met("factors"))).state).toBe("COMPLETE");
  });

  it("is UNVERIFIED where its route never gave any row, and the remedy is told", async () => {
    const { state, error } = await stateOf({ literal: true }, met());
    expect(state).toBe("UNVERIFIED");
    expect(error).toMatchObject({ code: "unverified", hint: expect.stringContaining("--empty factors") });
  });

  it("is UNVERIFIED where the run has no row anywhere, for no bounds could be tried", async () => {
    const rows = world({ fills: [], factors: [] });
    expect((await stateOf({ literal: true }, met("factors", "fills"), { rows })).state).toBe("UNVERIFIED");
  });

  it("is COMPLETE in an empty run behind one that showed the bounds, unless any run is answered so", async () => {
    for (const unknownRuns of ["refused", "empty"] as const) {
      await using tables = await TableWorld.create();
      const seen = met("factors");
      await tables.archiveRun(new ArraySource(run, world({ fills: hours(3) }), { literal: true, times }), {
        seen,
      });
      const other = { ...run, runId: "2022-01-02" };
      const source = new ArraySource(other, world({ factors: [] }), { literal: true, times, unknownRuns });
      const { manifest } = await tables.archiveRun(source, { seen, run: other });
      expect(manifest.state).toBe(unknownRuns === "empty" ? "UNVERIFIED" : "COMPLETE");
      const made = source.asked.filter(({ runId }) => runId !== other.runId);
      expect(made.map(({ runId }) => runId)).toEqual(["7022-01-02"]);
    }
  });

  it("is UNVERIFIED where the summary counts rows of it", async () => {
    const rows = () => world({ orders: hours(9), fills: [] });
    const zero = await stateOf({ literal: true, summary: { fills: "0" } }, met("fills"), { rows: rows() });
    expect(zero.state).toBe("COMPLETE");
    const some = await stateOf({ literal: true, summary: { fills: "3" } }, met("fills"), { rows: rows() });
    expect(some).toMatchObject({
      state: "UNVERIFIED",
      error: { message: expect.stringContaining("counts 3 fills") },
    });
  });

  it("is asked for by windows that were seen to be answered whole: rows that a cut-down answer leaves out are found", async () => {
    const manners: Manners = {
      literal: true,
      times: { started: at(0), ended: at(24 * 60) },
      longestNs: 31n * day,
      longer: "cutDown",
    };
    const rows = (factors: number[]) => world({ fills: hours(60).map((n) => n * 24), factors });
    const found = await stateOf({ ...manners, defaultWindowNs: day }, met("factors"), {
      rows: rows([24 * 50]),
    });
    expect(found.state).toBe("COMPLETE");
    expect((await stateOf(manners, met("factors"), { rows: rows([]) })).state).toBe("COMPLETE");
  });

  it("is fetched after all where the bounds bring rows", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: hours(100), factors: [1, 2] }), {
      literal: true,
      times,
      defaultWindowNs: at(3) - at(0),
    });
    const { manifest } = await tables.archiveRun(source);
    expect(manifest.state).toBe("COMPLETE");
    await tables.expectRows("factors", source.tables.get("factors")!);
  });

  it("is UNVERIFIED on a dead route that gave rows of no run", async () => {
    const rows = world({ fills: hours(30), factors: hours(30) });
    const { state } = await stateOf({ literal: true, deadRoutes: ["factors"] }, met("fills"), { rows });
    expect(state).toBe("UNVERIFIED");
  });
});

describe("a table of which storage facts count no rows", () => {
  it("is COMPLETE where nothing comes on bounds that other tables have shown", async () => {
    const { state, asked } = await stateOf({}, met());
    expect(state).toBe("COMPLETE");
    expect(asked.filter(({ table }) => table === "factors")).toHaveLength(1);
  });

  it("has its bounds shown by a table that is not archived with it", async () => {
    const { state, asked } = await stateOf({}, met(), { only: ["factors"] });
    expect(state).toBe("COMPLETE");
    expect(asked.filter(({ table }) => table === "fills")).toHaveLength(4);
  });

  it("is COMPLETE in a run of which they count no row at all", async () => {
    expect((await stateOf({}, met(), { rows: world({ fills: [], factors: [] }) })).state).toBe("COMPLETE");
  });

  it("rests on bounds as soon as another table of the run has rows", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: [], factors: [] }), { final: false, times });
    const groundsAt = async (hour: number) => {
      const { manifest } = await tables.archiveRun(source, { clock: () => at(hour) });
      return manifest.tables.factors!.proven!.certificate!.restsOn;
    };
    expect(await groundsAt(2)).toEqual(["storage facts that count no row of the run"]);
    source.tables.set("fills", world({ fills: hours(9) }).get("fills")!);
    const grounds = [expect.stringContaining("no rows on"), "storage facts that count none"];
    expect(await groundsAt(20)).toEqual(grounds);
    expect(await groundsAt(30)).toEqual(grounds);
  });

  it("is not that where not even one row of the run can be asked for", async () => {
    const refuses: Manners["refuses"] = ({ limit }) =>
      limit === 1 ? new RunvaultError("invalid_argument", "no") : undefined;
    const rows = world({ fills: [], factors: [] });
    expect((await stateOf({ refuses }, met(), { rows })).state).toBe("UNVERIFIED");
  });

  it("is COMPLETE though another table that could show the bounds fails", async () => {
    const refuses: Manners["refuses"] = ({ table }) =>
      table === "fills" ? new RunvaultError("resource_not_found", "not here") : undefined;
    const rows = world({ fills: hours(9), orders: hours(9), factors: [] });
    expect((await stateOf({ refuses }, met(), { rows, only: ["factors"] })).state).toBe("COMPLETE");
  });

  it("is UNVERIFIED where the summary counts some", async () => {
    const rows = world({ orders: hours(9), fills: [] });
    expect((await stateOf({ summary: { fills: "3" } }, met(), { rows })).state).toBe("UNVERIFIED");
  });

  it("is not contradicted by a summary that counts rows behind the horizon", async () => {
    await using tables = await TableWorld.create();
    const manners: Manners = { final: false, times, summary: { fills: "1" } };
    const source = new ArraySource(run, world({ orders: hours(9), fills: [50] }), manners);
    const clock = () => at(40);
    expect((await tables.archiveRun(source, { clock })).manifest.tables.fills!.state).toBe("OPEN");
    source.tables.set("fills", []);
    await using others = await TableWorld.create();
    expect((await others.archiveRun(source, { clock })).manifest.tables.fills!.state).toBe("UNVERIFIED");
  });

  it("is INCOMPLETE where the run goes on and has a row of it that they do not count yet", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: hours(9), factors: [] }), { times, final: false });
    expect((await tables.archiveRun(source)).manifest.state).toBe("OPEN");
    const lagging = new ArraySource(run, world({ fills: hours(20), factors: [] }), { times, final: false });
    source.tables = world({ fills: hours(20), factors: [15] });
    const facts = source.facts.bind(source);
    source.facts = (...asked) => lagging.facts(...asked);
    const behind = await tables.archiveRun(source);
    expect(latestView(behind.manifest.tables.factors)).toMatchObject({ state: "INCOMPLETE" });
    source.facts = facts;
    expect((await tables.archiveRun(source)).manifest.state).toBe("OPEN");
    await tables.expectRows("factors", source.tables.get("factors")!);
  });

  it("is INCOMPLETE where a row of it comes all the same", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: hours(3), factors: [1] }), { times });
    const without = new ArraySource(run, two(), { times });
    source.facts = async (ref, bounds) => {
      const facts = new Map(await new ArraySource(run, source.tables, { times }).facts(ref, bounds));
      return facts.set("factors", (await without.facts(ref, bounds))!.get("factors")!);
    };
    const { manifest } = await tables.archiveRun(source);
    expect(latestView(manifest.tables.factors)).toMatchObject({
      state: "INCOMPLETE",
      error: { code: "incomplete" },
    });
  });
});

describe.each([31n, 1n])(
  "where no row of the run is counted yet, and no more than %s days are answered at once",
  (days) => {
    const manners: Manners = { times, longestNs: days * day, longer: "cutDown" };

    it("a table is INCOMPLETE of which bounds near the run bring a row", async () => {
      await using tables = await TableWorld.create();
      const source = new ArraySource(run, world({ fills: hours(3, 40) }), manners);
      const before = new ArraySource(run, world({ fills: [] }), manners);
      source.facts = (...asked) => before.facts(...asked);
      const { manifest } = await tables.archiveRun(source);
      expect(latestView(manifest.tables.fills)).toMatchObject({
        state: "INCOMPLETE",
        error: { code: "incomplete" },
      });
    });

    it("the operator's word does not outweigh such a row", async () => {
      await using tables = await TableWorld.create();
      const literal = { ...manners, literal: true, defaultWindowNs: at(3) - at(0) };
      const source = new ArraySource(run, world({ fills: hours(3, 40) }), literal);
      const seen = new SeenSource(undefined, ["fills"]);
      expect((await tables.archiveRun(source, { seen })).manifest.state).toBe("COMPLETE");
      await tables.expectRows("fills", source.tables.get("fills")!);
    });
  },
);

describe("the operator's word that a table holds no rows", () => {
  it("proves it, is kept for the instance, and is forgotten once rows come", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, two(), { literal: true, times });
    expect((await tables.archiveRun(source)).manifest.tables.factors!.state).toBe("UNVERIFIED");
    const seen = new SeenSource(undefined, ["factors"]);
    expect((await tables.archiveRun(source, { seen })).manifest.tables.factors!.state).toBe("COMPLETE");
    expect(await knownSource(tables.archive, source.label)).toMatchObject({ empty: { alpha: ["factors"] } });
    // another run, another command
    const next = { ...run, runId: "2022-01-02" };
    const later = new ArraySource(next, world({ factors: [] }), { literal: true, times });
    const second = await tables.archiveRun(later, { run: next, tables: ["factors"] });
    expect(second.manifest.tables.factors!.state).toBe("COMPLETE");
    const filled = new ArraySource(run, world({ fills: hours(30), factors: [4] }), {
      literal: true,
      times,
      final: true,
    });
    await using others = await TableWorld.create();
    await rememberSource(others.archive, source.label, (known) => ({
      ...known,
      empty: { alpha: ["factors"], beta: ["fills"] },
    }));
    expect((await others.archiveRun(filled)).manifest.state).toBe("COMPLETE");
    await others.expectRows("factors", filled.tables.get("factors")!);
    const { empty, routes } = await knownSource(others.archive, source.label);
    expect({ empty, routes }).toEqual({ empty: { beta: ["fills"] }, routes: ["factors", "fills"] });
  });

  it("does not outweigh rows that come", async () => {
    const rows = world({ fills: hours(100), factors: [1, 2] });
    const seen = new SeenSource(undefined, ["factors"]);
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, rows, { literal: true, times, defaultWindowNs: at(3) - at(0) });
    expect((await tables.archiveRun(source, { seen })).manifest.state).toBe("COMPLETE");
    await tables.expectRows("factors", rows.get("factors")!);
  });

  it("does not outweigh a row on bounds that nothing has shown", async () => {
    const rows = world({ factors: [1] });
    const seen = new SeenSource(undefined, ["factors"]);
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, rows, { literal: true, times, defaultWindowNs: at(3) - at(0) });
    expect((await tables.archiveRun(source, { seen })).manifest.state).toBe("COMPLETE");
    await tables.expectRows("factors", rows.get("factors")!);
  });
});

describe("an id that names no run", () => {
  it.each([
    ["2022-01-01-001", "7022-01-01-001"],
    ["run-2", "eha-7"],
    ["f3a09b1c-0000-4000-8000-00000000000d", "c8d09e1f-0000-4000-8000-00000000000a"],
    ["東京", "東京"],
  ])("has the form of %s", (id, made) => {
    expect(madeUpId(id)).toBe(made);
  });
});

describe("a summary that counts more than came", () => {
  const notesOf = async (manners: Manners, counted: string) => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, two(), { times, summary: { fills: counted }, ...manners });
    const { manifest } = await tables.archiveRun(source, { seen: met("factors") });
    expect(manifest.tables.fills!.attempt.outcome).toBe("ok");
    return manifest.tables.fills!.attempt.notes;
  };

  // caught by: a summary that is read only where a table has no rows at all
  it.each([false, true])("is a note on a finished run, and no failure (no facts: %s)", async (literal) => {
    expect(await notesOf({ literal }, "31")).toEqual([
      "the run's summary counts 31 fills, but only 30 rows came",
    ]);
  });

  // caught by: a note each night of a run whose summary is ahead of its horizon, or counts no more than came
  it("is none where the run goes on, or where as many came", async () => {
    expect(await notesOf({ final: false }, "31")).toEqual([]);
    expect(await notesOf({}, "30")).toEqual([]);
    expect(await notesOf({}, "many")).toEqual([]);
  });
});
