import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { lockToFiles, openDuckDB } from "../../src/duckdb/open-duckdb.ts";
import { literal } from "../../src/duckdb/sql.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-open-duckdb-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

test("a locked DuckDB touches the files that it was opened for and no others, and stays locked", async () => {
  const [mine, other] = [join(folder, "it's [mine].csv"), join(folder, "other.csv")];
  await writeFile(mine, "a\n1\n");
  await writeFile(other, "a\n1\n");
  await using duckdb = await openDuckDB({ threads: 1 });
  await lockToFiles(duckdb, [mine]);
  const read = (file: string) => duckdb.connection.run(`SELECT * FROM read_text(${literal(file)})`);
  await read(mine.replace("[", "[[]"));
  for (const refused of [
    () => read(other),
    () => duckdb.connection.run(`COPY (SELECT 1) TO ${literal(join(folder, "new.csv"))}`),
    () => duckdb.connection.run("SET enable_external_access = true"),
    () => duckdb.connection.run("SET memory_limit = '99GB'"),
    () => duckdb.connection.run("SET allowed_configs = ['enable_external_access']"),
  ]) {
    await expect(refused()).rejects.toThrow(/Permission Error|locked|has been disabled/);
  }
  expect((await readdir(folder)).sort()).toEqual(["it's [mine].csv", "other.csv"]);
});

test("times are UTC where that is asked for", async () => {
  await using duckdb = await openDuckDB({ threads: 1, utc: true });
  const [[zone]] = (
    await duckdb.connection.runAndReadAll("SELECT current_setting('TimeZone')")
  ).getRows() as [[string]];
  expect(zone).toBe("UTC");
});

test("what does not fit in memory is spilled to the folder alone, and refused without one", async () => {
  const options = { threads: 1, memoryLimitMb: 16 };
  const sort = "SELECT max(s) FROM (SELECT hash(range)::VARCHAR s FROM range(1000000) ORDER BY s OFFSET 1)";
  {
    await using duckdb = await openDuckDB({ ...options, tempDirectory: join(folder, "spill") });
    await duckdb.connection.run(sort);
  }
  await using duckdb = await openDuckDB(options);
  await expect(duckdb.connection.run(sort)).rejects.toThrow(/Out of Memory/);
});
