// @module-tag slow
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildArchive } from "../fixtures/archive/query-archive.ts";
import { runInside } from "../fixtures/command/command-inside.ts";

let built: Awaited<ReturnType<typeof buildArchive>>;
let folder: string;
beforeAll(async () => {
  const fills = (rows: number) => ({ fills: { state: "COMPLETE" as const, rows } });
  built = await buildArchive([
    { instanceId: "a", runId: "1", tables: fills(3) },
    { instanceId: "a", runId: "_x/y", tables: fills(2) },
    { instanceId: "b", runId: "1", tables: {} },
  ]);
  folder = await mkdtemp(join(tmpdir(), "runvault-export-"));
});
afterAll(async () => {
  await built.dispose();
  await rm(folder, { recursive: true, force: true });
});

const exporting = (...more: string[]) => runInside(["export", "--archive", built.dir, ...more]);

describe("the format, where it is not given,", () => {
  test.each([
    ["x.parquet", "parquet"],
    ["x.arrow", "arrow"],
    ["x.arrows", "arrow-stream"],
    ["x.duckdb", "duckdb"],
    ["x.ndjson", "ndjson"],
    ["x.jsonl", "ndjson"],
    ["x.CSV", "csv"],
  ])("is told by the name %s", async (name, format) => {
    const { status, stdout, stderr } = await exporting("fills", "--out", join(folder, name), "--json");
    expect({ status, stderr }).toMatchObject({ status: 0 });
    expect(JSON.parse(stdout)).toMatchObject({ format, rows: 5 });
  });

  test("is the given one, whatever the name", async () => {
    const out = join(folder, "named.parquet");
    expect((await exporting("fills", "--out", out, "--format", "csv")).status).toBe(0);
    expect((await readFile(out, "utf8")).split(",")[0]).toBe("run_id");
  });

  test("of several tables in one database is told by its name", async () => {
    const { status } = await exporting("fills", "orders", "--out", join(folder, "two.duckdb"));
    expect(status).toBe(0);
  });

  test.each([
    [["fills", "--out", "x.xls"], "the format is not clear from the file name: x.xls"],
    [["fills", "--out", "x"], "the format is not clear from the file name: x"],
    [
      ["fills", "orders", "--out", "x.parquet"],
      "several tables go to a folder, and a folder has no file ending",
    ],
    [
      ["fills", "--partition", "run", "--out", "x.parquet"],
      "--partition writes to a folder, and a folder has no file ending",
    ],
    [["fills", "--out", "-"], "standard output has no file ending"],
  ])("has to be given: %j", async (args, message) => {
    const { status, stderr } = await exporting(...args);
    expect(status).toBe(2);
    expect(stderr).toContain(message);
    expect(stderr).toContain("Give --format, one of parquet, arrow, arrow-stream, duckdb, ndjson, csv.");
  });
});

describe("--partition run", () => {
  test("writes a file a table and run, named by the ids, which stay in the file as text", async () => {
    const out = join(folder, "lake");
    const { status, stdout } = await exporting(
      ...["fills", "orders", "--partition", "run", "-f", "parquet", "--out", out, "--json"],
    );
    expect(status).toBe(0);
    const { files } = JSON.parse(stdout) as { files: { file: string; instance: string; run: string }[] };
    const place = (run: string) => join(out, "fills", "a", `${run}.parquet`);
    expect(files).toMatchObject([
      { file: place("1"), instance: "a", run: "1", tables: [{ table: "fills", rows: 3 }] },
      { file: place("%5Fx%2Fy"), instance: "a", run: "_x/y", tables: [{ table: "fills", rows: 2 }] },
    ]);
    const connection = await (await DuckDBInstance.create()).connect();
    const rows = await connection.runAndReadAll(
      `SELECT instance_id, run_id, count(*)::INTEGER, max(seq)::INTEGER
       FROM read_parquet('${out}/fills/**/*.parquet') GROUP BY ALL ORDER BY ALL`,
    );
    expect(rows.getRows()).toEqual([
      ["a", "1", 3, 2],
      ["a", "_x/y", 2, 1],
    ]);
    connection.closeSync();
  });

  test("takes filters, and the other formats", async () => {
    const out = join(folder, "lines");
    const args = ["fills", "--partition", "run", "-f", "ndjson", "--run", "a/1", "--out", out];
    expect((await exporting(...args)).status).toBe(0);
    const part = join(out, "fills", "a", "1.ndjson");
    expect((await readFile(part, "utf8")).trimEnd().split("\n")).toHaveLength(3);
  });

  test("is refused beside a file that readers would take for one of its own, even with --force", async () => {
    const out = join(folder, "stale");
    const args = ["fills", "--partition", "run", "-f", "csv", "--out", out, "--force"];
    expect((await exporting(...args)).status).toBe(0);
    expect((await exporting(...args)).status).toBe(0);
    await mkdir(join(out, "fills", "gone"));
    await writeFile(join(out, "fills", "gone", "1.csv"), "");
    const { status, stderr } = await exporting(...args);
    expect(status).toBe(2);
    expect(stderr).toContain("a file already exists that this export would not write");
    expect(stderr).toContain(join("gone", "1.csv"));
  });

  test.each([
    [["-f", "duckdb", "--out", "x"], "a database cannot be partitioned"],
    [["-f", "csv", "--out", "-"], "--partition writes to a folder"],
  ])("is refused with %j", async (more, message) => {
    const { status, stderr } = await exporting("fills", "--partition", "run", ...more);
    expect({ status, told: stderr.includes(message) }, stderr).toEqual({ status: 2, told: true });
  });
});

describe("an output inside the archive", () => {
  test.each(["x.csv", "tables/fills/x.csv", "not/there/x.csv"])("is refused: %s", async (name) => {
    const { status, stderr } = await exporting("fills", "--out", join(built.dir, name));
    expect({ status, told: stderr.includes("--out is inside the archive") }, stderr).toEqual({
      status: 2,
      told: true,
    });
  });

  test("is one that begins with the archive's name no more than any other", async () => {
    const beside = `${built.dir}-x.csv`;
    expect((await exporting("fills", "--out", beside)).status).toBe(0);
    await rm(beside);
  });
});
