import { join } from "node:path";
import { expect, test } from "vitest";
import { openDuckDB } from "../../src/duckdb/open-duckdb.ts";
import { requireDistinctSeq } from "../../src/extract/run/distinct-seq.ts";
import { tableNamed } from "../../src/model/profile/table.ts";
import { at, hours, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

test("a row that is in two places of a table's files is found by its seq", async () => {
  await using tables = await TableWorld.create();
  const source = new ArraySource(run, world({ fills: hours(60), orders: hours(60) }));
  // the same row once more, where it moved to
  const rows = source.tables.get("fills")!;
  const line = rows[7]!.line.replace(`"ts_event":"${at(7)}"`, `"ts_event":"${at(41) + 1n}"`);
  source.tables.set("fills", rows.toSpliced(42, 0, { ...rows[7]!, ts: at(41) + 1n, line }));
  const { manifest } = await tables.archiveRun(source);
  await using duckdb = await openDuckDB({
    memoryLimitMb: 256,
    threads: 1,
    tempDirectory: join(tables.archive.dir, "spilled"),
  });
  const dir = tables.archive.layout.dataDir(run);
  const required = (name: "fills" | "orders") => {
    const files = manifest.tables[name]!.proven!.parquet.map(({ file }) => join(dir, file));
    return requireDistinctSeq(duckdb.connection, tableNamed(name), files);
  };
  await expect(required("fills")).rejects.toMatchObject({
    code: "duplicate_row",
    message: "2 rows have the seq 8",
    place: { table: "fills" },
  });
  await required("orders");
  await requireDistinctSeq(duckdb.connection, tableNamed("fills"), []);
});
