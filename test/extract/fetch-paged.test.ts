import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { latestView } from "../../src/archive/manifest/table-view.ts";
import { archiveRun } from "../../src/extract/run/archive-run.ts";
import { openGateway } from "../../src/gateway/open-gateway.ts";
import type { TransportChoice } from "../../src/gateway/transport-choice.ts";
import { serve } from "../../src/serve/server.ts";
import { segmentLines } from "../fixtures/archive/archived-lines.ts";
import { sharedDuckDB } from "../fixtures/archive/shared-duckdb.ts";
import { ArraySource, type Manners, rowsAt } from "../fixtures/source/array-source.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";

const run = { instanceId: "alpha", runId: "2022-01-01" };
const second = 1_000_000_000n;
const start = 1_640_995_200_000_000_001n;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-paged-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Ten rows share the third timestamp, and nothing tells them apart that a filter could ask for. */
const times = [0n, 1n, ...Array<bigint>(10).fill(2n), 3n, 4n].map((at) => start + at * second);
const rows = rowsAt(run, "metrics", times, [""]).map((row) => ({
  ...row,
  line: row.line.replace(/"(resource_key|account|portfolio)":"[^"]*"/g, '"$1":"same"'),
}));

/** Archives from a gateway that gives at most four rows an answer, or as many as are said. */
async function archived(
  name: string,
  transport: TransportChoice,
  manners: Manners,
  { held = rows, cap = 4 } = {},
) {
  const source = new ArraySource(run, new Map([["metrics", held]]), manners);
  const server = await serve({ source, host: "127.0.0.1", port: 0, maxRowsPerAnswer: cap });
  try {
    await using gateway = openGateway({ baseUrl: server.url, retry: quickRetry({ retries: 0 }) }, transport);
    const archive = await openArchive(join(folder, name), { create: true });
    const { manifest } = await archiveRun({
      source: gateway,
      archive,
      run,
      tables: ["metrics"],
      clock: () => start + 1_000_000n * second,
      retry: quickRetry({ retries: 1 }),
      signal: new AbortController().signal,
      tool: "test",
      duckdb: sharedDuckDB,
    });
    return { table: manifest.tables.metrics!, lines: await segmentLines(archive, run, "metrics") };
  } finally {
    await server.close();
  }
}

describe.each([
  ["with storage facts", {}, "counted"],
  ["without storage facts", { literal: true }, "exhausted"],
] as const)("a timestamp with more rows than an answer may have, %s", (how, manners, proof) => {
  test("is archived whole where the gateway also gives pages", async () => {
    const { table, lines } = await archived(`auto ${how}`, "auto", manners);
    expect(latestView(table)).toMatchObject({ state: "COMPLETE", certificate: { proof, rows: rows.length } });
    expect(lines).toEqual(rows.map(({ line }) => line));
  });

  test("is archived whole by pages alone", async () => {
    const { table, lines } = await archived(`rpc ${how}`, "rpc", manners);
    expect(latestView(table)).toMatchObject({ state: "COMPLETE", certificate: { proof, rows: rows.length } });
    expect(lines).toEqual(rows.map(({ line }) => line));
  });

  test("is named where there are only answers", async () => {
    const { table } = await archived(`rest ${how}`, "rest", manners);
    expect(latestView(table)).toMatchObject({ state: "INCOMPLETE", error: { code: "timestamp_capped" } });
  });
});

test("a last timestamp that an answer hardly holds is shown whole by pages of half as many rows at most, and by no larger ones", async () => {
  // an answer has room for one row ahead of the ten
  const world = { held: rows.slice(0, 12), cap: 11 };
  const rest = await archived("rest end", "rest", { literal: true }, world);
  expect(latestView(rest.table).state).toBe("UNVERIFIED");
  const { table } = await archived("auto end", "auto", { literal: true }, world);
  expect(latestView(table)).toMatchObject({
    state: "COMPLETE",
    certificate: { restsOn: [expect.anything(), "pages that end behind the same rows as its answers"] },
  });
});

/** Pages that end early, whole as they look, or with two rows the wrong way round; answers hold four rows. */
async function archivedPast(name: string, paged: (lines: readonly string[]) => readonly string[]) {
  const source = new ArraySource(run, new Map([["metrics", rows]]), { literal: true, cap: 4 });
  const archive = await openArchive(join(folder, name), { create: true });
  const { manifest } = await archiveRun({
    source: Object.assign(source, {
      async *pagedRows({ from = 0n }: { readonly from?: bigint | undefined }) {
        const lines = rows.filter((row) => row.ts >= from).map(({ line }) => line);
        yield Buffer.from(
          paged(lines)
            .map((line) => `${line}\n`)
            .join(""),
        );
      },
    }),
    archive,
    run,
    tables: ["metrics"],
    clock: () => start + 1_000_000n * second,
    retry: quickRetry({ retries: 1 }),
    signal: new AbortController().signal,
    tool: "test",
    duckdb: sharedDuckDB,
  });
  return { table: manifest.tables.metrics!, lines: await segmentLines(archive, run, "metrics") };
}

test("without facts, pages that pass the timestamp are all of its rows, and pages that just end prove nothing", async () => {
  const whole = await archivedPast("passing", (lines) => lines);
  expect(latestView(whole.table)).toMatchObject({ state: "COMPLETE", certificate: { rows: rows.length } });
  expect(whole.lines).toEqual(rows.map(({ line }) => line));
  const short = await archivedPast("short", (lines) => lines.slice(0, 6));
  expect(latestView(short.table)).toMatchObject({ state: "INCOMPLETE", error: { code: "timestamp_capped" } });
});

test("pages out of order are told as rows out of order, not as a bug", async () => {
  const { table } = await archivedPast("order", ([one, two, ...rest]) => [two!, one!, ...rest]);
  expect(latestView(table)).toMatchObject({ state: "INCOMPLETE", error: { code: "row_order" } });
});
