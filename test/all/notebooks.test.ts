import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { tableNamed } from "../../src/model/profile/table.ts";
import {
  buildExtremeArchive,
  extremeRow,
  linkTables,
  oddRuns,
  rowsPerRun,
} from "../fixtures/archive/extreme-archive.ts";
import type { buildArchive } from "../fixtures/archive/query-archive.ts";
import { builtMain, inProject as fromRoot } from "../fixtures/command/project.ts";
import { requires } from "../fixtures/command/requirement.ts";

const text = readFileSync(fromRoot("docs/notebooks.md"), "utf8");

/** The document's code blocks of a language, each with what stands behind the language and a name for its test. */
function blocks(language: string): { kind: string; code: string; name: string }[] {
  return [...text.matchAll(/^```(\w+) ?([\w-]*)\n(.*?)^```$/gms)]
    .map(([, found, kind, code], index) => ({
      found,
      kind: kind!,
      code: code!,
      name: `${kind} (block ${index + 1})`,
    }))
    .filter(({ found }) => found === language);
}

/** Those of a language that are about rows; notebooks-executed.test.ts has the ones about figures. */
const rowBlocks = (language: string) =>
  blocks(language).filter(({ kind }) => !["analytics", "performance", "attach", "quantstats"].includes(kind));

/** A row as every reader must see it: ids, seq, both times in nanoseconds, decimals with their digits, a text. */
type SeenRow = [string, string, string, string, string, string, string, string | null, string];

let built: Awaited<ReturnType<typeof buildArchive>>;
let folder: string;
let expected: SeenRow[];

const places = (code: string) =>
  code
    .replaceAll("/data/archive", built.dir)
    .replace(/(?<=["'])lake(?=\/)/g, join(folder, "lake"))
    .replace(/(?<=["' ])(fills|archive)(?=\.(?:parquet|arrows?|csv|duckdb)\b)/g, join(folder, "$1"));

beforeAll(async () => {
  built = await buildExtremeArchive();
  await linkTables(await openArchive(built.dir));
  folder = await mkdtemp(join(tmpdir(), "runvault-notebooks-"));
  const program = join(folder, "runvault");
  await writeFile(program, `#!/bin/sh\nexec '${process.execPath}' '${builtMain}' "$@"\n`);
  await chmod(program, 0o755);
  const fills = tableNamed("fills");
  expected = oddRuns
    .flatMap((run) =>
      Array.from({ length: rowsPerRun }, (_, i): SeenRow => {
        const row = extremeRow(built.archive, fills, run, i);
        const exact = (name: string) =>
          row[name] === "" ? null : Number(row[name]) === 1.5 ? "1.500000000" : String(row[name]);
        return [
          run.instanceId,
          run.runId,
          String(row.seq),
          String(row.ts_event),
          String(row.ts_init),
          exact("price") ?? "NULL",
          exact("quantity") ?? "NULL",
          exact("fee"),
          String(row.trade_id),
        ];
      }),
    )
    .sort();
  for (const { code } of rowBlocks("sh")) {
    const script = `set -eu\ncd '${folder}'\n${code}`;
    const { status, stderr } = spawnSync("sh", ["-c", script], { env: environment(), encoding: "utf8" });
    expect({ status, stderr }).toMatchObject({ status: 0 });
  }
});
afterAll(async () => {
  await built.dispose();
  await rm(folder, { recursive: true, force: true });
});

function environment(): Record<string, string> {
  const { NODE_COMPILE_CACHE = "" } = process.env;
  return {
    PATH: `${folder}:${process.env.PATH}`,
    HOME: folder,
    RUNVAULT_ARCHIVE: built.dir,
    NODE_COMPILE_CACHE,
  };
}

/** How the rows come out of each kind of reader, with the types that the document promises. */
const python = `
import json, sys, decimal
names = ["instance_id", "run_id", "seq", "ts_event", "ts_init", "price", "quantity", "fee", "trade_id"]
def of_duckdb(fills):
    types = dict(zip(fills.columns, map(str, fills.types)))
    assert types["ts_event"] == "TIMESTAMP_NS" and types["price"] == "DECIMAL(18,9)" and types["seq"] == "UBIGINT", types
    return fills.select("instance_id, run_id, seq, epoch_ns(ts_event), epoch_ns(ts_init), price, quantity, fee, trade_id").fetchall()
def of_polars(fills):
    import polars as pl
    assert fills.schema["ts_event"] == pl.Datetime("ns") and fills.schema["price"] == pl.Decimal(18, 9) and fills.schema["seq"] == pl.UInt64, fills.schema
    assert fills["run_id"].dtype == pl.String
    return fills.with_columns(pl.col("ts_event", "ts_init").to_physical()).select(names).rows()
def of_pyarrow(fills):
    import pyarrow as pa
    types = {field.name: str(field.type) for field in fills.schema}
    assert types["ts_event"] == "timestamp[ns]" and types["price"] == "decimal128(18, 9)" and types["seq"] == "uint64", types
    columns = [fills[name].cast(pa.int64()) if name.startswith("ts_") else fills[name] for name in names]
    return zip(*(column.to_pylist() for column in columns))
def of_pandas(fills):
    assert str(fills["ts_event"].dtype) == "datetime64[ns]" and fills["seq"].dtype == "uint64", fills.dtypes
    assert isinstance(fills["quantity"].dropna().iloc[0], decimal.Decimal)
    columns = [fills[name].astype("int64") if name.startswith("ts_") else fills[name] for name in names]
    return zip(*(column.tolist() for column in columns))
def of_pandas_arrow(fills):
    assert str(fills["ts_event"].dtype) == "timestamp[ns][pyarrow]" and str(fills["price"].dtype) == "decimal128(18, 9)[pyarrow]", fills.dtypes
    columns = [fills[name].astype("int64[pyarrow]") if name.startswith("ts_") else fills[name] for name in names]
    return zip(*(column.tolist() for column in columns))
readers = {"duckdb": of_duckdb, "polars": of_polars, "polars-lazy": of_polars, "pyarrow": of_pyarrow, "pandas": of_pandas, "pandas-arrow": of_pandas_arrow}
def missing(value):
    return value is None or str(value) in ("<NA>", "nan", "NaN")
def seen(row):
    return [*row[:2], *(str(int(value)) for value in row[2:5]), *("NULL" if missing(value) else format(value, "f") for value in row[5:7]), None if missing(row[7]) else format(row[7], "f"), row[8]]
for block in json.load(sys.stdin):
    try:
        space = {}
        exec(block["code"], space)
        print(json.dumps({"rows": [seen(row) for row in readers[block["kind"]](space["fills"])]}))
    except BaseException as error:
        print(json.dumps({"error": repr(error)}))
`;

const pythonBlocks = rowBlocks("python");

describe.skipIf(!requires("notebook"))("every row, value and type comes into Python by", () => {
  let answers: { rows?: SeenRow[]; error?: string }[];
  beforeAll(() => {
    const { status, stdout, stderr } = spawnSync("python3", ["-c", python], {
      input: JSON.stringify(pythonBlocks.map(({ kind, code }) => ({ kind, code: places(code) }))),
      env: environment(),
      encoding: "utf8",
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    answers = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
  });

  test.each(pythonBlocks.map(({ name }, index) => [name, index] as const))("%s", (_, index) => {
    expect(answers[index]!.error).toBeUndefined();
    expect(answers[index]!.rows!.sort()).toEqual(expected);
  });
});

/** What is appended to the blocks for Node: the rows as JSON. */
const node: Record<string, string> = {
  duckdb: `const price = (value) => value === null ? null : String(value);
    const rows = fills.getRowObjects().map((row) => [row.instance_id, row.run_id, String(row.seq), String(row.ts_event.nanos), String(row.ts_init.nanos), price(row.price) ?? "NULL", price(row.quantity) ?? "NULL", price(row.fee), row.trade_id]);`,
  hyparquet: `const price = (value) => value === null || value === undefined ? null : value.toPrecision(15);
    const rows = fills.map((row) => [row.instance_id, row.run_id, String(row.seq), String(row.ts_event), String(row.ts_init), price(row.price) ?? "NULL", price(row.quantity) ?? "NULL", price(row.fee), row.trade_id]);`,
  arrow: `const price = (vector, i) => {
      if (!vector.isValid(i)) return null;
      const unscaled = BigInt.asIntN(128, vector.get(i).reduceRight((sum, word) => (sum << 32n) | BigInt(word), 0n));
      const digits = String(unscaled < 0n ? -unscaled : unscaled).padStart(10, "0");
      return (unscaled < 0n ? "-" : "") + digits.slice(0, -9) + "." + digits.slice(-9);
    };
    const column = (name) => fills.getChild(name);
    const ns = (name) => column(name).toArray();
    const rows = Array.from({ length: fills.numRows }, (_, i) => [column("instance_id").get(i), column("run_id").get(i), String(column("seq").get(i)), String(ns("ts_event")[i]), String(ns("ts_init")[i]), price(column("price"), i) ?? "NULL", price(column("quantity"), i) ?? "NULL", price(column("fee"), i), column("trade_id").get(i)]);`,
};

describe("every row and value comes into Node by", () => {
  test.each(blocks("js").map(({ name, kind, code }) => [name, kind, code] as const))(
    "%s",
    (_, kind, code) => {
      const script = `${places(code)}\n${node[kind]}\nprocess.stdout.write(JSON.stringify(rows));`;
      const { status, stdout, stderr } = spawnSync(
        process.execPath,
        ["--input-type=module", "--eval", script],
        {
          cwd: fromRoot("."),
          encoding: "utf8",
        },
      );
      expect({ status, stderr: stderr.replace(/.*ExperimentalWarning.*\n.*\n/, "") }).toEqual({
        status: 0,
        stderr: "",
      });
      const rows = (JSON.parse(stdout) as SeenRow[]).sort();
      // hyparquet's decimals are doubles with fifteen good digits, as the document says
      const double = (value: string | null) =>
        value === null || value === "NULL" ? value : Number(value).toPrecision(15);
      const doubled = expected.map((row) => [...row.slice(0, 5), ...row.slice(5, 8).map(double), row[8]]);
      expect(rows).toEqual(kind === "hyparquet" ? doubled : expected);
    },
  );
});

test("the statement for DuckDB's command line gives every row", async () => {
  const connection = await (await DuckDBInstance.create(":memory:")).connect();
  const rows = (await connection.runAndReadAll(places(blocks("sql")[0]!.code))).getRows();
  expect(rows).toHaveLength(expected.length);
  connection.closeSync();
});
