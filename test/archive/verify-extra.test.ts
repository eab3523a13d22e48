import { createHash } from "node:crypto";
import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { manifestText } from "../../src/archive/manifest/manifest.ts";
import { verifyRun } from "../../src/archive/verify/verify.ts";
import { addExtraColumns } from "../../src/extract/run/extra-columns.ts";
import { failedChecks } from "../fixtures/archive/archived-world.ts";
import { sharedDuckDB } from "../fixtures/archive/shared-duckdb.ts";
import { at, hours, run, TableWorld } from "../fixtures/archive/table-world.ts";
import { DerivedSource, rowsWithoutSeq, tablesOf } from "../fixtures/source/derived-source.ts";

it.each([
  ["another value", `replace(extra, '"lot":2', '"lot":3')`, ["fills lines"]],
  ["none", "CAST(NULL AS VARCHAR)", ["fills lines"]],
  ["the same", "extra", []],
])("a column extra that has %s than its segment is told by the deep check", async (_, changed, told) => {
  await using place = await TableWorld.create();
  const { archive } = place;
  await addExtraColumns(archive, ["fills"], () => {}, new AbortController().signal);
  const rows = rowsWithoutSeq(run, "fills", hours(5).map(at)).map((row, i) => ({
    ...row,
    line: i === 0 ? row.line : `${row.line.slice(0, -1)},"extra":{"lot":${i}}}`,
  }));
  await place.archiveRun(new DerivedSource(run, tablesOf({ fills: rows })));
  const manifest = (await archive.manifest(run))!;
  const [parquet] = manifest.tables.fills!.proven!.parquet;
  const file = join(archive.layout.dataDir(run), parquet!.file);
  const out = join(archive.dir, "staging", "rewritten.parquet");
  const duckdb = await sharedDuckDB.forJob({
    ...{ memoryLimitMb: 200, threads: 1, tempDirectory: join(archive.dir, "staging") },
  });
  const select = `SELECT * REPLACE (${changed} AS extra) FROM '${file}'`;
  await duckdb.connection.run(`COPY (${select}) TO '${out}' (FORMAT parquet)`);
  await rename(out, file);
  const bytes = await readFile(file);
  Object.assign(parquet!, {
    sha256: createHash("sha256").update(bytes).digest("hex"),
    storedBytes: bytes.byteLength,
  });
  await writeFile(archive.layout.manifestFile(run), manifestText(manifest));
  const report = await verifyRun(await openArchive(archive.dir), run, { deep: true, duckdb: sharedDuckDB });
  expect(failedChecks(report)).toEqual(told);
});
