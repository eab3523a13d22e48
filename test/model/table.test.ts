import { readFileSync } from "node:fs";
import { ScalarType } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { PreviewRowSchema } from "../../src/gen/example/history/v1/history_service_pb.ts";
import { file_example_history_v1_rows } from "../../src/gen/example/history/v1/rows_pb.ts";
import { filterNames, isTableName, tableNamed, tableNames, tables } from "../../src/model/profile/table.ts";
import { rowMessage } from "../../src/row/wire/row-message.ts";
import { inProject } from "../fixtures/command/project.ts";

const proto = readFileSync(inProject("proto/example/history/v1/rows.proto"), "utf8");

/** The table × filter matrix in the comment of rows.proto: for each table the filters marked yes. */
function matrix(): Record<string, string[]> {
  const lines = proto.split("\n").map((line) => line.replace(/^\/\/\s*/, "").split(/\s+/));
  const head = lines.findIndex((words) => words[0] === "table" && words[1] === "resource_key");
  const [, ...filters] = lines[head]!;
  const end = lines.findIndex((words, index) => index > head && words[0] === "package");
  return Object.fromEntries(
    lines.slice(head + 1, end).map(([table, ...answers]) => {
      expect(answers).toHaveLength(filters.length);
      expect(answers.filter((answer) => answer !== "yes" && answer !== "no")).toEqual([]);
      return [table, filters.filter((_, index) => answers[index] === "yes")];
    }),
  );
}

/** The comment above each field of a message in rows.proto, as one line. */
function comments(message: string): Map<string, string> {
  const body = new RegExp(`^message ${message} \\{\\n(.*?)^\\}`, "ms").exec(proto)?.[1] ?? "";
  const found = new Map<string, string>();
  for (const [, comment = "", name = ""] of body.matchAll(/((?: +\/\/.*\n)+) +\w+ (\w+) = \d+;/g)) {
    found.set(name, comment.replaceAll(/\s*\/\/\s*/g, " ").trim());
  }
  return found;
}

test("the matrix in rows.proto names every table, in order, with the filters of the model", () => {
  const fromProto = matrix();
  expect(Object.keys(fromProto)).toEqual(tableNames);
  expect(fromProto).toEqual(Object.fromEntries(tables.map(({ name, filters }) => [name, [...filters]])));
});

test("every message of rows.proto is the row of exactly one table", () => {
  const messages = file_example_history_v1_rows.messages.map(({ typeName }) => typeName);
  expect(tables.map((table) => rowMessage(table).typeName).sort()).toEqual(messages.sort());
});

test("PreviewTable can carry a row of every table", () => {
  const carried = PreviewRowSchema.fields.map((field) => field.message?.typeName);
  expect(carried).toEqual(tables.map((table) => rowMessage(table).typeName));
});

test("REST paths are below /history and differ", () => {
  expect(new Set(tables.map(({ path }) => path)).size).toBe(tables.length);
  for (const { path } of tables) expect(path).toMatch(/^\/history\/[a-z/-]+$/);
});

test("a name that is no table is refused with the tables that there are", () => {
  for (const name of ["", "Fills", "fill", "toString", "__proto__"]) {
    expect(isTableName(name)).toBe(false);
    expect(() => tableNamed(name)).toThrow(
      expect.objectContaining({ code: "table_unknown", hint: expect.stringContaining("order_book") }),
    );
  }
  expect(tableNames.map((name) => tableNamed(name).name)).toEqual(tableNames);
});

describe.each(tables.map((table) => [table.name, table] as const))("%s", (_, table) => {
  const kinds = new Map(table.columns.map(({ name, kind }) => [name, kind]));

  test("has the common fields first, in order and with their types", () => {
    expect(table.columns.slice(0, 10).map(({ name, kind }) => `${name} ${kind}`)).toEqual([
      "run_id string",
      "instance_id string",
      "seq uint64",
      "ts_event timestamp",
      "ts_init timestamp",
      "resource_key string",
      "account string",
      "portfolio string",
      "venue string",
      "symbol string",
    ]);
    expect(rowMessage(table).fields.map(({ number }) => number)).toEqual(
      table.columns.map((_, index) => index + 1),
    );
  });

  test("is flat: scalars without presence, nothing repeated, nothing nested", () => {
    expect(rowMessage(table).oneofs).toEqual([]);
    expect(rowMessage(table).fields.filter((field) => field.fieldKind !== "scalar")).toEqual([]);
    expect(rowMessage(table).fields.filter((field) => field.proto.proto3Optional)).toEqual([]);
  });

  test("has the columns exact and in nanoseconds that the comments of rows.proto say are", () => {
    const said = comments(rowMessage(table).name);
    expect([...said.keys()]).toEqual(table.columns.map(({ name }) => name));
    for (const [name, comment] of said) {
      expect([name, kinds.get(name) === "exact"]).toEqual([name, / Exact\./.test(` ${comment}`)]);
      expect([name, kinds.get(name) === "timestamp"]).toEqual([name, comment.includes("UNIX nanoseconds.")]);
    }
  });

  test("has exact and free-text columns as strings on the wire, and its key and filters among its columns", () => {
    const text = rowMessage(table).fields.filter(
      (field) => field.fieldKind === "scalar" && field.scalar === ScalarType.STRING,
    );
    const needText = table.columns.filter(({ kind, freeText }) => kind === "exact" || freeText);
    expect(text.map(({ name }) => name)).toEqual(expect.arrayContaining(needText.map(({ name }) => name)));
    expect(table.key.filter((name) => !kinds.has(name))).toEqual([]);
    expect(table.filters.filter((name) => kinds.get(name) !== "string")).toEqual([]);
    expect(table.filters).toEqual(filterNames.filter((name) => table.filters.includes(name)));
  });
});
