import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { checkSource } from "../../src/gateway/adapter/check-source.ts";
import { guardedSource } from "../../src/gateway/adapter/guarded-source.ts";
import type { HistorySource, RowRequest } from "../../src/model/source.ts";
import { openSimulator } from "../../src/simulator/simulator.ts";
import { ArraySource, type Manners, rowsAt } from "../fixtures/source/array-source.ts";

const run = { instanceId: "i", runId: "r" };
const times = [10n, 20n, 20n, 30n, 40n, 40n, 50n];

function sourceWith(manners: Manners = {}): ArraySource {
  const names = ["fills", "bars"] as const;
  return new ArraySource(
    run,
    new Map(names.map((name) => [name, rowsAt(run, name, times, ["A", "B"])])),
    manners,
  );
}

/** The same source, whose rows a fault alters. */
function faulty(alter: (request: RowRequest, lines: readonly string[]) => readonly string[]): HistorySource {
  const source = sourceWith();
  const rows = source.rows.bind(source);
  source.rows = async function* (request) {
    const chunks: Uint8Array[] = [];
    for await (const chunk of rows(request)) chunks.push(chunk);
    const lines = Buffer.concat(chunks).toString("utf8").split("\n").slice(0, -1);
    yield Buffer.from(
      alter(request, lines)
        .map((line) => `${line}\n`)
        .join(""),
    );
  };
  return source;
}

test("a source that keeps its promises has no faults, and so has the simulator", async () => {
  expect(await checkSource(sourceWith(), run)).toEqual([]);
  const cacheDir = mkdtempSync(join(tmpdir(), "runvault-check-"));
  onTestFinished(() => rmSync(cacheDir, { recursive: true }));
  await using simulator = await openSimulator({ seed: "checked", runs: 1, rows: 200, cacheDir });
  const [entry] = await simulator.instances();
  const simulated = { instanceId: entry!.instanceId, runId: entry!.runIds[0]! };
  expect(await checkSource(simulator, simulated)).toEqual([]);
});

const broken: readonly [what: string, source: () => HistorySource, told: RegExp][] = [
  [
    "a bound ignored",
    () => {
      const source = sourceWith();
      const rows = source.rows.bind(source);
      source.rows = (request) => rows({ ...request, to: undefined });
      return source;
    },
    /rows of fills from .* to 30: returned 7 rows/,
  ],
  [
    "a limit ignored",
    () => {
      const source = sourceWith();
      const rows = source.rows.bind(source);
      source.rows = (request) => rows({ ...request, limit: undefined });
      return source;
    },
    /rows of fills up to 1: returned 7 rows/,
  ],
  [
    "a filter ignored",
    () => {
      const source = sourceWith();
      const rows = source.rows.bind(source);
      source.rows = (request) => rows({ ...request, filters: {} });
      return source;
    },
    /rows of fills with symbol A: returned 7 rows, not the 4/,
  ],
  ["rows out of order", () => faulty((_, lines) => lines.toReversed()), /rows of fills: line 2 sorts before/],
  [
    "a row twice",
    () => faulty((_, lines) => [...lines.slice(0, 1), ...lines]),
    /facts of fills: 7 rows, but 8 came/,
  ],
  ["a row short", () => faulty((_, lines) => lines.slice(1)), /facts of fills: 7 rows, but 6 came/],
  [
    "another run's row",
    () => faulty((_, lines) => lines.map((line) => line.replace('"r"', '"x"'))),
    /line 1 is a row of i\/x/,
  ],
  [
    "a number that is none",
    () => faulty((_, lines) => lines.map((line) => line.replace('"seq":"1"', '"seq":1'))),
    /line 1 is not a row of the table/,
  ],
  [
    "any run answered",
    () => {
      const source = sourceWith();
      const rows = source.rows.bind(source);
      source.rows = (request) => rows({ ...request, ...run });
      return source;
    },
    /rows of the run "current": answered/,
  ],
  [
    "a run that no list has",
    () => {
      const source = sourceWith();
      source.runs = async () => [];
      return source;
    },
    /runs of i: no r/,
  ],
];
test.each(broken)("%s is told", async (_what, open, told) => {
  const faults = await checkSource(open(), run);
  expect(faults.map(({ asked, message }) => `${asked}: ${message}`).join("\n")).toMatch(told);
});

test("what a guarded source answers is held to the interface, and what it throws is told as its own", async () => {
  const source = sourceWith();
  const gateway = guardedSource(source, "my.ts");
  expect(await checkSource(gateway, run)).toEqual([]);
  expect(gateway.stats.requests).toBeGreaterThan(10);
  const wrong = (changes: object) => guardedSource(Object.assign(sourceWith(), changes), "my.ts");
  const place = { file: "my.ts" };
  await expect(wrong({ instances: async () => [{}] }).instances()).rejects.toMatchObject({
    code: "not_a_gateway",
    message: expect.stringContaining("instances() of the adapter: 0.instanceId"),
    place,
  });
  await expect(wrong({ runs: async () => [{ ...run, status: "DONE" }] }).runs("i")).rejects.toMatchObject({
    code: "not_a_gateway",
  });
  await expect(
    wrong({ facts: async () => new Map([["fills", { rows: 7 }]]) }).facts(run, {}),
  ).rejects.toMatchObject({
    code: "not_a_gateway",
  });
  await expect(wrong({ document: async () => "text" }).document(run, "summary")).rejects.toMatchObject({
    code: "not_a_gateway",
  });
  const rowsOf = async (changes: object, runId = "r") => {
    for await (const _ of wrong(changes).rows({ ...run, runId, table: "fills" }));
  };
  const text = async function* () {
    yield "a line";
  };
  await expect(rowsOf({ rows: text })).rejects.toMatchObject({ code: "not_a_gateway", place });
  const throwing = () => {
    throw new TypeError("undefined is not a function");
  };
  await expect(rowsOf({ rows: throwing })).rejects.toMatchObject({ code: "internal", place });
  await expect(rowsOf({}, "current")).rejects.toMatchObject({ code: "invalid_argument" });
});
