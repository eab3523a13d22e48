import { mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { tableNamed, tableNames } from "../../src/model/profile/table.ts";
import type { RowRequest, RunEntry, RunRef } from "../../src/model/source.ts";
import { parseTime } from "../../src/model/time.ts";
import { textRowHash } from "../../src/row/row-hash.ts";
import { openSimulator, type Simulator } from "../../src/simulator/simulator.ts";
import { trialCount } from "../fixtures/trials/trials.ts";

const templates = 3;
const runs = 8;
const dayNanos = 86_400_000_000_000n;
let cacheDir: string;

beforeAll(async () => {
  cacheDir = await mkdtemp(join(tmpdir(), "simulator-templates-"));
});
afterAll(async () => {
  await rm(cacheDir, { recursive: true, force: true });
});

async function textOf(world: Simulator, request: RowRequest): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of world.rows(request)) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** The lines of a template as another run is to have them, made by parsing and printing. */
function movedText(text: string, table: (typeof tableNames)[number], runId: string, by: bigint): string {
  const times = tableNamed(table).columns.filter(({ kind }) => kind === "timestamp");
  return text.replaceAll(/^.+$/gm, (line) => {
    const fields = JSON.parse(line) as Record<string, string>;
    fields.run_id = runId;
    for (const { name } of times) fields[name] = String(BigInt(fields[name]!) + by);
    return JSON.stringify(fields);
  });
}

describe("a world of few templates", () => {
  let world: Simulator;
  let entries: readonly RunEntry[];
  beforeAll(async () => {
    world = await openSimulator({ cacheDir, instances: 2, runs, templates, rows: 12_000 });
    entries = (await world.runs("beta-2"))!;
  });
  afterAll(async () => await world[Symbol.asyncDispose]());

  test("run k has the rows of template k mod N, under its own id and at its times", async () => {
    expect(entries).toHaveLength(runs);
    for (const [number, run] of entries.entries()) {
      const template = entries[number % templates]!;
      const by = run.started - template.started;
      expect(run.runId).toBe(
        `2022-01-${String(number + 1).padStart(2, "0")}-${String(number + 1).padStart(6, "0")}`,
      );
      expect(by).toBe(BigInt(number - (number % templates)) * dayNanos);
      for (const table of tableNames) {
        const rows = await textOf(world, { ...run, table });
        const rendered = await textOf(world, { ...template, table });
        expect(rows).not.toBe("");
        expect(rows === movedText(rendered, table, run.runId, by), `${run.runId} ${table}`).toBe(true);
      }
    }
  });

  test("rows, counts and ends of any window, limit and filter are those of the run's own lines", async () => {
    const whole = new Map<string, string[]>();
    const linesOf = async (run: RunRef, table: (typeof tableNames)[number]) => {
      const key = `${run.runId} ${table}`;
      const known = whole.get(key);
      if (known !== undefined) return known;
      const lines = (await textOf(world, { ...run, table })).split("\n").slice(0, -1);
      whole.set(key, lines);
      return lines;
    };
    const asked = fc.record({
      run: fc.nat(runs - 1),
      table: fc.constantFrom(...tableNames),
      from: fc.option(fc.nat(9_999), { nil: undefined }),
      to: fc.option(fc.nat(9_999), { nil: undefined }),
      limit: fc.option(fc.integer({ min: 1, max: 3_000 }), { nil: undefined }),
      filtered: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(asked, async ({ run: number, table, from, to, limit, filtered }) => {
        const run = entries[number]!;
        const lines = await linesOf(run, table);
        const event = (line: string) => BigInt((JSON.parse(line) as { ts_event: string }).ts_event);
        const bounds = {
          from: from === undefined ? undefined : event(lines[from % lines.length]!),
          to: to === undefined ? undefined : event(lines[to % lines.length]!),
        };
        const within = lines.filter(
          (line) =>
            (bounds.from === undefined || event(line) >= bounds.from) &&
            (bounds.to === undefined || event(line) < bounds.to),
        );
        const facts = (await world.facts(run, bounds, undefined, { table, withHash: true }))!.get(table)!;
        expect(facts.rows).toBe(BigInt(within.length));
        expect(facts.first).toBe(within.length === 0 ? undefined : event(within[0]!));
        expect(facts.last).toBe(within.length === 0 ? undefined : event(within.at(-1)!));
        const bytes = Buffer.from(within.map((line) => `${line}\n`).join(""));
        expect(facts.rowHash).toBe((await textRowHash(once(bytes))).hash);

        const { resource_key: key } = JSON.parse(lines[0]!) as { resource_key: string };
        const filters = filtered ? { resource_key: key } : undefined;
        const wanted = within.filter((line) => !filtered || line.includes(`"resource_key":"${key}"`));
        const answer = await textOf(world, { ...run, ...bounds, table, limit, filters });
        expect(answer.split("\n").slice(0, -1)).toEqual(wanted.slice(0, limit));
      }),
      { numRuns: trialCount(30) },
    );
  });

  test("every row lies within its run, and records, summary and facts say what the rows say", async () => {
    for (const run of entries) {
      const facts = (await world.facts(run, {}))!;
      const rows = [...facts.values()].reduce((sum, fact) => sum + fact.rows, 0n);
      expect(run.storageVersion).toMatch(new RegExp(`-${rows}$`));
      for (const { first, last } of facts.values()) {
        expect(first! >= run.started && last! <= run.ended!).toBe(true);
      }
      const record = JSON.parse(Buffer.from((await world.document(run, "run"))!).toString());
      const summary = JSON.parse(Buffer.from((await world.document(run, "summary"))!).toString());
      for (const document of [record, summary]) {
        expect(document).toMatchObject({
          run_id: run.runId,
          instance_id: "beta-2",
          status: run.status,
          ts_started: String(run.started),
          ts_ended: String(run.ended),
        });
      }
      expect(summary.fills).toBe(String(facts.get("fills")!.rows));
    }
    expect(new Set(entries.map(({ status }) => status))).toEqual(new Set(["FINISHED", "FAILED"]));
  });
});

test("a run that grows is rendered itself, after those of templates", async () => {
  const end = parseTime("2024-01-01T01:00:00Z");
  await using world = await openSimulator({
    cacheDir,
    runs: 8,
    templates: 2,
    rows: 2_000,
    growing: true,
    clock: () => end,
  });
  const entries = (await world.runs("alpha-1"))!;
  expect(entries.map(({ status }) => status)).toEqual([...Array(7).fill("FINISHED"), "RUNNING"]);
  const { runId } = entries.at(-1)!;
  expect(runId).toBe("2024-01-01-000008");
  const last = await world.facts({ instanceId: "alpha-1", runId }, {});
  expect(last!.get("equity")!.rows).toBeGreaterThan(50n);
});

test("runs that trade a file's bars keep its times", async () => {
  const bars = join(cacheDir, "bars.csv");
  const lines = Array.from(
    { length: 40 },
    (_, bar) => `2022-05-01 00:${bar + 10}:00,100,101,99,${100 + (bar % 2)},1`,
  );
  await writeFile(bars, `timestamp,open,high,low,close,volume\n${lines.join("\n")}\n`);
  await using world = await openSimulator({ cacheDir, runs: 5, templates: 1, bars });
  const entries = (await world.runs("alpha-1"))!;
  expect(new Set(entries.map(({ started }) => started)).size).toBe(1);
  expect(new Set(entries.map(({ runId }) => runId)).size).toBe(5);
});

test("more runs than there are days begin closer together, in order, within the times a line has room for", async () => {
  await using world = await openSimulator({ cacheDir, runs: 100_000, templates: 1, rows: 300 });
  const entries = (await world.runs("alpha-1"))!;
  expect(entries).toHaveLength(100_000);
  expect(entries[0]!.started >= parseTime("2002-01-01")).toBe(true);
  expect(entries.at(-1)!.started < parseTime("2024-01-01")).toBe(true);
  const starts = entries.map(({ started }) => started);
  expect(starts.every((start, number) => number === 0 || start > starts[number - 1]!)).toBe(true);
});

test("1,000 runs of 2,000 rows take the disk of their templates and little memory", async () => {
  const folder = join(cacheDir, "many");
  await using world = await openSimulator({ cacheDir: folder, runs: 1_000, templates: 4, rows: 2_000 });
  let disk = 0;
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) disk += (await stat(join(entry.parentPath, entry.name))).size;
  }
  expect(disk).toBeLessThan(6e6);
  const entries = (await world.runs("alpha-1"))!;
  const before = process.memoryUsage().rss;
  let rows = 0n;
  for (const run of entries) {
    for await (const chunk of world.rows({ ...run, table: "bars" })) rows += BigInt(chunk.length > 0 ? 1 : 0);
    rows += (await world.facts(run, { from: run.started + 1n }, undefined, { table: "fills" }))!.get(
      "fills",
    )!.rows;
  }
  expect(rows).toBeGreaterThan(1_000n);
  expect(process.memoryUsage().rss - before).toBeLessThan(150e6);
});

test.each([
  [{ runs: 1_000 }, "runs must be a whole number from 1 to 999, not 1000"],
  [{ runs: 100_001, templates: 3 }, "runs must be a whole number from 1 to 100000, not 100001"],
  [{ runs: 3, templates: 0 }, "templates must be a whole number from 1 to 999, not 0"],
  [
    { instances: 3, runs: 100_000, templates: 1 },
    "3 instances with 100000 runs each are 300000 runs, more than 200000",
  ],
])("%o is refused", async (options, message) => {
  await expect(openSimulator({ cacheDir, ...options })).rejects.toThrow(message);
});

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
