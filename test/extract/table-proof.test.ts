import { readdir } from "node:fs/promises";
import { dirname } from "node:path";
import { describe, expect, it } from "vitest";
import { latestView } from "../../src/archive/manifest/table-view.ts";
import { hours, repriced, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

describe("the facts' bounds", () => {
  it.each(["from", "to"] as const)(
    "are found out where `%s` is ignored: a run that goes on is then not proven",
    async (factsIgnore) => {
      await using tables = await TableWorld.create();
      const source = new ArraySource(run, world({ fills: hours(30) }), { final: false, factsIgnore });
      const { manifest } = await tables.archiveRun(source);
      expect(manifest.tables.fills!.attempt.error?.code).toBe("unverified");
      source.manners = { factsIgnore };
      expect((await tables.archiveRun(source)).manifest.state).toBe("COMPLETE");
      await tables.expectRows("fills", source.tables.get("fills")!);
    },
  );

  it("say enough of a run that goes on and has no rows yet", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: [] }), { final: false });
    const { manifest } = await tables.archiveRun(source);
    expect(latestView(manifest.tables.fills)).toMatchObject({
      state: "OPEN",
      certificate: { proof: "counted", rows: 0 },
    });
  });

  it("are not trusted before there is a row to try them on", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: [] }), { final: false, factsIgnore: "from" });
    const facts = source.facts.bind(source);
    let asked = 0;
    // the first rows come between the first question and the next
    source.facts = async (ref, bounds) => {
      const answer = await facts(ref, bounds);
      if (asked++ === 0) source.tables = world({ fills: hours(30) });
      return answer;
    };
    const { manifest } = await tables.archiveRun(source);
    expect(latestView(manifest.tables.fills!).certificate!.proof).toBe("none");
  });
});

it("two passes that bring as many rows, but not the same ones, prove nothing", async () => {
  await using tables = await TableWorld.create();
  const source = new ArraySource(run, world({ fills: hours(30) }), { literal: true });
  const rows = source.tables.get("fills")!;
  const other = new ArraySource(
    run,
    new Map([["fills", rows.toSpliced(15, 1, ...repriced(rows.slice(15, 16)))]]),
    { literal: true },
  );
  const all = source.rows.bind(source);
  // always the same: a pass that is made once more brings those of before
  source.rows = (request) => (request.from === undefined ? all(request) : other.rows(request));
  const { manifest } = await tables.archiveRun(source);
  expect(manifest.tables.fills).toMatchObject({
    state: "UNVERIFIED",
    attempt: { error: { message: expect.stringContaining("but not the same rows") } },
  });
});

describe("a job that is done", () => {
  it("leaves no folder of the instance among what is pending or half-written", async () => {
    await using tables = await TableWorld.create();
    await tables.archiveRun(new ArraySource(run, world({ fills: [1] })));
    const { layout } = tables.archive;
    for (const folder of [layout.pendingDir(run), layout.stagingDir(run)]) {
      expect(await readdir(dirname(dirname(folder)))).toEqual([]);
    }
  });

  it("has certified a stream as clean that ended so, with a wrong count as well", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: hours(5) }));
    const facts = source.facts.bind(source);
    source.facts = async (ref, bounds) => {
      const honest = await facts(ref, bounds);
      const fills = honest!.get("fills")!;
      return bounds.from === undefined
        ? new Map(honest).set("fills", { ...fills, rows: fills.rows + 1n })
        : honest;
    };
    const { manifest } = await tables.archiveRun(source);
    expect(latestView(manifest.tables.fills)).toMatchObject({
      state: "INCOMPLETE",
      certificate: { ended: "clean", proof: "none", rows: 5, gatewayRows: "6" },
    });
  });

  it("has told of rows as they passed: those of a full scan as well as those stored", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, world({ fills: hours(30) }), { literal: true });
    let passed = 0;
    let scanned: number | undefined;
    let expected: number | undefined;
    const outcome = await tables.archiveRun(source, {
      onRows: (_, rows) => {
        passed += rows;
      },
      onPlan: (_, rows) => {
        scanned = passed;
        expected = rows;
      },
    });
    expect(scanned).toBeGreaterThanOrEqual(30);
    expect(expected).toBe(30 + scanned!);
    expect(outcome.rows).toBe(passed - scanned!);
  });
});
