// @module-tag slow
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Decimal, tableFromIPC, type Vector } from "apache-arrow";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { canonicalLineSql } from "../../src/duckdb/canonical-sql.ts";
import { columnType } from "../../src/duckdb/column-type.ts";
import { identifier, literal } from "../../src/duckdb/sql.ts";
import { type Table, tableNamed, tableNames } from "../../src/model/profile/table.ts";
import { canonicalLine, type Row } from "../../src/row/line.ts";
import {
  buildExtremeArchive,
  extremeLines,
  oddRuns,
  rowsPerRun,
} from "../fixtures/archive/extreme-archive.ts";
import { buildArchive } from "../fixtures/archive/query-archive.ts";
import { sharedDuckDB } from "../fixtures/archive/shared-duckdb.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import type { Finished } from "../fixtures/command/command-process.ts";

let built: Awaited<ReturnType<typeof buildArchive>>;
let folder: string;
beforeAll(async () => {
  built = await buildExtremeArchive();
  folder = await mkdtemp(join(tmpdir(), "runvault-export-"));
});
afterAll(async () => {
  await built.dispose();
  await rm(folder, { recursive: true, force: true });
});

async function exported(...args: string[]): Promise<Finished> {
  const done = await runInside(["export", "--archive", built.dir, "--threads", "2", "--quiet", ...args]);
  expect(done).toMatchObject({ status: 0, stderr: "" });
  return done;
}

/** What DuckDB reads of a relation. */
async function duckdbRows(sql: string, attach?: string): Promise<unknown[][]> {
  const { connection } = await sharedDuckDB.forJob({ memoryLimitMb: 256, threads: 2, tempDirectory: folder });
  if (attach === undefined) return (await connection.runAndReadAll(sql)).getRowsJson() as unknown[][];
  await connection.run(`ATTACH ${literal(attach)} AS x (READ_ONLY)`);
  try {
    return (await connection.runAndReadAll(sql)).getRowsJson() as unknown[][];
  } finally {
    await connection.run("DETACH x");
  }
}

/** Column names and types as the archive has them. */
function archivedTypes(table: Table): string[][] {
  const types = built.archive.exactTypes(table.name);
  return table.columns.map((column) => [column.name, columnType(column, types)]);
}

const filesOf = async (name: string) => (await readdir(join(folder, name))).sort();

describe("every value of every table survives", () => {
  test("as Parquet, with the archive's types", async () => {
    await exported("--all-tables", "-f", "parquet", "-o", join(folder, "parquet"));
    expect(await filesOf("parquet")).toEqual(tableNames.map((name) => `${name}.parquet`).sort());
    for (const name of tableNames) {
      const file = `read_parquet(${literal(join(folder, "parquet", `${name}.parquet`))})`;
      const lines = await duckdbRows(`SELECT ${canonicalLineSql(tableNamed(name))} FROM ${file}`);
      expect(lines.flat()).toEqual(extremeLines(built.archive, name));
      const types = await duckdbRows(`SELECT column_name, column_type FROM (DESCRIBE FROM ${file})`);
      expect(types).toEqual(archivedTypes(tableNamed(name)));
    }
  });

  test.each(["arrow", "arrow-stream"])("as %s", async (format) => {
    await exported("--all-tables", "-f", format, "-o", join(folder, format));
    for (const name of tableNames) {
      const end = format === "arrow" ? "arrow" : "arrows";
      const bytes = await readFile(join(folder, format, `${name}.${end}`));
      expect(bytes.toString("latin1", 0, 6) === "ARROW1").toBe(format === "arrow");
      expect(arrowLines(tableNamed(name), bytes)).toEqual(extremeLines(built.archive, name));
    }
  });

  test("as a DuckDB database, with runs and views of doubles", async () => {
    const file = join(folder, "all.duckdb");
    await exported("--all-tables", "-f", "duckdb", "-o", file);
    for (const name of tableNames) {
      const table = tableNamed(name);
      const lines = await duckdbRows(`SELECT ${canonicalLineSql(table)} FROM x.${name}`, file);
      expect(lines.flat()).toEqual(extremeLines(built.archive, name));
      const types = await duckdbRows(`SELECT column_name, column_type FROM (DESCRIBE x.${name})`, file);
      expect(types).toEqual(archivedTypes(table));
      if (!table.columns.some(({ kind }) => kind === "exact")) continue;
      const [column] = table.columns.filter(({ kind }) => kind === "exact");
      const doubles = `SELECT typeof(${identifier(column!.name)}) FROM x.${name}_f LIMIT 1`;
      expect(await duckdbRows(doubles, file)).toEqual([["DOUBLE"]]);
    }
    const runs = await duckdbRows("SELECT instance_id, run_id, fills_rows FROM x.runs", file);
    expect(runs).toEqual(oddRuns.map(({ instanceId, runId }) => [instanceId, runId, String(rowsPerRun)]));
    expect((await readdir(folder)).filter((name) => name.includes("all.duckdb"))).toEqual(["all.duckdb"]);
  });

  test("as NDJSON, the canonical lines", async () => {
    await exported("--all-tables", "-f", "ndjson", "-o", join(folder, "ndjson"));
    for (const name of tableNames) {
      const text = await readFile(join(folder, "ndjson", `${name}.ndjson`), "utf8");
      expect(text).toBe(
        extremeLines(built.archive, name)
          .map((line) => `${line}\n`)
          .join(""),
      );
    }
  });

  test("as CSV, as query prints it", async () => {
    await exported("--all-tables", "-f", "csv", "-o", join(folder, "csv"));
    for (const name of tableNames) {
      const text = await readFile(join(folder, "csv", `${name}.csv`), "utf8");
      const { stdout } = await runInside(["query", "--archive", built.dir, "-f", "csv", `FROM ${name}`]);
      expect(text).toBe(stdout);
    }
  });
});

describe("a part of the rows", () => {
  const text = async (...args: string[]) =>
    (await exported("fills", "-f", "ndjson", "-o", "-", ...args)).stdout;
  const fills = (runs = oddRuns) => extremeLines(built.archive, "fills", runs);

  test("is that of the runs named, in the order of the archive", async () => {
    expect((await text("--run", "Ünï/a/b", "--run", "a%2Fb/12")).trimEnd().split("\n")).toEqual(
      fills([oddRuns[2]!, oddRuns[1]!]),
    );
  });

  test("is cut by symbol and by a half-open window of time", async () => {
    const one = fills([oddRuns[0]!]);
    const at = (row: number) => String(JSON.parse(one[row]!).ts_event);
    const first = ["--run", "12/2026-01-01"];
    expect(await text(...first, "--from", at(1), "--to", at(3))).toBe(`${one[1]}\n${one[2]}\n`);
    expect(await text(...first, "--from", "2022-01-01T00:01:00.000000029Z")).toBe(`${one[4]}\n`);
    expect(await text(...first, "--symbol", "B")).toBe(`${one[1]}\n${one[3]}\n`);
    expect(await text(...first, "--symbol", "b'; --")).toBe("");
    const everything = ["--from", "-9223372036854775808", "--to", "9223372036854775807"];
    expect(await text(...first, ...everything)).toBe(`${one.join("\n")}\n`);
    expect(await text("--to", "-9223372036854775808")).toBe("");
  });

  test("may be none: then there are a header, a schema, a table", async () => {
    for (const format of ["parquet", "arrow", "arrow-stream", "duckdb", "ndjson", "csv"]) {
      const out = join(folder, `none.${format}`);
      await exported("fills", "-f", format, "-o", out, "--symbol", "none");
      if (format === "csv")
        expect(await readFile(out, "utf8")).toMatch(/^run_id,instance_id,seq,[a-z_,]+\n$/);
      if (format === "ndjson") expect(await readFile(out, "utf8")).toBe("");
      if (format === "parquet") expect(await duckdbRows(`FROM ${literal(out)}`)).toEqual([]);
      if (format === "duckdb") expect(await duckdbRows("FROM x.fills", out)).toEqual([]);
      if (format.startsWith("arrow")) {
        const table = tableFromIPC(await readFile(out));
        expect(table.numRows).toBe(0);
        expect(String(table.schema.fields.find(({ name }) => name === "price")?.type)).toBe("Decimal[18e+9]");
      }
    }
  });
});

test("decimals become doubles on request", async () => {
  const [line] = (
    await exported("fills", "-f", "ndjson", "-o", "-", "--decimals", "double", "--run", "a%2Fb/12")
  ).stdout.split("\n");
  expect(JSON.parse(line!)).toMatchObject({ seq: "0", price: 1.5, quantity: 1_000_000_000 });
  const second = join(folder, "doubles.parquet");
  await exported("fills", "-f", "parquet", "-o", second, "--decimals", "double");
  const types = await duckdbRows(
    `SELECT column_type FROM (DESCRIBE FROM ${literal(second)}) WHERE column_name = 'price'`,
  );
  expect(types).toEqual([["DOUBLE"]]);
  const csv = (await exported("fills", "-f", "csv", "-o", "-", "--decimals", "double")).stdout;
  expect(csv).toContain(",1.5,");
  const arrow = join(folder, "doubles.arrow");
  await exported("fills", "-f", "arrow", "-o", arrow, "--decimals", "double");
  const prices = tableFromIPC(await readFile(arrow)).getChild("price")!;
  expect([...prices].slice(0, 5)).toContain(null);
  expect([...prices]).toContain(1.5);
});

test("many rows go in batches, in order", async () => {
  const rows = 150_000;
  const many = await buildArchive([
    { instanceId: "a", runId: "1", tables: { fills: { state: "COMPLETE", rows } } },
    { instanceId: "a", runId: "2", tables: { fills: { state: "COMPLETE", rows: 3 } } },
  ]);
  try {
    const out = join(folder, "many.arrow");
    await runInside(["export", "fills", "--archive", many.dir, "-f", "arrow", "-o", out]);
    const table = tableFromIPC(await readFile(out));
    expect(table.batches.length).toBeGreaterThan(2);
    const seqs = table.getChild("seq")!.toArray() as BigUint64Array;
    const expected = BigUint64Array.from({ length: rows + 3 }, (_, i) => BigInt(i < rows ? i : i - rows));
    expect(
      Buffer.compare(
        Buffer.from(seqs.buffer, seqs.byteOffset, seqs.byteLength),
        Buffer.from(expected.buffer),
      ),
    ).toBe(0);
    const { stdout } = await runInside(["export", "fills", "--archive", many.dir, "-f", "ndjson", "-o", "-"]);
    const lines = stdout.trimEnd().split("\n");
    expect(lines.map((line) => BigInt(JSON.parse(line).seq)).every((seq, i) => seq === expected[i])).toBe(
      true,
    );
  } finally {
    await many.dispose();
  }
});

/** The canonical lines of an Arrow table, made from its typed arrays without DuckDB. */
function arrowLines(table: Table, bytes: Uint8Array): string[] {
  const arrow = tableFromIPC(bytes);
  const columns = table.columns.map((column) => [column, arrow.getChild(column.name)!] as const);
  expect(arrow.schema.names).toEqual(table.columns.map(({ name }) => name));
  return Array.from({ length: arrow.numRows }, (_, i) => {
    const row: Row = {};
    for (const [{ name, kind }, vector] of columns) {
      if (kind === "exact") row[name] = decimalText(vector, i);
      else if (kind === "timestamp") row[name] = nanoseconds(vector, i);
      else row[name] = vector.get(i);
    }
    return canonicalLine(table, row);
  });
}

function nanoseconds(vector: Vector, i: number): bigint {
  expect(String(vector.type)).toBe("Timestamp<NANOSECOND>");
  return (vector.toArray() as BigInt64Array)[i]!;
}

function decimalText(vector: Vector, i: number): string {
  if (!vector.isValid(i)) return "";
  const { scale } = vector.type as Decimal;
  const words = vector.get(i) as Uint32Array;
  const unscaled = BigInt.asIntN(
    128,
    words.reduceRight((sum, word) => (sum << 32n) | BigInt(word), 0n),
  );
  const digits = String(unscaled < 0n ? -unscaled : unscaled).padStart(scale + 1, "0");
  const text = `${digits.slice(0, -scale)}.${digits.slice(-scale)}`.replace(/\.?0+$/, "");
  return unscaled < 0n ? `-${text}` : text;
}
