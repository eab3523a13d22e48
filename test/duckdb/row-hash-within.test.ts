import { join } from "node:path";
import { expect, test } from "vitest";
import { openDuckDB } from "../../src/duckdb/open-duckdb.ts";
import { rowHashWithin } from "../../src/duckdb/row-hash-within.ts";
import { tableNamed } from "../../src/model/profile/table.ts";
import { int64Max, int64Min } from "../../src/model/time.ts";
import { rowHash } from "../../src/row/row-hash.ts";
import { at, hours, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

test("the row hash of a window is that of its rows, and those of windows that join add up", async () => {
  await using tables = await TableWorld.create();
  const source = new ArraySource(run, world({ fills: hours(60) }));
  const { manifest } = await tables.archiveRun(source);
  const dir = tables.archive.layout.dataDir(run);
  const files = manifest.tables.fills!.proven!.parquet.map(({ file }) => join(dir, file));
  const spilled = join(tables.archive.dir, "spilled");
  await using duckdb = await openDuckDB({ memoryLimitMb: 256, threads: 2, tempDirectory: spilled });
  const within = (bounds = {}) => rowHashWithin(duckdb.connection, tableNamed("fills"), files, bounds);
  for (const bounds of [
    {},
    { from: at(13) },
    { from: at(13), to: at(14) },
    { to: at(13) + 1n },
    { from: at(13), to: at(13) },
    { from: int64Min, to: int64Max },
  ]) {
    const lines = source.rowsWithin("fills", bounds).map(({ line }) => line);
    expect(await within(bounds)).toEqual(await rowHash(lines));
  }
  const [early, late, whole] = [await within({ to: at(41) }), await within({ from: at(41) }), await within()];
  expect({ rows: early.rows + late.rows, hash: early.hash + late.hash }).toEqual(whole);
});

test("the row hash of no files is that of no rows", async () => {
  await using tables = await TableWorld.create();
  const spilled = join(tables.archive.dir, "spilled");
  await using duckdb = await openDuckDB({ memoryLimitMb: 256, threads: 1, tempDirectory: spilled });
  expect(await rowHashWithin(duckdb.connection, tableNamed("fills"), [])).toEqual(await rowHash([]));
});
