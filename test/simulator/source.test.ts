import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fromJson } from "@bufbuild/protobuf";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  GetStorageFactsResponseSchema,
  HistoryInstanceSchema,
  ListResourcesResponseSchema,
  RunSchema,
  SummarySchema,
} from "../../src/gen/example/history/v1/history_service_pb.ts";
import {
  type FilterName,
  filterNames,
  type TableName,
  tableNamed,
  tableNames,
} from "../../src/model/profile/table.ts";
import { documentKinds, type RowRequest, type RunRef } from "../../src/model/source.ts";
import { openSimulator, type Simulator } from "../../src/simulator/simulator.ts";
import { trialCount } from "../fixtures/trials/trials.ts";

let cacheDir: string;
let world: Simulator;
let now = 0n;
const finished: RunRef = { instanceId: "alpha-1", runId: "2022-01-01-001" };
const growing: RunRef = { instanceId: "alpha-1", runId: "2024-01-01-002" };
/** Every line of a table, with the fields that decide whether a request gets it. */
type Known = { line: string; event: bigint; init: bigint; fields: Record<string, string> };
const everything = new Map<string, Known[]>();

beforeAll(async () => {
  cacheDir = await mkdtemp(join(tmpdir(), "simulator-source-"));
  world = await openSimulator({ cacheDir, runs: 2, rows: 12_000, growing: true, clock: () => now });
  now = world.span(growing).complete;
  for (const run of [finished, growing]) {
    for (const table of tableNames) {
      const lines = await linesOf({ ...run, table });
      everything.set(
        `${run.runId} ${table}`,
        lines.map((line) => {
          const fields = JSON.parse(line) as Record<string, string>;
          return { line, event: BigInt(fields.ts_event!), init: BigInt(fields.ts_init!), fields };
        }),
      );
    }
  }
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await rm(cacheDir, { recursive: true, force: true });
});

async function linesOf(request: RowRequest): Promise<string[]> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of world.rows(request)) chunks.push(chunk);
  return Buffer.concat(chunks).toString().split("\n").slice(0, -1);
}

/** What a request should get, worked out from every line one by one. */
function expected(request: RowRequest, clock: bigint): Known[] {
  return everything
    .get(`${request.runId} ${request.table}`)!
    .filter(({ event }) => request.from === undefined || event >= request.from)
    .filter(({ event }) => request.to === undefined || event < request.to)
    .filter(({ init }) => request.runId !== growing.runId || init <= clock)
    .filter(({ fields }) =>
      Object.entries(request.filters ?? {}).every(([name, value]) => fields[name] === value),
    )
    .slice(0, request.limit);
}

const run = fc.constantFrom(finished, growing);
const table = fc.constantFrom<TableName>(...tableNames);
const share = fc.double({ min: -0.1, max: 1.2, noNaN: true });
const bound = fc.option(
  fc.oneof(
    share.map((at) => ({ at, row: undefined })),
    // exactly on a row, where an off-by-one shows
    fc.nat(9_999).map((row) => ({ at: undefined, row })),
  ),
  { nil: undefined },
);

function instant(
  ref: RunRef,
  name: TableName,
  choice: { at: number | undefined; row: number | undefined } | undefined,
) {
  if (choice === undefined) return undefined;
  const rows = everything.get(`${ref.runId} ${name}`)!;
  if (choice.row !== undefined) return rows[choice.row % rows.length]!.event;
  return moment(ref, choice.at!);
}

function moment(ref: RunRef, at: number): bigint {
  const { started, complete } = world.span(ref);
  return started + (BigInt(Math.floor(at * 1e6)) * (complete - started)) / 1_000_000n;
}

const seed = fc.record({ run, table, from: bound, to: bound, clock: share });

test("rows are exactly those of the bounds, the limit, the filters and the clock", async () => {
  const request = fc.record({
    where: seed,
    limit: fc.option(fc.integer({ min: 1, max: 3_000 }), { nil: undefined }),
    filter: fc.option(fc.record({ name: fc.constantFrom<FilterName>(...filterNames), row: fc.nat(9_999) }), {
      nil: undefined,
    }),
  });
  await fc.assert(
    fc.asyncProperty(request, async ({ where, limit, filter }) => {
      const rows = everything.get(`${where.run.runId} ${where.table}`)!;
      const applies = filter !== undefined && tableNamed(where.table).filters.includes(filter.name);
      const asked: RowRequest = {
        ...where.run,
        table: where.table,
        from: instant(where.run, where.table, where.from),
        to: instant(where.run, where.table, where.to),
        limit,
        filters: applies ? { [filter.name]: rows[filter.row % rows.length]!.fields[filter.name] } : undefined,
      };
      now = moment(growing, where.clock);
      expect(await linesOf(asked)).toEqual(expected(asked, now).map(({ line }) => line));
    }),
    { numRuns: trialCount(300) },
  );
});

test("facts are the counted rows, for any bounds and at any time", async () => {
  await fc.assert(
    fc.asyncProperty(seed, async (where) => {
      const bounds = {
        from: instant(where.run, where.table, where.from),
        to: instant(where.run, where.table, where.to),
      };
      now = moment(growing, where.clock);
      const facts = (await world.facts(where.run, bounds))!;
      expect([...facts.keys()]).toEqual(tableNames);
      for (const [name, fact] of facts) {
        const rows = expected({ ...where.run, ...bounds, table: name }, now);
        expect(fact.rows).toBe(BigInt(rows.length));
        expect(fact.first).toBe(rows[0]?.event);
        expect(fact.last).toBe(rows.at(-1)?.event);
        expect(fact.final).toBe(where.run === finished || now >= world.span(growing).complete);
      }
    }),
    { numRuns: trialCount(150) },
  );
});

describe("a growing run", () => {
  test("reveals rows by the clock, late ones behind the latest, and ends as final", async () => {
    const { started, complete } = world.span(growing);
    const seen = new Map<TableName, Set<string>>(tableNames.map((name) => [name, new Set()]));
    const versions = new Map<string, string>();
    let lateRows = 0;
    for (let part = 0n; part <= 20n; part += 1n) {
      now = started + ((complete - started) * part) / 20n;
      const entry = (await world.runs("alpha-1"))!.at(-1)!;
      const over = part === 20n;
      expect([entry.status, entry.final]).toEqual(over ? ["FINISHED", true] : ["RUNNING", false]);
      expect(entry.ended).toBe(over ? world.span(growing).ended : undefined);
      const content: string[] = [];
      for (const [name, before] of seen) {
        const lines = await linesOf({ ...growing, table: name });
        const shown = new Set(lines);
        for (const line of before) expect(shown.has(line)).toBe(true);
        const added = lines.map((line) => !before.has(line));
        const firstNew = added.indexOf(true);
        if (firstNew >= 0) lateRows += added.slice(firstNew).filter((isNew) => !isNew).length;
        seen.set(name, shown);
        content.push(String(lines.length));
      }
      versions.set(entry.storageVersion!, content.join());
    }
    expect(lateRows).toBeGreaterThan(0);
    // one version for each state of the rows
    expect(new Set(versions.values()).size).toBe(versions.size);
  });

  test("keeps its storage version while nothing is added", async () => {
    const inits = tableNames
      .flatMap((name) => everything.get(`${growing.runId} ${name}`)!.map(({ init }) => init))
      .sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
    const version = async (at: bigint): Promise<string | undefined> => {
      now = at;
      return (await world.runs("alpha-1"))!.at(-1)!.storageVersion;
    };
    for (const position of [0, 1, 2_000, inits.length - 2, inits.length - 1]) {
      const at = inits[position]!;
      expect(await version(at - 1n)).not.toBe(await version(at));
      const next = inits.find((init) => init > at);
      if (next !== undefined) expect(await version(next - 1n)).toBe(await version(at));
      else expect(await version(at + 10n ** 18n)).toBe(await version(at));
    }
  });

  test("is summed up from the rows known", async () => {
    now = moment(growing, 0.5);
    const summary = JSON.parse(Buffer.from((await world.document(growing, "summary"))!).toString());
    const visible = (name: TableName): Known[] => expected({ ...growing, table: name }, now);
    expect(summary.status).toBe("RUNNING");
    expect(summary.ts_ended).toBe("0");
    expect(summary.fills).toBe(String(visible("fills").length));
    expect(summary.orders).toBe(
      String(visible("orders").filter(({ fields }) => fields.kind === "SUBMITTED").length),
    );
    expect(summary.final_equity).toBe(visible("equity").at(-1)!.fields.equity);
    const [instance] = await world.instances();
    expect(instance).toMatchObject({
      instanceId: "alpha-1",
      instanceState: "RUNNING",
      currentRunId: growing.runId,
    });
    expect(instance!.runIds).toEqual([finished.runId, growing.runId]);
    now = world.span(growing).complete;
    expect((await world.instances())[0]).toMatchObject({ instanceState: "STOPPED", desiredState: "STOPPED" });
  });
});

test("documents are the protobuf JSON of their messages", async () => {
  now = world.span(growing).complete;
  const schemas = {
    instance: HistoryInstanceSchema,
    run: RunSchema,
    summary: SummarySchema,
    resources: ListResourcesResponseSchema,
    facts: GetStorageFactsResponseSchema,
  };
  for (const kind of documentKinds) {
    const json = JSON.parse(Buffer.from((await world.document(finished, kind))!).toString());
    expect(fromJson(schemas[kind], json).$typeName).toBe(schemas[kind].typeName);
    expect(JSON.stringify(json)).not.toMatch(/"[a-z]+[A-Z]\w*":/);
  }
  const facts = JSON.parse(Buffer.from((await world.document(finished, "facts"))!).toString());
  expect(facts.tables[0]).toMatchObject({
    table: "fills",
    rows: String(everything.get(`${finished.runId} fills`)!.length),
    final: true,
  });
  const { resources = [] } = await world.catalog("alpha-1");
  const keys = new Set(resources.map(({ resourceKey }) => resourceKey));
  for (const name of tableNames) {
    for (const { fields } of everything.get(`${growing.runId} ${name}`)!) {
      expect(keys.has(fields.resource_key!)).toBe(true);
    }
  }
});

test.each<[string, Partial<RowRequest>, string]>([
  ["an unknown instance", { instanceId: "omega-9" }, "instance_not_found"],
  ["an unknown run", { runId: "2022-01-01-009" }, "run_not_found"],
  ["an empty run id", { runId: "" }, "run_not_found"],
  ["the run id current", { runId: "current" }, "run_not_found"],
  ["a filter that does not apply", { table: "bars", filters: { account: "main" } }, "invalid_argument"],
  ["a limit of nothing", { limit: 0 }, "invalid_argument"],
  ["an aborted signal", { signal: AbortSignal.abort() }, "interrupted"],
])("a request with %s is refused", async (_what, change, code) => {
  await expect(linesOf({ ...finished, table: "fills", ...change })).rejects.toMatchObject({ code });
});

test("unknown ids are refused by every method", async () => {
  const unknown = { instanceId: "alpha-1", runId: "none" };
  await expect(world.facts(unknown, {})).rejects.toMatchObject({ code: "run_not_found" });
  await expect(world.document(unknown, "run")).rejects.toMatchObject({ code: "run_not_found" });
  await expect(world.runs("nobody")).rejects.toMatchObject({ code: "instance_not_found" });
  await expect(world.catalog("nobody")).rejects.toMatchObject({ code: "instance_not_found" });
});

test("a reader that leaves early leaves no file open", async () => {
  const open = async (): Promise<number> => (await readdir("/proc/self/fd")).length;
  const before = await open();
  for (let round = 0; round < 20; round += 1) {
    for await (const chunk of world.rows({ ...finished, table: "orders" })) {
      expect(chunk.length).toBeGreaterThan(0);
      break;
    }
  }
  expect((await open()) - before).toBeLessThan(10);
});

test.each([
  ["instances", { instances: 0 }],
  ["runs", { runs: 1.5 }],
  ["rows", { rows: -1 }],
  ["fills", { fills: Number.NaN }],
])("an option %s out of its range is refused", async (name, options) => {
  await expect(openSimulator({ cacheDir, ...options })).rejects.toMatchObject({
    code: "invalid_argument",
    message: expect.stringContaining(name),
  });
});
