import { expect, test } from "vitest";
import { openDuckDB } from "../../src/duckdb/open-duckdb.ts";
import { CutStream, countedStream } from "../../src/duckdb/whole-stream.ts";

test("a stream has as many rows as were counted, or throws", async () => {
  await using duckdb = await openDuckDB({ threads: 1 });
  const read = async (came: number, counted: number) => {
    const result = await duckdb.connection.stream(`SELECT * FROM range(${came})`);
    let read = 0;
    for await (const { rows } of countedStream(result, counted)) read += rows;
    return read;
  };
  for (const rows of [0, 1, 5_000]) expect(await read(rows, rows)).toBe(rows);
  for (const rows of [0, 1, 4_999])
    await expect(read(rows, 5_000)).rejects.toThrow(new CutStream(rows).message);
  await expect(read(5_000, 4_999)).rejects.toMatchObject({ code: "internal" });
});
