import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openDuckDB } from "../../src/duckdb/open-duckdb.ts";
import { literal } from "../../src/duckdb/sql.ts";
import { buildArchive } from "../fixtures/archive/query-archive.ts";
import { run } from "../fixtures/command/command-process.ts";
import { inProject } from "../fixtures/command/project.ts";

let built: Awaited<ReturnType<typeof buildArchive>>;
let folder: string;
let file: string;
beforeEach(async () => {
  built = await buildArchive([
    { instanceId: "a", runId: "1", tables: { fills: { state: "COMPLETE", rows: 3 } } },
  ]);
  folder = await mkdtemp(join(tmpdir(), "runvault-log-"));
  file = join(folder, "run.duckdb");
});
afterEach(async () => {
  await built.dispose();
  await rm(folder, { recursive: true, force: true });
});

const exporting = (...more: string[]) =>
  run(["export", "fills", "--archive", built.dir, "--out", file, ...more]);

/** Opens a database as somebody at work does, lets something happen, and is killed once its changes are in the log. */
async function killedWhileWriting(database: string, meanwhile = async () => {}): Promise<void> {
  const code = `
    const { DuckDBInstance } = await import("@duckdb/node-api");
    const connection = await (await DuckDBInstance.create(${JSON.stringify(database)})).connect();
    console.log("open");
    await new Promise((go) => process.stdin.once("data", go));
    await connection.run("DELETE FROM fills; CREATE TABLE mine AS SELECT 42 AS answer");
    console.log("written");
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", code], { cwd: inProject(".") });
  const lines = createInterface({ input: child.stdout });
  await once(lines, "line");
  await meanwhile();
  const written = once(lines, "line");
  child.stdin.write("go\n");
  await written;
  child.kill("SIGKILL");
  await once(child, "close");
}

/** The tables of the database, and its fills. */
async function seen(): Promise<{ tables: string[]; fills: number }> {
  const { connection, close } = await openDuckDB({ threads: 1 });
  try {
    await connection.run(`ATTACH ${literal(file)} AS f`);
    const tables = await connection.runAndReadAll(
      "SELECT table_name FROM duckdb_tables() WHERE database_name = 'f' ORDER BY ALL",
    );
    const fills = await connection.runAndReadAll("SELECT count(*) FROM f.fills");
    return { tables: tables.getRows().map(String), fills: Number(fills.getRows()[0]![0]) };
  } finally {
    close();
  }
}

const whole = { tables: ["fills", "runs"], fills: 3 };

describe("an export over a database that somebody had open when they were killed", () => {
  test("takes the place of its log, too", async () => {
    expect(await exporting()).toMatchObject({ status: 0 });
    await killedWhileWriting(file);
    expect(await readdir(folder)).toContain("run.duckdb.wal");
    expect(await exporting("--force")).toMatchObject({ status: 0 });
    expect(await readdir(folder)).toEqual(["run.duckdb"]);
    expect(await seen()).toEqual(whole);
  });

  test("and of that of one which was opened through a link", async () => {
    const linked = file;
    file = join(folder, "real.duckdb");
    expect(await exporting()).toMatchObject({ status: 0 });
    await symlink(file, linked);
    await killedWhileWriting(linked);
    file = linked;
    expect(await exporting("--force")).toMatchObject({ status: 0 });
    expect((await readdir(folder)).sort()).toEqual(["real.duckdb", "run.duckdb"]);
    expect(await seen()).toEqual(whole);
  });

  test("is not mixed with what they write afterwards", async () => {
    expect(await exporting()).toMatchObject({ status: 0 });
    await killedWhileWriting(file, async () => {
      expect(await exporting("--force")).toMatchObject({ status: 0 });
    });
    await expect(seen()).rejects.toThrow("WAL does not match database file");
    expect(await exporting("--force")).toMatchObject({ status: 0 });
    expect(await seen()).toEqual(whole);
  });

  test("is refused without --force, also where the log alone is left, and leaves it", async () => {
    expect(await exporting()).toMatchObject({ status: 0 });
    await killedWhileWriting(file);
    expect(await exporting()).toMatchObject({ status: 2 });
    await rename(file, join(folder, "elsewhere.duckdb"));
    const refused = await exporting();
    expect(refused).toMatchObject({ status: 2, stderr: expect.stringContaining("run.duckdb.wal") });
    expect(await readdir(folder)).toEqual(["elsewhere.duckdb", "run.duckdb.wal"]);
    expect(await exporting("--force")).toMatchObject({ status: 0 });
    expect(await seen()).toEqual(whole);
  });

  test("leaves the logs of other formats' names alone", async () => {
    const log = join(folder, "fills.csv.wal");
    await writeFile(log, "somebody's");
    const out = join(folder, "fills.csv");
    expect(await run(["export", "fills", "--archive", built.dir, "--out", out, "--force"])).toMatchObject({
      status: 0,
    });
    expect(await readdir(folder)).toContain("fills.csv.wal");
  });
});
