import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openQuery } from "../../src/analytics/query/query.ts";
import { type Archive, openArchive } from "../../src/archive/archive.ts";
import { diffArchives } from "../../src/archive/diff/diff.ts";
import { openArchiveSource } from "../../src/archive/read/archive-source.ts";
import { verifyRun } from "../../src/archive/verify/verify.ts";
import { archiveRun } from "../../src/extract/run/archive-run.ts";
import { parquetLines } from "../fixtures/archive/archived-lines.ts";
import { smallWorld, worldRun } from "../fixtures/archive/archived-world.ts";
import { sharedDuckDB } from "../fixtures/archive/shared-duckdb.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";

// as data lakes call their folders; DuckDB would make columns of them, and write over those that are there
const folders = ["plain", join("venue=HACKED", "run_id=12", "symbol=X", "ts_event=7")];
const fills = smallWorld()
  .get("fills")!
  .map(({ line }) => line);

let folder: string;
const archives: Archive[] = [];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-equals-"));
  for (const name of folders) {
    const archive = await openArchive(join(folder, name), { create: true });
    await archiveRun({
      source: new ArraySource(worldRun, smallWorld()),
      archive,
      run: worldRun,
      clock: () => 2_000_000_000_000_000_000n,
      retry: quickRetry(),
      signal: new AbortController().signal,
      tool: "test",
      duckdb: sharedDuckDB,
      settings: { fingerprint: true },
    });
    archives.push(archive);
  }
});
afterAll(() => rm(folder, { recursive: true, force: true }));

it("folders called name=value above an archive change no value of it", async () => {
  const [plain, odd] = archives as [Archive, Archive];
  expect(await parquetLines(odd, worldRun, "fills")).toEqual(fills);
  expect((await odd.manifest(worldRun))!.tables.fills!.proven!.certificate!.rowHash).toEqual(
    (await plain.manifest(worldRun))!.tables.fills!.proven!.certificate!.rowHash,
  );
  const report = await verifyRun(odd, worldRun, { deep: true, duckdb: sharedDuckDB });
  expect(report.checks.filter(({ ok }) => !ok)).toEqual([]);
  expect((await diffArchives(plain, odd)).equal).toBe(true);

  await using query = await openQuery(odd);
  const rows: unknown[] = [];
  const result = await query.run(
    "SELECT DISTINCT run_id FROM fills WHERE venue <> 'HACKED' AND symbol <> 'X'",
  );
  for await (const batch of result.batches()) rows.push(...batch);
  expect(rows).toEqual([["2022-01-01"]]);

  await using source = openArchiveSource(odd);
  const chunks: Uint8Array[] = [];
  for await (const chunk of source.rows({ ...worldRun, table: "fills", filters: { symbol: "A" } }))
    chunks.push(chunk);
  expect(Buffer.concat(chunks).toString().trimEnd().split("\n")).toEqual(
    fills.filter((line) => line.includes('"symbol":"A"')),
  );
});
