import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Archive, openArchive } from "../../src/archive/archive.ts";
import { openArchiveSource } from "../../src/archive/read/archive-source.ts";
import { generationOf } from "../../src/archive/write/run-journal.ts";
import { archiveRun } from "../../src/extract/run/archive-run.ts";
import {
  type FilterName,
  filterNames,
  type TableName,
  tableNamed,
  tableNames,
} from "../../src/model/profile/table.ts";
import type { HistorySource, RowRequest, RunRef } from "../../src/model/source.ts";
import { documentKinds } from "../../src/model/source.ts";
import { openSimulator, type Simulator } from "../../src/simulator/simulator.ts";
import { ArchiveUnderTest, archiveWorld, smallWorld, worldRun } from "../fixtures/archive/archived-world.ts";
import { sharedDuckDB } from "../fixtures/archive/shared-duckdb.ts";
import {
  at,
  hours,
  repriced,
  TableWorld,
  run as tableRun,
  world as tableWorld,
} from "../fixtures/archive/table-world.ts";
import { unproven } from "../fixtures/archive/unproven-table.ts";
import { type ArrayRow, ArraySource, rowsAt } from "../fixtures/source/array-source.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";

const finished: RunRef = { instanceId: "alpha-1", runId: "2022-01-01-001" };
const failed: RunRef = { instanceId: "alpha-1", runId: "2022-01-02-002" };
const growing: RunRef = { instanceId: "alpha-1", runId: "2024-01-01-003" };

let folder: string;
let simulator: Simulator;
let archive: Archive;
let source: HistorySource;
let now = 0n;
/** What a growing run is archived up to. */
let horizon: bigint;
/** Lines of the archived part of each table with what decides whether a request gets them. */
const everything = new Map<string, { line: string; fields: Record<string, string> }[]>();

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "archive-source-"));
  simulator = await openSimulator({
    cacheDir: join(folder, "worlds"),
    runs: 3,
    rows: 1_500,
    failed: 2,
    growing: true,
    clock: () => now,
  });
  const { started, ended } = simulator.span(growing);
  now = started + (ended - started) / 2n;
  archive = await openArchive(join(folder, "archive"), { create: true });
  for (const run of [finished, failed, growing]) {
    const { manifest } = await archiveRun({
      source: simulator,
      archive,
      run,
      clock: () => now,
      retry: quickRetry(),
      signal: new AbortController().signal,
      tool: "test",
      duckdb: sharedDuckDB,
      settings: { segmentBytes: 8_000, sliceRows: 120 },
    });
    if (manifest.horizon !== null) horizon = BigInt(manifest.horizon);
  }
  source = openArchiveSource(archive);
  for (const run of [finished, failed, growing]) {
    for (const table of tableNames) {
      const lines = await linesOf(simulator, { ...run, table, ...upTo(run, {}) });
      everything.set(
        `${run.runId} ${table}`,
        lines.map((line) => ({ line, fields: JSON.parse(line) as Record<string, string> })),
      );
    }
  }
});
afterAll(async () => {
  await source[Symbol.asyncDispose]();
  await simulator[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

async function textOf(of: HistorySource, request: RowRequest): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of of.rows(request)) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

async function linesOf(of: HistorySource, request: RowRequest): Promise<string[]> {
  const text = await textOf(of, request);
  expect(text === "" || text.endsWith("\n")).toBe(true);
  return text.split("\n").slice(0, -1);
}

/** Bounds as the archive has the run: not beyond the horizon of one that goes on. */
function upTo(run: RunRef, { from, to }: { from?: bigint | undefined; to?: bigint | undefined }) {
  if (run.runId !== growing.runId) return { from, to };
  return { from, to: to === undefined || to > horizon ? horizon : to };
}

const bound = fc.option(
  fc.oneof(
    fc.record({ row: fc.nat(9_999), add: fc.integer({ min: -1, max: 1 }) }),
    fc.constantFrom(-(2n ** 63n), 0n, 2n ** 63n - 1n).map((ns) => ({ ns })),
  ),
  { nil: undefined },
);
type Bound = { row: number; add: number } | { ns: bigint } | undefined;
const where = fc.record({
  run: fc.constantFrom(finished, failed, growing),
  table: fc.constantFrom<TableName>(...tableNames),
  from: bound,
  to: bound,
});

function instant(run: RunRef, table: TableName, choice: Bound): bigint | undefined {
  if (choice === undefined) return undefined;
  if ("ns" in choice) return choice.ns;
  const rows = everything.get(`${run.runId} ${table}`)!;
  // exactly on a row, or a nanosecond beside it, where an off-by-one shows
  return BigInt(rows[choice.row % rows.length]!.fields.ts_event!) + BigInt(choice.add);
}

describe("an archive of a finished, a failed and a growing run", () => {
  test("has tables in several segments and runs in every state", async () => {
    const manifests = await archive.manifests();
    expect(manifests.map(({ run: { status } }) => status)).toEqual(["FINISHED", "FAILED", "RUNNING"]);
    expect(manifests.map(({ state }) => state)).toEqual(["COMPLETE", "COMPLETE", "OPEN"]);
    expect(manifests[0]!.tables.fills!.proven!.segments.length).toBeGreaterThan(5);
  });

  test.each(tableNames)("gives all of %s byte for byte as the source did", async (table) => {
    for (const run of [finished, failed, growing]) {
      const wanted = await textOf(simulator, { ...run, table, ...upTo(run, {}) });
      expect(await textOf(source, { ...run, table })).toBe(wanted);
    }
  });

  test("gives exactly the rows of any bounds, limit and filters", async () => {
    const request = fc.record({
      where,
      limit: fc.option(fc.integer({ min: 1, max: 1_000 }), { nil: undefined }),
      filters: fc.array(
        fc.record({ name: fc.constantFrom<FilterName>(...filterNames), row: fc.nat(9_999) }),
        {
          maxLength: 2,
        },
      ),
    });
    await fc.assert(
      fc.asyncProperty(request, async ({ where: { run, table, ...bounds }, limit, filters }) => {
        const rows = everything.get(`${run.runId} ${table}`)!;
        fc.pre(rows.length > 0);
        const window = { from: instant(run, table, bounds.from), to: instant(run, table, bounds.to) };
        const chosen = filters
          .filter(({ name }) => tableNamed(table).filters.includes(name))
          .map(({ name, row }) => [name, rows[row % rows.length]!.fields[name]!] as const);
        const asked: RowRequest = { ...run, table, ...window, limit, filters: Object.fromEntries(chosen) };
        const expected = await linesOf(simulator, { ...asked, ...upTo(run, window) });
        expect(await linesOf(source, asked)).toEqual(expected);
      }),
      { numRuns: 150, seed: 3 },
    );
  });

  test("counts exactly the rows of any bounds", async () => {
    await fc.assert(
      fc.asyncProperty(where, async ({ run, table, ...bounds }) => {
        fc.pre(everything.get(`${run.runId} ${table}`)!.length > 0);
        const window = { from: instant(run, table, bounds.from), to: instant(run, table, bounds.to) };
        expect(await source.facts(run, window)).toEqual(await simulator.facts(run, upTo(run, window)));
      }),
      { numRuns: 60, seed: 5 },
    );
  });

  test("describes its runs as the source does", async () => {
    const described = await source.runs("alpha-1");
    const known = (await simulator.runs("alpha-1"))!;
    const unversioned = (entry: object) => ({ ...entry, storageVersion: "" });
    expect(described!.map(unversioned)).toEqual(known.map(unversioned));
    // the version of a run that goes on counts rows behind the horizon as well
    expect(described!.slice(0, 2)).toEqual(known.slice(0, 2));
    expect(await source.instances()).toEqual([
      { instanceId: "alpha-1", runIds: [finished.runId, failed.runId, growing.runId] },
    ]);
  });

  test("gives documents as the bytes they came as", async () => {
    for (const kind of documentKinds) {
      const wanted = Buffer.from((await simulator.document(finished, kind))!).toString();
      expect(Buffer.from((await source.document(finished, kind))!).toString()).toBe(wanted);
    }
  });

  test.each<[string, Partial<RowRequest>, string]>([
    ["an unknown instance", { instanceId: "omega" }, "instance_not_found"],
    ["an unknown run", { runId: "none" }, "run_not_found"],
    ["an empty run id", { runId: "" }, "run_not_found"],
    ["the run id current", { runId: "current" }, "run_not_found"],
    ["a filter that does not apply", { table: "bars", filters: { account: "main" } }, "invalid_argument"],
    ["a limit of nothing", { limit: 0 }, "invalid_argument"],
    ["a limit of half a row", { limit: 0.5 }, "invalid_argument"],
    ["an aborted signal", { signal: AbortSignal.abort() }, "interrupted"],
  ])("refuses a request with %s", async (_what, change, code) => {
    await expect(linesOf(source, { ...finished, table: "fills", ...change })).rejects.toMatchObject({ code });
  });

  test("has no row for a filter with a zero byte where no text has one", async () => {
    const filters = { symbol: "a\0b" };
    expect(await linesOf(source, { ...finished, table: "fills", filters })).toEqual([]);
  });

  test("refuses unknown ids in every method", async () => {
    const unknown = { ...finished, runId: "none" };
    await expect(source.facts(unknown, {})).rejects.toMatchObject({ code: "run_not_found" });
    await expect(source.document(unknown, "run")).rejects.toMatchObject({ code: "run_not_found" });
    await expect(source.runs("omega")).rejects.toMatchObject({ code: "instance_not_found" });
  });

  test("gives filtered rows up when the signal says so, and others after that", async () => {
    const controller = new AbortController();
    const filters = { symbol: everything.get(`${finished.runId} fills`)![0]!.fields.symbol! };
    const rows = source.rows({ ...finished, table: "fills", filters, signal: controller.signal });
    const reading = (async () => {
      for await (const _ of rows) controller.abort();
    })();
    await expect(reading).rejects.toMatchObject({ code: "interrupted" });
    expect((await linesOf(source, { ...finished, table: "fills", filters, limit: 3 })).length).toBe(3);
  });

  test("leaves no file open when a reader leaves early", async () => {
    const open = async () => (await readdir("/proc/self/fd")).length;
    const leave = async (filters: RowRequest["filters"]) => {
      for await (const chunk of source.rows({ ...finished, table: "fills", filters })) {
        expect(chunk.length).toBeGreaterThan(0);
        break;
      }
    };
    const filters = { symbol: everything.get(`${finished.runId} fills`)![0]!.fields.symbol! };
    await leave(filters);
    const before = await open();
    for (let round = 0; round < 20; round++) await leave(round % 2 === 0 ? {} : filters);
    expect((await open()) - before).toBeLessThan(10);
  });
});

describe("rows that came unsorted", () => {
  test("come in key order, as canonical lines, within bounds, limit and counts", async () => {
    const rows = smallWorld().get("fills")!;
    const shuffled = rows.toSpliced(12, 0, ...rows.slice(2, 6)).toSpliced(2, 4);
    const unsorted = new ArraySource(worldRun, new Map([["fills", shuffled]]));
    const { archive: made, manifest } = await archiveWorld(join(folder, "unsorted"), unsorted, {
      tables: ["fills"],
    });
    expect(manifest.state).toBe("COMPLETE");
    expect(manifest.tables.fills!.proven!.segments.some(({ sorted }) => !sorted)).toBe(true);
    await using served = openArchiveSource(made);
    const lines = rows.map(({ line }) => line);
    expect(await linesOf(served, { ...worldRun, table: "fills" })).toEqual(lines);
    const window = { from: rows[6]!.ts, to: rows[20]!.ts };
    const inside = rows.filter(({ ts }) => ts >= window.from && ts < window.to);
    const asked = { ...worldRun, table: "fills", ...window } as const;
    expect(await linesOf(served, asked)).toEqual(inside.map(({ line }) => line));
    expect(await linesOf(served, { ...asked, limit: 4 })).toEqual(inside.slice(0, 4).map(({ line }) => line));
    expect((await served.facts(worldRun, window))!.get("fills")).toMatchObject({
      rows: BigInt(inside.length),
      first: inside[0]!.ts,
      last: inside.at(-1)!.ts,
    });
  });
});

test("lines printed in another way than the canonical one are cut at the same bounds, byte for byte", async () => {
  const canonicalRows = rowsAt(worldRun, "fills", hours(30).map(at));
  const rows = canonicalRows.map((row) => {
    const { ts_event, ...others } = JSON.parse(row.line) as Record<string, string>;
    return {
      ...row,
      line: `{ "note": {"ts_event":"1"}, ${JSON.stringify(others).slice(1, -1)}, "ts_event": "${ts_event}" }`,
    };
  });
  const printed = new ArraySource(worldRun, new Map([["fills", rows]]));
  const { archive: made, manifest } = await archiveWorld(join(folder, "printed"), printed, {
    tables: ["fills"],
  });
  expect(manifest.tables.fills!.proven!.segments.length).toBeGreaterThan(1);
  await using served = openArchiveSource(made);
  for (const [from, to] of [
    [3, 17],
    [0, 1],
    [29, 30],
    [5, 5],
  ] as const) {
    const lines = await linesOf(served, { ...worldRun, table: "fills", from: at(from), to: at(to) });
    expect(lines).toEqual(rows.slice(from, to).map(({ line }) => line));
  }
  const every = { ...worldRun, table: "fills", filters: { symbol: "A" } } as const;
  expect(await linesOf(served, every)).toEqual(rows.map(({ line }) => line));
  const canonical = canonicalRows.map(({ line }) => line);
  expect(await linesOf(served, { ...every, to: at(7) })).toEqual(canonical.slice(0, 7));
  const one = { ...every, filters: { symbol: "A", account: "account-4" } };
  expect(await linesOf(served, one)).toEqual([canonical[4]]);
});

test("tables that are not proven are served only when asked for, absent ones never", async () => {
  await using damaged = await ArchiveUnderTest.create(["fills", "orders", "bars"]);
  await damaged.renew();
  await damaged.editManifest(({ tables }) => {
    tables.orders = unproven(tables.orders!, "QUARANTINED");
    const nothing = { certificate: null, segments: [], parquet: [] };
    tables.bars = {
      ...tables.bars!,
      state: "ABSENT",
      proven: { ...tables.bars!.proven!, ...nothing, state: "ABSENT" },
    };
  });
  const orders: RowRequest = { ...worldRun, table: "orders" };
  await using served = openArchiveSource(damaged.archive);
  await using all = openArchiveSource(damaged.archive, { allowIncomplete: true });
  for (const [table, code] of [
    ["orders", "incomplete"],
    ["bars", "history_unavailable"],
    ["events", "history_unavailable"],
  ] as const) {
    await expect(linesOf(served, { ...worldRun, table })).rejects.toMatchObject({ code, place: { table } });
  }
  // a table that is there, whole or not, is not one that the run does not have
  for (const source of [served, all]) {
    expect([...(await source.facts(worldRun, {}))!.keys()]).toEqual(["fills", "orders"]);
  }
  expect(await linesOf(all, orders)).toEqual(
    smallWorld()
      .get("orders")!
      .map(({ line }) => line),
  );
  await expect(linesOf(all, { ...worldRun, table: "bars" })).rejects.toMatchObject({
    code: "history_unavailable",
  });
  // a part of a run's rows is another thing than all of them
  const [[own], [whole]] = [(await served.runs("alpha"))!, (await all.runs("alpha"))!];
  expect(own!.storageVersion).not.toBe(whole!.storageVersion);
});

test("a run has the gateway's version only where all of its rows came under it", async () => {
  await using older = await ArchiveUnderTest.create(tableNames);
  await older.renew();
  const version = async () => {
    await using served = openArchiveSource(older.archive);
    return (await served.runs("alpha"))![0]!.storageVersion;
  };
  await older.editManifest(({ run, tables }) => {
    run.storageVersion = "2";
    for (const { proven } of Object.values(tables)) proven!.storageVersion = "2";
  });
  expect(await version()).toBe("2");
  await older.editManifest(({ run, tables }) => {
    run.storageVersion = "2";
    for (const { proven } of Object.values(tables)) proven!.storageVersion = "2";
    tables.fills!.proven!.storageVersion = "1";
  });
  expect(await version()).not.toBe("2");
});

test("a damaged segment throws in mid-stream, and the rows before it came", async () => {
  const rows = smallWorld(60).get("fills")!;
  const whole = new ArraySource(worldRun, new Map([["fills", rows]]));
  const { archive: made, manifest } = await archiveWorld(join(folder, "damaged"), whole, {
    tables: ["fills"],
  });
  const { segments } = manifest.tables.fills!.proven!;
  expect(segments.length).toBeGreaterThan(3);
  const file = join(made.layout.dataDir(worldRun), segments[2]!.file);
  const bytes = await readFile(file);
  bytes[bytes.length >> 1]! ^= 1;
  await writeFile(file, bytes);
  await using served = openArchiveSource(made);
  let text = "";
  const reading = (async () => {
    for await (const chunk of served.rows({ ...worldRun, table: "fills" }))
      text += Buffer.from(chunk).toString();
  })();
  await expect(reading).rejects.toMatchObject({
    code: "archive_damaged",
    place: { file, instance: worldRun.instanceId, run: worldRun.runId },
  });
  const before = segments[0]!.rows + segments[1]!.rows;
  expect(text).toBe(
    rows
      .slice(0, before)
      .map(({ line }) => `${line}\n`)
      .join(""),
  );
});

describe("a reader in mid-stream", () => {
  const request: RowRequest = { ...tableRun, table: "fills" };
  let changing: TableWorld;
  let origin: ArraySource;
  let served: HistorySource;
  const before = tableWorld({ fills: hours(60) }).get("fills")!;
  const after = repriced(before);
  beforeEach(async () => {
    changing = await TableWorld.create();
    origin = new ArraySource(tableRun, new Map([["fills", before]]));
    await changing.archiveRun(origin);
    served = openArchiveSource(changing.archive, { readAheadBytes: 1 });
  });
  afterEach(async () => {
    await served[Symbol.asyncDispose]();
    await changing[Symbol.asyncDispose]();
  });

  /** Commits the run anew, with every segment replaced. */
  async function commit(version: string, rows: readonly ArrayRow[], hour = 0) {
    origin.storageVersion = version;
    origin.tables = new Map([["fills", [...rows]]]);
    const clock = () => at(1_000_000 + hour);
    expect((await changing.archiveRun(origin, { clock })).changed).toBe(true);
  }

  test("stays on its generation over a commit, which the next request sees", async () => {
    const reader = served.rows(request)[Symbol.asyncIterator]();
    const first = await reader.next();
    await commit("2", after);
    const rest = await drain(reader);
    const text = Buffer.concat([first.value as Uint8Array, rest]).toString();
    expect(text).toBe(before.map(({ line }) => `${line}\n`).join(""));
    expect(await linesOf(served, request)).toEqual(after.map(({ line }) => line));
    expect((await served.runs(tableRun.instanceId))![0]!.storageVersion).not.toBe("1");
  });

  test("stays on it over more commits within the hour", async () => {
    const reader = served.rows(request)[Symbol.asyncIterator]();
    const first = await reader.next();
    await commit("2", after);
    await commit("3", before.slice(0, 30), 0.9);
    const text = Buffer.concat([first.value as Uint8Array, await drain(reader)]).toString();
    expect(text).toBe(before.map(({ line }) => `${line}\n`).join(""));
  });

  test("stays on it for as long as it reads, and the next commit takes away what it leaves", async () => {
    const reader = served.rows(request)[Symbol.asyncIterator]();
    const first = await reader.next();
    await commit("2", after);
    await commit("3", before, 1);
    const text = Buffer.concat([first.value as Uint8Array, await drain(reader)]).toString();
    expect(text).toBe(before.map(({ line }) => `${line}\n`).join(""));
    expect(await generations()).toEqual([1, 2, 3]);
    await served[Symbol.asyncDispose]();
    await commit("4", after, 2);
    expect(await generations()).toEqual([3, 4]);
  });

  test("without a lock is told when a commit an hour later took its files away, and asks again", async () => {
    const reader = served.rows(request)[Symbol.asyncIterator]();
    await reader.next();
    const { locksDir } = changing.archive.layout;
    for (const name of await readdir(locksDir))
      if (name.startsWith(".reading-")) await rm(join(locksDir, name));
    await commit("2", after);
    await commit("3", before, 1);
    await expect(drain(reader)).rejects.toMatchObject({ code: "history_query_failed", retry: "again" });
    expect(await linesOf(served, request)).toEqual(before.map(({ line }) => line));
  });

  /** Of which there are segments. */
  async function generations(): Promise<number[]> {
    const names = await readdir(changing.archive.layout.dataDir(tableRun));
    const segments = names.filter((name) => name.endsWith(".ndjson.zst"));
    return [...new Set(segments.map(generationOf))].sort((a, b) => a - b);
  }
});

async function drain(reader: AsyncIterator<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for (let next = await reader.next(); !next.done; next = await reader.next()) chunks.push(next.value);
  return Buffer.concat(chunks);
}
