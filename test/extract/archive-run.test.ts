// @module-tag slow
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Archive, openArchive } from "../../src/archive/archive.ts";
import { latestView } from "../../src/archive/manifest/table-view.ts";
import { SeenSource } from "../../src/extract/proof/seen-source.ts";
import { type ArchiveJob, archiveRun } from "../../src/extract/run/archive-run.ts";
import { RunvaultError } from "../../src/model/error.ts";
import { type TableName, tableNames } from "../../src/model/profile/table.ts";
import { parseTime } from "../../src/model/time.ts";
import { rowHash } from "../../src/row/row-hash.ts";
import { parquetLines, segmentLines } from "../fixtures/archive/archived-lines.ts";
import { sharedDuckDB } from "../fixtures/archive/shared-duckdb.ts";
import { type ArrayRow, ArraySource, type Manners, rowsAt } from "../fixtures/source/array-source.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";
import { isTestAll } from "../fixtures/trials/cases.ts";

const run = { instanceId: "alpha", runId: "2022-01-01" };
const hour = 3_600_000_000_000n;
const start = 1_640_995_200_000_000_000n;

let folder: string;
let archive: Archive;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-archive-run-"));
  archive = await openArchive(join(folder, "archive"), { create: true });
});
afterEach(() => rm(folder, { recursive: true, force: true }));

function jobFor(source: ArraySource, more: Partial<ArchiveJob> = {}): ArchiveJob {
  const settings = { segmentBytes: 3000, sliceRows: 20, concurrency: 2, ...more.settings };
  return {
    source,
    archive,
    run,
    clock: () => start + 1_000_000n * hour,
    retry: quickRetry(),
    signal: new AbortController().signal,
    tool: "test",
    duckdb: sharedDuckDB,
    // an archive that has met the source before: each route has given rows of some run
    seen: new SeenSource({ routes: tableNames, empty: {} }),
    ...more,
    settings,
  };
}

function world(rows: Partial<Record<TableName, readonly bigint[]>>): Map<TableName, ArrayRow[]> {
  return new Map(tableNames.map((name) => [name, rowsAt(run, name, rows[name] ?? [], ["A", "B", "C"])]));
}

const hours = (...at: number[]) => at.map((n) => start + BigInt(n) * hour);

async function expectArchived(source: ArraySource): Promise<void> {
  for (const name of tableNames) {
    const lines = source.rowsWithin(name, {}).map(({ line }) => line);
    expect(await segmentLines(archive, run, name)).toEqual(lines);
    expect(await parquetLines(archive, run, name)).toEqual(lines);
  }
}

describe("archiving a run", () => {
  it("commits all eight tables as COMPLETE, counted, with the source's lines in segments and in Parquet", async () => {
    const source = new ArraySource(
      run,
      world(Object.fromEntries(tableNames.map((name, i) => [name, hours(1, 2, 2, 3 + i)]))),
    );
    const { manifest, changed } = await archiveRun(jobFor(source));
    expect(changed).toBe(true);
    expect(manifest).toMatchObject({ state: "COMPLETE", generation: 1, horizon: null });
    for (const name of tableNames) {
      expect(latestView(manifest.tables[name])).toMatchObject({
        state: "COMPLETE",
        certificate: { proof: "counted", rows: 4, gatewayRows: "4" },
      });
    }
    await expectArchived(source);
    expect(await readdir(join(folder, "archive", "tables", "fills", "alpha", "2022-01-01"))).toEqual([
      "all.parquet",
    ]);
  });

  it("asks for nothing a second time when the archive already holds the finished run", async () => {
    const source = new ArraySource(run, world({ fills: hours(1, 2) }));
    await archiveRun(jobFor(source));
    const asked = source.asked.length;
    const again = await archiveRun(jobFor(source));
    expect(again).toMatchObject({ changed: false, manifest: { generation: 1 } });
    expect(source.asked.length).toBe(asked);
  });

  it("proves a source without facts by exhaustion, and calls that UNVERIFIED when counts are required", async () => {
    const source = new ArraySource(
      run,
      world({ fills: hours(1, 2, 2, 3), bars: hours(...Array(40).keys()) }),
      { literal: true },
    );
    const { manifest } = await archiveRun(jobFor(source));
    expect(manifest.state).toBe("COMPLETE");
    expect(manifest.tables.fills!.proven!.certificate).toMatchObject({
      proof: "exhausted",
      rows: 4,
      gatewayRows: null,
    });
    await expectArchived(source);
    const strict = await archiveRun(jobFor(source, { settings: { require: "counted" } }));
    expect(strict.manifest.tables.fills!.state).toBe("UNVERIFIED");
  });

  it("equals the world line for line over random worlds, caps, cuts and slice plans", async () => {
    const times = fc.array(fc.integer({ min: 0, max: 60 }), { maxLength: 80 });
    await fc.assert(
      fc.asyncProperty(
        times,
        times,
        fc.integer({ min: 1, max: 30 }),
        fc.array(fc.option(fc.integer({ min: 0, max: 20_000 }), { nil: undefined }), { maxLength: 4 }),
        fc.integer({ min: 500, max: 6000 }),
        fc.integer({ min: 1, max: 40 }),
        fc.boolean(),
        async (fills, factors, more, cuts, segmentBytes, sliceRows, literal) => {
          await rm(join(folder, "archive"), { recursive: true, force: true });
          archive = await openArchive(join(folder, "archive"), { create: true });
          const cap =
            Math.max(
              0,
              ...[fills, factors].flatMap((at) => at.map((ts) => at.filter((other) => other === ts).length)),
            ) + more;
          const source = new ArraySource(run, world({ fills: hours(...fills), factors: hours(...factors) }), {
            cap,
            cuts,
            literal,
          });
          const { manifest } = await archiveRun(jobFor(source, { settings: { segmentBytes, sliceRows } }));
          // where nothing counts rows and the run has none, there is no known row to try bounds on
          const isShown = !literal || fills.length + factors.length > 0;
          // rows of one timestamp alone, which nothing counts: an answer that has more may show that no cap hid others
          const isAlone = [fills, factors].some((at) => new Set(at).size === 1);
          if (literal && isAlone && manifest.state === "UNVERIFIED") return;
          expect(manifest.state).toBe(isShown ? "COMPLETE" : "UNVERIFIED");
          await expectArchived(source);
        },
      ),
      // an answer that only says whether there is more is cut, too; rows of one timestamp alone
      {
        numRuns: isTestAll ? 25 : 8,
        examples: [
          [[0], [], 1, [undefined, 0, undefined, 0], 500, 1, true],
          [[56, 56], [], 1, [], 500, 1, true],
        ],
      },
    );
  });

  it("archives a run that goes on up to its horizon, takes appended and late rows in, and ends COMPLETE", async () => {
    const all = world({ fills: hours(...Array(60).keys()), orders: hours(1, 5, 9) });
    const revealed = (count: number, late: number[]) =>
      new Map([...all].map(([name, rows]) => [name, rows.filter((_, i) => i < count && !late.includes(i))]));
    const manners: Manners = { final: false };
    const source = new ArraySource(run, revealed(30, [7, 8]), manners);
    const first = await archiveRun(jobFor(source));
    expect(first.manifest).toMatchObject({ state: "OPEN", horizon: (start + 29n * hour + 1n).toString() });
    expect(await segmentLines(archive, run, "fills")).toEqual(
      source.rowsWithin("fills", { to: start + 29n * hour + 1n }).map(({ line }) => line),
    );

    source.tables.set("fills", revealed(45, [8]).get("fills")!);
    source.asked.length = 0;
    const second = await archiveRun(jobFor(source));
    expect(second.manifest).toMatchObject({ state: "OPEN", generation: 2 });
    expect(await parquetLines(archive, run, "fills")).toEqual(
      source.rowsWithin("fills", { to: start + 44n * hour + 1n }).map(({ line }) => line),
    );
    // only the window the late row fell into was asked for again, and what was appended
    const refetched = source.asked.filter(
      ({ table, to, limit }) => table === "fills" && to! <= start + 29n * hour + 1n && limit === undefined,
    );
    expect(refetched).toHaveLength(1);

    source.tables = all;
    source.manners = { final: true };
    const last = await archiveRun(jobFor(source));
    expect(last.manifest).toMatchObject({ state: "COMPLETE", horizon: null });
    await expectArchived(source);
  });

  it("equals the world through late rows, growth and interruptions at any step", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 4, maxLength: 60 }),
        fc.array(fc.nat({ max: 59 }), { maxLength: 6 }),
        fc.array(fc.nat({ max: 40 }), { maxLength: 4 }),
        async (times, late, stops) => {
          await rm(join(folder, "archive"), { recursive: true, force: true });
          archive = await openArchive(join(folder, "archive"), { create: true });
          const all = world({ fills: hours(...times), events: hours(...times.slice(0, 9)) });
          const withhold = (rows: ArrayRow[]) =>
            rows.filter((_, i) => !late.includes(i) && i < (rows.length * 2) / 3);
          const source = new ArraySource(
            run,
            new Map([...all].map(([name, rows]) => [name, withhold(rows)])),
            { final: false },
          );
          await archiveRun(jobFor(source, { settings: { segmentBytes: 1500, sliceRows: 10 } }));
          source.tables = all;
          source.manners = { final: true };
          for (const stop of stops) {
            const controller = new AbortController();
            let steps = 0;
            const step = () => {
              if (steps++ === stop) controller.abort(new RunvaultError("interrupted", "stopped by the test"));
            };
            const job = jobFor(source, {
              signal: controller.signal,
              step,
              settings: { segmentBytes: 1500, sliceRows: 10 },
            });
            // a stop behind the last step that heeds it changes nothing, and the job ends as if undisturbed
            await archiveRun(job).catch((error: unknown) =>
              expect(error).toMatchObject({ code: "interrupted" }),
            );
          }
          const { manifest } = await archiveRun(
            jobFor(source, { settings: { segmentBytes: 1500, sliceRows: 10 } }),
          );
          expect(manifest.state).toBe("COMPLETE");
          await expectArchived(source);
        },
      ),
      { numRuns: isTestAll ? 15 : 5 },
    );
  });

  it("fetches a window with rows set aside again, and is COMPLETE once the gateway has mended them", async () => {
    const source = new ArraySource(run, world({ fills: hours(1, 2, 3) }));
    const mended = source.tables.get("fills")!;
    source.tables.set(
      "fills",
      mended.map((row, i) => (i === 1 ? { ...row, line: "{" } : row)),
    );
    await archiveRun(jobFor(source));
    source.tables.set("fills", mended);
    const { manifest } = await archiveRun(jobFor(source));
    expect(latestView(manifest.tables.fills)).toMatchObject({
      state: "COMPLETE",
      quarantine: [],
      certificate: { rows: 3, quarantined: 0 },
    });
    await expectArchived(source);
  });

  it("keeps what was proven of a finished run's table that the gateway keeps no more, with a note", async () => {
    const source = new ArraySource(run, world({ fills: hours(1, 2, 3) }));
    await archiveRun(jobFor(source));
    source.storageVersion = "2";
    const facts = source.facts.bind(source);
    source.facts = async (ref, bounds) =>
      new Map([...(await facts(ref, bounds))!].filter(([name]) => name !== "fills"));
    const { manifest } = await archiveRun(jobFor(source));
    expect(manifest.tables.fills).toMatchObject({
      state: "COMPLETE",
      attempt: {
        outcome: "ok",
        notes: [expect.stringContaining("no longer has the table's 3 rows; what was proven stays")],
      },
    });
    expect(await segmentLines(archive, run, "fills")).toHaveLength(3);
  });

  it("puts a row hash into the certificate that anyone can compute from the lines", async () => {
    const source = new ArraySource(run, world({ fills: hours(1, 2, 3) }));
    await archiveRun(jobFor(source));
    const { manifest } = await archiveRun(jobFor(source, { settings: { fingerprint: true } }));
    const { rows, hash } = await rowHash(source.tables.get("fills")!.map(({ line }) => line));
    expect(manifest.tables.fills!.proven!.certificate!.rowHash).toEqual({
      rows: rows.toString(),
      sum: hash.toString(),
    });
  });

  it("fetches a finished run again whole when its storage version changed and no count did", async () => {
    const source = new ArraySource(run, world({ fills: hours(1, 2, 3) }));
    await archiveRun(jobFor(source));
    source.storageVersion = "2";
    source.tables.set(
      "fills",
      source.tables.get("fills")!.map((row) => ({ ...row, line: row.line.replace('"side":"', '"side":"x') })),
    );
    const { manifest } = await archiveRun(jobFor(source));
    expect(manifest).toMatchObject({ state: "COMPLETE", generation: 2 });
    await expectArchived(source);
  });

  it("never shrinks without being told to, and keeps the former rows meanwhile", async () => {
    const source = new ArraySource(run, world({ fills: hours(1, 2, 3) }));
    await archiveRun(jobFor(source));
    source.storageVersion = "2";
    source.tables.set("fills", source.tables.get("fills")!.slice(0, 2));
    const refused = await archiveRun(jobFor(source));
    expect(latestView(refused.manifest.tables.fills)).toMatchObject({
      state: "UNVERIFIED",
      error: { code: "shrunk" },
    });
    expect(await segmentLines(archive, run, "fills")).toHaveLength(3);
    const accepted = await archiveRun(jobFor(source, { settings: { acceptShrink: true } }));
    expect(accepted.manifest.tables.fills!.state).toBe("COMPLETE");
    await expectArchived(source);
  });

  it("sets a malformed row aside with its place and reason, and converts the rest", async () => {
    const source = new ArraySource(run, world({ fills: hours(1, 2, 3) }));
    const fills = source.tables.get("fills")!;
    fills[1] = { ...fills[1]!, line: fills[1]!.line.slice(0, 100) };
    const { manifest } = await archiveRun(jobFor(source));
    expect(latestView(manifest.tables.fills)).toMatchObject({
      state: "QUARANTINED",
      certificate: { rows: 2, quarantined: 1, gatewayRows: "3", proof: "counted" },
      quarantine: [{ rows: 1 }],
    });
    expect(await segmentLines(archive, run, "fills")).toEqual([fills[0]!.line, fills[2]!.line]);
    expect(await readdir(archive.layout.quarantineDir(run))).toHaveLength(1);
  });

  it("keeps rows that came out of order, sorted in Parquet", async () => {
    const source = new ArraySource(run, world({ fills: hours(1, 2, 3, 4) }));
    const [a, b, c, d] = source.tables.get("fills")!;
    source.tables.set("fills", [a!, c!, b!, d!]);
    const { manifest } = await archiveRun(jobFor(source));
    expect(latestView(manifest.tables.fills)).toMatchObject({
      state: "COMPLETE",
      segments: [{ sorted: false, rows: 4 }],
    });
    expect(await parquetLines(archive, run, "fills")).toEqual([a, b, c, d].map((row) => row!.line));
  });

  it("refuses a row that came twice among rows out of order, though the count is right", async () => {
    const source = new ArraySource(run, world({ fills: hours(1, 2, 3), orders: hours(1) }));
    const [a, b] = source.tables.get("fills")!;
    const honest = new ArraySource(run, new Map(source.tables));
    source.facts = honest.facts.bind(honest);
    source.tables.set("fills", [b!, a!, b!]);
    const { manifest } = await archiveRun(jobFor(source));
    expect(latestView(manifest.tables.fills)).toMatchObject({
      state: "INCOMPLETE",
      error: {
        code: "duplicate_row",
        message: expect.stringContaining(`ts_event ${b!.ts} and seq ${b!.seq}`),
      },
    });
    expect(manifest.tables.orders!.state).toBe("COMPLETE");
  });

  it.each([
    ["the second of three, counted by nobody", 1, { literal: true }],
    ["the second of four, and a cap on answers", 1, { cap: 3 }],
    ["the first, a cut behind it, and a cap on answers", 0, { cap: 2, cuts: [600] }],
  ])("sets a row without a key aside once: %s", async (_, bad, manners: Manners) => {
    const times = bad === 0 ? hours(1, 2, 3) : hours(1, 2, 2, ...(manners.literal ? [] : [3]));
    const source = new ArraySource(run, world({ fills: times }), manners);
    const fills = source.tables.get("fills")!;
    fills[bad] = { ...fills[bad]!, line: fills[bad]!.line.replace(/"seq":"(\d+)"/, '"seq":$1') };
    // larger answers than those few rows take show that no cap ended them
    source.tables.set("bars", rowsAt(run, "bars", hours(...Array(20).keys())));
    const { manifest } = await archiveRun(jobFor(source, { tables: ["fills", "bars"] }));
    expect(latestView(manifest.tables.fills)).toMatchObject({
      state: "QUARANTINED",
      certificate: { rows: times.length - 1, quarantined: 1 },
      quarantine: [{ rows: 1 }],
    });
    expect(await segmentLines(archive, run, "fills")).toEqual(
      fills.filter((_, i) => i !== bad).map(({ line }) => line),
    );
  });

  it("asks in other windows for what a full scan found, where nothing counts it", async () => {
    const source = new ArraySource(run, world({ fills: hours(1, 2, 3, 4) }), { literal: true });
    await archiveRun(jobFor(source, { tables: ["fills"], settings: { sliceRows: 1000 } }));
    const windows = source.asked.filter(({ limit }) => limit === undefined).map(({ to }) => to);
    expect(new Set(windows).size).toBe(3);
    await expectArchived(source);
  });

  it("keeps a table's absurd ts_event from stopping the run", async () => {
    const source = new ArraySource(run, world({ fills: hours(1, 2), orders: hours(1) }), { literal: true });
    const fills = source.tables.get("fills")!;
    const line = fills[1]!.line.replace(/"ts_event":"\d+"/, '"ts_event":"9999999999999999999"');
    source.tables.set("fills", [fills[0]!, { ...fills[1]!, line, ts: 9_223_372_036_854_775_800n }]);
    const rows = source.rows.bind(source);
    source.rows = (request) => {
      for (const bound of [request.from, request.to]) parseTime(String(bound ?? 0n));
      return rows(request);
    };
    const { manifest } = await archiveRun(jobFor(source, { tables: ["fills", "orders"] }));
    expect(manifest.tables.fills!.state).toBe("INCOMPLETE");
    expect(manifest.tables.orders!.state).toBe("COMPLETE");
  });

  it("calls a table INCOMPLETE whose rows are fewer than the facts, and exits with the failing state", async () => {
    const source = new ArraySource(run, world({ fills: hours(1, 2, 3), bars: hours(1) }));
    const facts = source.facts.bind(source);
    source.facts = async (ref, bounds) => {
      const honest = await facts(ref, bounds);
      const fills = honest!.get("fills")!;
      return new Map(honest).set("fills", { ...fills, rows: fills.rows === 0n ? 0n : fills.rows + 2n });
    };
    const { manifest } = await archiveRun(jobFor(source));
    expect(latestView(manifest.tables.fills)).toMatchObject({
      state: "INCOMPLETE",
      error: { code: "incomplete" },
    });
    expect(manifest.tables.bars!.state).toBe("COMPLETE");
    expect(manifest.state).toBe("INCOMPLETE");
  });
});
