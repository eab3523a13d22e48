import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { latestView } from "../../src/archive/manifest/table-view.ts";
import { archiveRun } from "../../src/extract/run/archive-run.ts";
import { openGateway } from "../../src/gateway/open-gateway.ts";
import type { RowRequest } from "../../src/model/source.ts";
import { serve } from "../../src/serve/server.ts";
import { parquetLines, segmentLines } from "../fixtures/archive/archived-lines.ts";
import { reportOf, worldRun } from "../fixtures/archive/archived-world.ts";
import { sharedDuckDB } from "../fixtures/archive/shared-duckdb.ts";
import { ArraySource, rowsAt } from "../fixtures/source/array-source.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-odd-zeros-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const times = Array.from({ length: 40 }, (_, i) => 1_640_995_200_000_000_000n + BigInt(i) * 1_000_000_000n);

/** Fills of which some have a fee of `-0.00` and a price with zeros ahead. */
function oddFills() {
  return rowsAt(worldRun, "fills", times).map((row, i) => {
    const line = row.line
      .replace(/"fee":"[^"]*"/, i % 7 === 3 ? '"fee":"-0.00"' : '"fee":"0"')
      .replace(/"price":"/, i % 11 === 5 ? '"price":"00' : '"price":"');
    return { ...row, line };
  });
}

test.each([
  ["rest", false],
  ["rest", true],
  ["rpc", false],
] as const)(
  "over %s, zeros that say nothing are not stored, and what is stored is certified (literal: %s)",
  async (transport, literal) => {
    const rows = oddFills();
    const source = new ArraySource(worldRun, new Map([["fills", rows]]), { literal });
    const served = await serve({ source, host: "127.0.0.1", port: 0, literal });
    await using gateway = openGateway({ baseUrl: served.url, retry: quickRetry() }, transport);
    const archive = await openArchive(await mkdtemp(join(folder, "a-")), { create: true });
    const { manifest } = await archiveRun({
      source: gateway,
      archive,
      run: worldRun,
      tables: ["fills"],
      clock: () => 2_000_000_000_000_000_000n,
      retry: quickRetry(),
      signal: new AbortController().signal,
      tool: "test",
      duckdb: sharedDuckDB,
      settings: { segmentBytes: 3000, sliceRows: 20, fingerprint: true },
    });
    await served.close();
    expect(latestView(manifest.tables.fills)).toMatchObject({
      state: "COMPLETE",
      certificate: { rows: 40, quarantined: 0, proof: literal ? "exhausted" : "counted" },
      drift: ["odd zeros in decimals"],
    });
    const canonical = rows.map(({ line }) =>
      line.replace('"-0.00"', '"0"').replace(/"price":"00(?=\d)/, '"price":"'),
    );
    expect(await segmentLines(archive, worldRun, "fills")).toEqual(canonical);
    expect(await parquetLines(archive, worldRun, "fills")).toEqual(canonical);
    expect((await reportOf(archive, worldRun)).checks.filter(({ ok }) => !ok)).toEqual([]);
  },
);

test("rows with odd zeros are known to be the same when they are streamed once more", async () => {
  const archive = await openArchive(await mkdtemp(join(folder, "a-")), { create: true });
  const archived = async (final: boolean) => {
    const source = new ArraySource(worldRun, new Map([["fills", oddFills()]]), { final });
    const requests: RowRequest[] = [];
    const rows = source.rows.bind(source);
    source.rows = (request) => {
      requests.push(request);
      return rows(request);
    };
    const { manifest } = await archiveRun({
      source,
      archive,
      run: worldRun,
      tables: ["fills"],
      clock: () => 2_000_000_000_000_000_000n,
      retry: quickRetry(),
      signal: new AbortController().signal,
      tool: "test",
      duckdb: sharedDuckDB,
      settings: { segmentBytes: 3000, sliceRows: 5 },
    });
    return { fills: latestView(manifest.tables.fills!), requests };
  };
  expect((await archived(false)).fills.state).toBe("OPEN");
  const { fills, requests } = await archived(true);
  expect(fills).toMatchObject({ state: "COMPLETE", certificate: { rows: 40 } });
  // a window whose bytes differ is asked for again by itself, which shows that its rows are the same; and once more, for
  // what comes twice in other bytes may alternate
  const windows = Map.groupBy(
    requests.filter(({ limit }) => limit !== 1),
    ({ from }) => from,
  );
  expect(Math.max(...[...windows.values()].map((asked) => asked.length))).toBe(3);
  expect(fills.segments.every(({ file }) => file.startsWith("fills.g1."))).toBe(true);
});
