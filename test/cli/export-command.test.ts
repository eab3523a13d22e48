// @module-tag slow
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tableFromIPC } from "apache-arrow";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildArchive } from "../fixtures/archive/query-archive.ts";
import { runInside } from "../fixtures/command/command-inside.ts";

let built: Awaited<ReturnType<typeof buildArchive>>;
let folder: string;
beforeAll(async () => {
  built = await buildArchive([
    {
      instanceId: "a",
      runId: "1",
      tables: { fills: { state: "COMPLETE", rows: 60_000 }, bars: { state: "INCOMPLETE", rows: 3 } },
    },
  ]);
  folder = await mkdtemp(join(tmpdir(), "runvault-export-"));
});
afterAll(async () => {
  await built.dispose();
  await rm(folder, { recursive: true, force: true });
});

const args = (...more: string[]) => ["export", "--archive", built.dir, ...more];

describe("wrong usage is refused", () => {
  test.each([
    [["fills", "-f", "parquet", "-o", "-"], "parquet cannot be written to standard output", "arrow-stream"],
    [["fills", "-f", "arrow", "-o", "-"], "arrow cannot be written", "Use --format arrow-stream"],
    [["fills", "bars", "-f", "csv", "-o", "-"], "standard output takes one table", "folder"],
    [["fills", "-f", "csv", "-o", "-", "--json"], "--json reports", ""],
    [["-f", "csv", "-o", "x"], "no table is named", "--all-tables"],
    [["fills", "--all-tables", "-f", "csv", "-o", "x"], "cannot be combined", ""],
    [["fils", "-f", "csv", "-o", "x"], "no table", "Did you mean fills?"],
    [["equity", "-f", "csv", "-o", "x", "--symbol", "A"], "equity cannot be filtered by symbol", "--symbol"],
    [["fills", "-f", "csv", "-o", "x", "--from", "yesterday"], "--from must be a time", ""],
    [
      ["fills", "-f", "csv", "-o", "x", "--from", "2ns", "--to", "2ns"],
      "--from must be before --to",
      "left out",
    ],
    [["fills", "-f", "csv", "-o", "/dev/null", "--force"], "a pipe or a device", "--out -"],
    [["fills", "-f", "csv", "-o", "x/"], "--out names a folder", ""],
    [["fills", "-f", "cvs", "-o", "x"], "cvs", ""],
    [["fills", "-f", "csv"], "--out", ""],
    [
      ["fills", "-f", "csv", "-o", "x", "--run", "a/2"],
      'the archive has no run "2" of instance "a"',
      "runvault runs",
    ],
    [["fills", "-f", "csv", "-o", "x", "--run", "a/current"], "`current` is not a run id", ""],
  ])("%j", async (more, message, hint) => {
    const { status, stdout, stderr } = await runInside(args(...more));
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toContain(message);
    expect(stderr).toContain(hint);
  });

  test("and so is a stream of bytes to a terminal, of export and of query", async () => {
    const onTerminal = { stdoutIsTerminal: true };
    const exported = await runInside(args("fills", "-f", "arrow-stream", "-o", "-"), onTerminal);
    const queried = await runInside(
      ["query", "--archive", built.dir, "-f", "arrow", "FROM fills"],
      onTerminal,
    );
    for (const { status, stderr } of [exported, queried]) {
      expect(status).toBe(2);
      expect(stderr).toContain("cannot be shown on a terminal");
    }
  });
});

describe("what is there already", () => {
  test("stays unless --force replaces it", async () => {
    const out = join(folder, "there.csv");
    await writeFile(out, "mine");
    const refused = await runInside(args("fills", "-f", "csv", "-o", out));
    expect(refused.status).toBe(2);
    expect(refused.stderr).toContain("--force");
    expect(await readFile(out, "utf8")).toBe("mine");
    expect((await runInside(args("fills", "-f", "csv", "-o", out, "--force"))).status).toBe(0);
    expect((await stat(out)).size).toBeGreaterThan(1_000_000);
  });

  test("is not replaced in part: one file in the way, and none is written", async () => {
    const out = join(folder, "several");
    await mkdir(out);
    await writeFile(join(out, "bars.csv"), "mine");
    const refused = await runInside(args("fills", "bars", "-f", "csv", "-o", out));
    expect(refused.status).toBe(2);
    expect(await readdir(out)).toEqual(["bars.csv"]);
  });

  test("as a folder is no place for a file, nor a file for a folder", async () => {
    const { status, stderr } = await runInside(args("fills", "-f", "csv", "-o", folder, "--force"));
    expect({ status, stderr }).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("names a folder"),
    });
    await writeFile(join(folder, "file"), "");
    const below = await runInside(args("fills", "-f", "csv", "-o", join(folder, "file", "x.csv")));
    expect(below.status).toBe(2);
  });
});

test("a run named twice is exported once, and files lists it once", async () => {
  const once = await runInside(args("fills", "-f", "csv", "-o", "-", "--run", "a/1"));
  const twice = await runInside(args("fills", "-f", "csv", "-o", "-", "--run", "a/1", "--run", "a/1"));
  expect(twice.stdout.length).toBe(once.stdout.length);
  const files = await runInside([
    "export",
    "--list",
    "fills",
    "--run",
    "a/1",
    "--run",
    "a/1",
    "--archive",
    built.dir,
  ]);
  expect(files.stdout.trim().split("\n")).toHaveLength(1);
});

test("a run where tables are named is told where runs go", async () => {
  const { status, stderr } = await runInside([
    "export",
    "fills",
    "a/1",
    "--archive",
    folder,
    "--out",
    "x.csv",
  ]);
  expect([status, stderr]).toEqual([2, expect.stringContaining("runs are chosen by --run INSTANCE/RUN.")]);
});

test("a table that was never archived is not just empty", async () => {
  const { status, stderr } = await runInside(args("orders", "-f", "csv", "-o", "-"));
  expect(status).toBe(0);
  expect(stderr).toContain("never archived and is left out: orders of a/1");
});

test("the report names files, tables, rows and bytes", async () => {
  const out = join(folder, "report");
  const { status, stdout } = await runInside(args("fills", "bars", "-f", "parquet", "-o", out, "--json"));
  expect(status).toBe(0);
  const { files, ...whole } = JSON.parse(stdout);
  expect(whole).toMatchObject({ format: "parquet", rows: 60_000, seconds: expect.any(Number) });
  expect(files).toMatchObject([
    { file: join(out, "fills.parquet"), tables: [{ table: "fills", rows: 60_000 }] },
    { file: join(out, "bars.parquet"), tables: [{ table: "bars", rows: 0 }] },
  ]);
  expect(files[0].bytes).toBe((await stat(files[0].file)).size);
  expect(whole.bytes).toBe(files[0].bytes + files[1].bytes);
});

test("tables that are not whole are left out aloud, and given on request", async () => {
  const held = await runInside(args("bars", "-f", "ndjson", "-o", "-"));
  expect(held).toMatchObject({
    status: 0,
    stdout: "",
    stderr: expect.stringContaining("bars of a/1 (INCOMPLETE)"),
  });
  const given = await runInside(args("bars", "-f", "ndjson", "-o", "-", "--allow-incomplete"));
  expect(given.stdout.split("\n")).toHaveLength(4);
  expect(given.stderr).toBe("warning: 1 table is shown although not proven: bars of a/1 (INCOMPLETE)\n");
});

test("an answer goes as an Arrow stream, with what Arrow lacks as text", async () => {
  const sql =
    "SELECT seq, ts_event, price, fee, sum(seq) OVER () AS total, [1, NULL] AS list, -1.5::DECIMAL(4,2) AS d4, true AS b FROM fills ORDER BY seq LIMIT 2";
  const pieces: Uint8Array[] = [];
  const { status, stderr } = await runInside(["query", "--archive", built.dir, "-f", "arrow", sql], {
    out: async (data) => pieces.push(Buffer.from(data as Uint8Array)) > 0,
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "note: as text: list (INTEGER[])\n" });
  const table = tableFromIPC(Buffer.concat(pieces));
  expect(table.schema.fields.map(({ name, type }) => `${name} ${type}`)).toEqual([
    "seq Uint64",
    "ts_event Timestamp<NANOSECOND>",
    "price Decimal[18e+9]",
    "fee Decimal[18e+9]",
    "total Decimal[38e0]",
    "list Utf8",
    "d4 Decimal[4e+2]",
    "b Bool",
  ]);
  expect(table.getChild("fee")!.nullCount).toBe(2);
  expect(table.getChild("list")!.get(0)).toBe("[1,null]");
  expect([...(table.getChild("d4")!.get(0) as Uint32Array)]).toEqual([
    2 ** 32 - 150,
    2 ** 32 - 1,
    2 ** 32 - 1,
    2 ** 32 - 1,
  ]);
  const huge = "SELECT 170141183460469231731687303715884105727::HUGEINT AS h";
  const failed = await runInside(["query", "--archive", built.dir, "-f", "arrow", huge]);
  expect(failed.status).toBe(4);
  expect(failed.stderr).toContain(
    "column h: 170141183460469231731687303715884105727 has more than 38 digits",
  );
});
