// @module-tag slow
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { latestView } from "../../src/archive/manifest/table-view.ts";
import { openArchiveSource } from "../../src/archive/read/archive-source.ts";
import { serve } from "../../src/serve/server.ts";
import { FormerArchive, formerRun } from "../fixtures/archive/former-archive.ts";
import { at } from "../fixtures/archive/table-world.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import type { ArraySource } from "../fixtures/source/array-source.ts";

const committedRuns = ["growing", "kept", "kept-open", "progress", "uncounted", "unproven", "weak", "whole"];
/** Rows of fills that are proven, by run. */
const proven = { growing: 5, kept: 6, "kept-open": 3, uncounted: 6, whole: 6 };

let former: FormerArchive;
const command = (...args: string[]) => runInside([...args, "--archive", former.dir]);

describe("an archive of format 1 is read as it was left", () => {
  beforeAll(async () => {
    former = await FormerArchive.copy();
  });
  afterAll(async () => {
    // nothing here was a commit
    for (const runId of committedRuns) expect([runId, await former.formatOf(runId)]).toEqual([runId, 1]);
    await former[Symbol.asyncDispose]();
  });

  test("query, files and export show what was proven, also by a generation before, and say what was not", async () => {
    const sql = "SELECT run_id, count(*) AS n FROM fills GROUP BY ALL ORDER BY ALL";
    const asked = await command("query", "-f", "csv", sql);
    const rows = Object.entries(proven).map(([run, n]) => `${run},${n}`);
    expect(asked.stdout).toBe(`run_id,n\n${rows.join("\n")}\n`);
    const files = await command("export", "--list", "fills");
    const listed = files.stdout.trimEnd().split("\n");
    expect(listed.map((file) => file.split("/").at(-2))).toEqual(Object.keys(proven));
    const exported = await command("export", "fills", "-f", "ndjson", "-o", "-");
    expect(exported.stdout.trimEnd().split("\n")).toHaveLength(26);
    for (const { status, stderr } of [asked, files, exported]) {
      expect(status).toBe(0);
      expect(stderr).toContain(
        "are not complete and were left out: fills of alpha/progress (INCOMPLETE), fills of alpha/unproven (QUARANTINED)",
      );
      expect(stderr).toContain(
        "are out of date and shown as proven earlier: fills of alpha/kept (INCOMPLETE since 2022-02-01T",
      );
      expect(stderr).toContain("fills of alpha/kept-open (INCOMPLETE since 2022-02-01T");
    }
    const all = await command("query", "-f", "csv", "SELECT count(*) FROM fills", "--allow-incomplete");
    expect(all.stdout.split("\n")[1]).toBe(String(26 + 9 + 5 + 4));
    expect((await command("query", sql, "--strict")).status).toBe(4);
  });

  test("runs has the state of each, and why and since when a table is behind", async () => {
    const { status, stdout } = await command("runs", "--json");
    expect(status).toBe(0);
    const { runs } = JSON.parse(stdout);
    const byId = Object.fromEntries(runs.map((run: { runId: string }) => [run.runId, run]));
    const pending = ["cut-counted", "cut-moved", "cut-surveyed"];
    expect(Object.keys(byId)).toEqual([...committedRuns, ...pending].toSorted());
    for (const id of pending) expect(byId[id]).toMatchObject({ state: "pending", generation: null });
    expect(byId.whole.tables).toMatchObject({
      fills: { state: "COMPLETE", proven: "COMPLETE", proof: "counted", rows: 6, behindSince: null },
      bars: { state: "COMPLETE", rows: 0 },
      metrics: { state: "ABSENT", proven: "ABSENT", rows: null },
    });
    expect(byId.growing.tables.fills).toMatchObject({ state: "OPEN", proven: "OPEN" });
    expect(byId.kept.tables.fills).toMatchObject({
      state: "INCOMPLETE",
      proven: "COMPLETE",
      error: "server_error",
    });
    expect(byId["kept-open"].tables.fills).toMatchObject({ state: "INCOMPLETE", proven: "OPEN", rows: 3 });
    expect(byId.progress.tables.fills).toMatchObject({ state: "INCOMPLETE", proven: null });
    expect(byId.unproven.tables).toMatchObject({
      fills: { state: "QUARANTINED", proven: null, reason: "1 row set aside" },
      orders: { state: "INCOMPLETE", proven: null },
      factors: { state: "UNVERIFIED", proven: null, error: "unverified" },
    });
    expect(byId.weak.tables.fills).toMatchObject({
      state: "UNVERIFIED",
      proven: null,
      reason: "its proof (exhausted) is weaker than required",
    });
    expect(byId.uncounted.tables).toMatchObject({ fills: { proof: "exhausted" }, bars: { rows: 0 } });
  });

  test.each([[[]], [["--deep"]], [["--sample", "50%"]]])(
    "verify %j finds nothing damaged in it",
    async (more) => {
      const { status, stdout } = await command("verify", "--json", ...more);
      const { runs } = JSON.parse(stdout);
      // biome-ignore lint/suspicious/noExplicitAny: a report of JSON
      const states = runs.map((report: any) => [report.run.runId, report.damaged, report.unproven]);
      const unproven = ["kept", "kept-open", "progress", "unproven", "weak"];
      expect(states.sort()).toEqual(
        committedRuns.toSorted().map((runId) => [runId, false, unproven.includes(runId)]),
      );
      expect(status).toBe(4);
    },
  );

  test("verify --against holds it against its gateway", async () => {
    await using source = former.source("whole", { fills: 6 });
    source.storageVersion = "1";
    await using served = await servedBy(source);
    const { status, stdout } = await command("verify", "alpha/whole", "--against", served.url);
    expect([status, stdout]).toEqual([0, expect.stringContaining("verified")]);
    source.tables.set("fills", source.tables.get("fills")!.toSpliced(2, 1));
    const less = await command("verify", "alpha/whole", "--against", served.url);
    expect(less).toMatchObject({
      status: 4,
      stdout: expect.stringContaining("6 rows archived, but the gateway counts 5"),
    });
  });

  test("diff finds it equal to itself", async () => {
    const { status, stdout } = await runInside(["maintain", "diff", former.dir, former.dir]);
    expect([status, stdout]).toEqual([0, expect.stringMatching(/\nequal\n$/)]);
  });

  test("serve answers with what is proven, and 409 where nothing is", async () => {
    await using served = await servedBy(openArchiveSource(former.archive));
    for (const runId of committedRuns) {
      const answer = await fetch(`${served.url}/history/fills?instance=alpha&run_id=${runId}`);
      const rows = (proven as Record<string, number>)[runId];
      expect([runId, answer.status]).toEqual([runId, rows === undefined ? 409 : 200]);
      const text = await answer.text();
      if (rows !== undefined) expect(text.trimEnd().split("\n")).toHaveLength(rows);
      else expect(JSON.parse(text).error.code).toBe("history_incomplete");
    }
    const absent = await fetch(`${served.url}/history/portfolio/metrics?instance=alpha&run_id=whole`);
    expect(absent.status).toBe(409);
  });
});

describe("an archive of format 1 goes on", () => {
  beforeEach(async () => {
    former = await FormerArchive.copy();
  });
  afterEach(() => former[Symbol.asyncDispose]());

  /** What a run's next job makes of it. */
  const archived = async (source: ArraySource, more: Parameters<FormerArchive["archiveRun"]>[1] = {}) => {
    const outcome = await former.archiveRun(source, more);
    const { runId } = source.run;
    return { ...outcome, format: await former.formatOf(runId), tables: outcome.manifest.tables };
  };

  test("a job that finds nothing to do leaves the manifest as it is", async () => {
    const source = former.source("whole", { fills: 6, bars: 0 });
    expect(await archived(source)).toMatchObject({ changed: false, format: 1 });
    await using served = await servedBy(source);
    const gateway = ["--gateway", served.url, "--tables", "fills,bars"];
    const { status, stderr } = await command("archive", "alpha/whole", ...gateway);
    expect([status, await former.formatOf("whole")], stderr).toEqual([0, 1]);
    // but whether the address is that of the source it was archived from
    expect(source.asked[0]).toMatchObject({ table: "fills", from: at(0), to: at(0) + 1n });
    for (const runId of ["growing", "kept", "unproven"]) {
      await using other = await servedBy(former.source(runId, { fills: 8 }));
      const plan = await command(
        "archive",
        `alpha/${runId}`,
        "--gateway",
        other.url,
        "--tables",
        "fills",
        "--dry-run",
      );
      expect([runId, plan.status, await former.formatOf(runId)], plan.stderr).toEqual([runId, 0, 1]);
    }
  });

  test("zero rows that two passes agreed upon are asked for again once", async () => {
    // the route of bars has given rows, if not of this run
    await former.archiveRun(former.source("other", { bars: 3 }, { literal: true }));
    const source = former.source("uncounted", { fills: 6, bars: 0 }, { literal: true });
    const first = await archived(source);
    expect(first).toMatchObject({ changed: true, format: 2, rows: 0 });
    expect(first.tables.bars).toMatchObject({
      state: "COMPLETE",
      proven: { certificate: { rows: 0, proof: "exhausted" } },
    });
    expect(first.tables.bars!.proven!.certificate!.restsOn).not.toEqual([]);
    source.asked.length = 0;
    expect(await archived(source)).toMatchObject({ changed: false, format: 2 });
    expect(source.asked).toEqual([]);
  });

  test("zero rows of a route that never gave any stay proven, and are told to be in doubt", async () => {
    const source = former.source("uncounted", { fills: 6, bars: 0 }, { literal: true });
    const { tables } = await archived(source);
    expect(tables.bars).toMatchObject({
      state: "UNVERIFIED",
      proven: { state: "COMPLETE", certificate: { rows: 0 } },
      attempt: { error: { hint: expect.stringContaining("--empty bars") } },
    });
    expect((await command("query", "SELECT * FROM bars WHERE run_id = 'uncounted'")).stderr).toContain(
      "bars of alpha/uncounted (UNVERIFIED since",
    );
  });

  test("zero rows that turn out to be some are fetched", async () => {
    const source = former.source("uncounted", { fills: 6, bars: 3 }, { literal: true });
    const { tables } = await archived(source);
    expect(tables.bars).toMatchObject({ state: "COMPLETE", proven: { certificate: { rows: 3 } } });
  });

  test.each([
    ["growing", { fills: 8 }, { final: false }, "OPEN", 8],
    ["growing", { fills: 8 }, {}, "COMPLETE", 8],
    ["kept", { fills: 8 }, {}, "COMPLETE", 8],
    ["kept-open", { fills: 8 }, { final: false }, "OPEN", 8],
    ["progress", { fills: 12 }, { final: false }, "OPEN", 12],
    ["weak", { fills: 4 }, { literal: true }, "COMPLETE", 4],
  ] as const)(
    "%s with %j of %j becomes %s of %i rows, in format 2",
    async (runId, rows, manners, state, count) => {
      const source = former.source(runId, rows, manners);
      if (runId === "kept") source.storageVersion = "2";
      const { tables, format } = await archived(source);
      expect(format).toBe(2);
      expect(tables.fills).toMatchObject({
        state,
        attempt: { outcome: "ok" },
        proven: { certificate: { rows: count } },
      });
      const { stdout } = await command("verify", "--deep", `alpha/${runId}`);
      expect(stdout).toContain(`alpha/${runId}  verified`);
    },
  );

  test("what was proven stays where its next attempt fails, too", async () => {
    for (const [runId, state] of [
      ["kept", "COMPLETE"],
      ["kept-open", "OPEN"],
    ] as const) {
      const before = (await former.archive.manifest(formerRun(runId)))!.tables.fills!;
      const source = former.source(runId, { fills: 8 }, { final: runId === "kept", cuts: Array(99).fill(0) });
      source.storageVersion = "2";
      const { tables, format } = await archived(source);
      expect([runId, format]).toEqual([runId, 2]);
      expect(tables.fills).toMatchObject({ state: "INCOMPLETE", proven: { ...before.proven, state } });
      expect(tables.fills!.attempt.behindSince).toBe(before.attempt.behindSince);
    }
  });

  test("rows set aside, failures and doubts are mended", async () => {
    const source = former.source("unproven", { fills: 6, orders: 4, factors: 4 });
    const { tables, format } = await archived(source);
    expect(format).toBe(2);
    for (const [name, rows] of [
      ["fills", 6],
      ["orders", 4],
      ["factors", 4],
    ] as const) {
      expect(tables[name]).toMatchObject({ state: "COMPLETE", proven: { certificate: { rows } } });
    }
  });

  test.each([
    ["cut-counted", {}, 2],
    // full scans say more now: one of then is made again
    ["cut-surveyed", { literal: true }, 2],
    ["cut-moved", { literal: true }, 6],
  ] as const)("work that a kill left is finished: %s", async (runId, manners, resumed) => {
    const source = former.source(runId, { fills: 12 }, manners);
    const { tables, format, resumedSegments } = await archived(source);
    expect([format, resumedSegments]).toEqual([2, resumed]);
    expect(tables.fills).toMatchObject({ state: "COMPLETE", proven: { certificate: { rows: 12 } } });
    expect((await command("verify", "--deep", `alpha/${runId}`)).stdout).toContain("verified");
  });

  test("rebuild makes its Parquet anew, in wider types, and writes format 2", async () => {
    const rebuilt = await command("maintain", "rebuild", "--widen", "fills.price=38,18");
    expect(rebuilt.status).toBe(0);
    for (const runId of committedRuns) {
      expect([runId, await former.formatOf(runId)]).toEqual([runId, 2]);
      const table = (await former.archive.manifest(formerRun(runId)))!.tables.fills!;
      expect(latestView(table).exactTypes.price).toBe("DECIMAL(38,18)");
    }
    const { stdout } = await command("query", "-f", "csv", "SELECT count(*) FROM fills");
    expect(stdout.split("\n")[1]).toBe("26");
    const { runs } = JSON.parse((await command("verify", "--deep", "--json")).stdout);
    expect(runs.filter(({ damaged }: { damaged: boolean }) => damaged)).toEqual([]);
  });

  test("rm removes its runs", async () => {
    const names = [...committedRuns, "cut-counted", "cut-surveyed", "cut-moved"].map(
      (runId) => `alpha/${runId}`,
    );
    expect((await command("rm", ...names)).status).toBe(0);
    expect((await command("runs")).stdout).toBe("no runs\n");
  });
});

async function servedBy(source: Parameters<typeof serve>[0]["source"]) {
  const served = await serve({ source, host: "127.0.0.1", port: 0, onError: () => {} });
  return { url: served.url, [Symbol.asyncDispose]: () => served.close() };
}
