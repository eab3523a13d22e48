import { DuckDBInstance } from "@duckdb/node-api";
import { expect, test } from "vitest";
import { readStatement } from "../../src/analytics/query/statement.ts";
import { processorMs } from "../fixtures/source/longest-turn.ts";

async function read(sql: string) {
  const connection = await (await DuckDBInstance.create(":memory:")).connect();
  try {
    return await readStatement(connection, sql);
  } finally {
    connection.closeSync();
  }
}

test.each([
  ["SELECT 1;", "SELECT 1"],
  ["SELECT ';' AS a; -- done; really", "SELECT ';' AS a"],
  [";;SELECT 1;;", "  SELECT 1"],
  ["-- first;\nSELECT $a$;$a$;", "-- first;\nSELECT $a$;$a$"],
  ["SELECT E'\\';' /* ; */;\n", "SELECT E'\\';' /* ; */"],
  ['SELECT 1 AS "a;b"', 'SELECT 1 AS "a;b"'],
  ["explain SELECT 1;", "explain SELECT 1"],
])("the one statement in %j is %j", async (sql, text) => {
  expect((await read(sql)).text).toBe(text);
});

test.each([
  ["semicolons behind it", `SELECT 1${";".repeat(100_000)}`],
  ["semicolons ahead of it", `${";".repeat(100_000)}SELECT 1`],
  ["semicolons in a text", `SELECT '${";".repeat(100_000)}'`],
  ["comments with semicolons", `SELECT 1 ${"/*;*/".repeat(20_000)};`],
])("the end of a statement is found at once: %s", async (_what, sql) => {
  expect(await processorMs(() => read(sql))).toBeLessThan(3000);
});
