import { copyFile, readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { committedParquet } from "../../src/analytics/files/committed-parquet.ts";
import { openQuery, type Query } from "../../src/analytics/query/query.ts";
import { render } from "../../src/analytics/render/render.ts";
import { buildArchive } from "../fixtures/archive/query-archive.ts";

let built: Awaited<ReturnType<typeof buildArchive>>;
let query: Query;
let committed: string;
let stray: string;

beforeAll(async () => {
  built = await buildArchive([
    { instanceId: "a", runId: "1", tables: { fills: { state: "COMPLETE", rows: 1000 } } },
  ]);
  committed = committedParquet(built.archive, await built.archive.manifests(), "fills", false)[0]!.file;
  stray = join(dirname(committed), "stray.parquet");
  await copyFile(committed, stray);
  query = await openQuery(built.archive);
});

afterAll(async () => {
  await query[Symbol.asyncDispose]();
  await built.dispose();
});

async function answer(sql: string): Promise<string> {
  let text = "";
  for await (const part of render(await query.run(sql), "ndjson")) text += part;
  return text;
}

describe("SQL from users can only read the archive's tables", () => {
  const hostile: Record<string, () => string> = {
    "COPY onto a committed file": () => `COPY (SELECT 1) TO '${committed}'`,
    "COPY to a new file": () => `COPY fills TO '${join(built.dir, "x.csv")}'`,
    "EXPLAIN ANALYZE COPY": () => `EXPLAIN ANALYZE COPY (SELECT 1) TO '${committed}'`,
    "EXPLAIN with options of a COPY": () => `EXPLAIN (FORMAT json) COPY (SELECT 1) TO '${committed}'`,
    "a comment before EXPLAIN": () => `/* x */ EXPLAIN ANALYZE COPY (SELECT 1) TO '${committed}'`,
    ATTACH: () => `ATTACH '${join(built.dir, "x.duckdb")}'`,
    "ATTACH of a committed file": () => `ATTACH '${committed}' AS x`,
    INSTALL: () => "INSTALL httpfs",
    LOAD: () => "LOAD httpfs",
    SET: () => "SET threads = 1",
    RESET: () => "RESET lock_configuration",
    PRAGMA: () => "PRAGMA threads = 1",
    "PRAGMA that is a SELECT inside": () => "PRAGMA version",
    "two statements": () => "SELECT 1; SELECT 2",
    "a statement after a semicolon": () => `SELECT 1; COPY (SELECT 1) TO '${committed}'`,
    "a parenthesis that closes the wrapping": () => "SELECT 1) UNION ALL (SELECT 2",
    read_csv: () => "SELECT * FROM read_csv('/etc/passwd')",
    read_text: () => "SELECT * FROM read_text('/etc/passwd')",
    "read_blob in a subquery": () => "SELECT (SELECT content FROM read_blob('/etc/passwd'))",
    "read_parquet in a CTE": () => `WITH x AS (SELECT * FROM read_parquet('${stray}')) SELECT * FROM x`,
    sniff_csv: () => "SELECT * FROM sniff_csv('/etc/passwd')",
    glob: () => "SELECT * FROM glob('/etc/*')",
    "a file as a table": () => "SELECT * FROM '/etc/passwd'",
    "a file that no manifest names": () => `SELECT * FROM '${stray}'`,
    getenv: () => "SELECT getenv('HOME')",
    "enable_logging, which opens files": () =>
      `SELECT * FROM enable_logging(storage = 'file', storage_path = '${join(built.dir, "log")}')`,
    "enable_logging by its schema": () =>
      `SELECT * FROM main."ENABLE_LOGGING"(storage_path = '${built.dir}')`,
    "enable_logging in DESCRIBE": () =>
      `DESCRIBE SELECT * FROM enable_logging(storage_path = '${built.dir}')`,
    "enable_logging in EXPLAIN ANALYZE": () =>
      `EXPLAIN ANALYZE SELECT * FROM enable_logging(storage_path = '${built.dir}')`,
    "enable_logging in a PIVOT": () =>
      `FROM (PIVOT (FROM enable_logging(storage_path = '${built.dir}')) ON Success IN (true) USING count(*))`,
    checkpoint: () => "SELECT * FROM checkpoint()",
    write_log: () => "SELECT write_log('x')",
    "write_log in capitals": () => `SELECT max("WRITE_LOG"(symbol)) FROM fills`,
    "SQL in a string, by query": () => "SELECT * FROM query('SELECT * FROM enable_logging()')",
    "SQL in a string, serialized": () =>
      "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT * FROM enable_logging()'))",
    "a CTE that deletes": () => "WITH x AS (DELETE FROM runs RETURNING *) SELECT * FROM x",
    DELETE: () => "DELETE FROM runs",
    "CREATE TABLE": () => "CREATE TABLE x AS SELECT 1",
    "SELECT INTO": () => "SELECT 1 INTO x",
    CALL: () => "CALL enable_logging()",
    EXPORT: () => `EXPORT DATABASE '${join(built.dir, "export")}'`,
    "a parameter": () => "SELECT ?",
    "an empty text": () => "  ",
    "a comment only": () => "-- nothing",
  };

  for (const [name, sql] of Object.entries(hostile)) {
    it(`refuses ${name}`, async () => {
      await expect(answer(sql())).rejects.toMatchObject({ code: "query_invalid" });
    });
  }

  it("leaves every file as it was", async () => {
    const before = await readFile(committed);
    const names = await readdir(built.dir, { recursive: true });
    for (const sql of Object.values(hostile)) await expect(answer(sql())).rejects.toThrow();
    expect((await readFile(committed)).equals(before)).toBe(true);
    expect(await readdir(built.dir, { recursive: true })).toEqual(names);
    expect(await answer("SELECT count(*) AS n FROM fills")).toBe('{"n":1000}\n');
  });
});

describe("SQL that only reads is run", () => {
  const fine: Record<string, [string, string]> = {
    "a SELECT with a semicolon and a comment after it": ["SELECT 1 AS a; -- ; done", '{"a":1}\n'],
    "a semicolon inside a string": ["SELECT ';' AS a", '{"a":";"}\n'],
    "a comment at the end": ["SELECT 1 AS a -- ) nothing", '{"a":1}\n'],
    VALUES: ["VALUES (1)", '{"col0":1}\n'],
    "FROM first": ["FROM fills SELECT max(seq) AS a", '{"a":999}\n'],
    "a recursive CTE": [
      "WITH RECURSIVE x(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM x WHERE a < 3) SELECT sum(a)::INT AS a FROM x",
      '{"a":6}\n',
    ],
    unnest: ["SELECT unnest([1, 2]) AS a", '{"a":1}\n{"a":2}\n'],
    "a PIVOT that lists its values": [
      "PIVOT fills ON symbol IN ('BTC') USING count(*) GROUP BY side",
      '{"side":"","BTC":1000}\n',
    ],
    DESCRIBE: [
      "SELECT column_type AS a FROM (DESCRIBE fills) WHERE column_name = 'ts_event'",
      '{"a":"TIMESTAMP_NS"}\n',
    ],
    "columns of the same name": ["SELECT 1 AS a, 2 AS a", '{"a":1,"a_2":2}\n'],
  };
  for (const [name, [sql, expected]] of Object.entries(fine)) {
    it(`runs ${name}`, async () => {
      expect(await answer(sql)).toBe(expected);
    });
  }

  it("runs DESCRIBE, SHOW TABLES, SUMMARIZE and EXPLAIN", async () => {
    expect(await answer("DESCRIBE fills")).toContain("DECIMAL(18,9)");
    expect(await answer("SHOW TABLES")).toContain("order_book_f");
    expect(await answer("SUMMARIZE fills")).toContain("ts_event");
    expect(await answer("EXPLAIN SELECT * FROM fills")).toContain("physical_plan");
    expect(await answer("explain analyze SELECT count(*) FROM fills;")).toContain("Total Time");
  });
});
