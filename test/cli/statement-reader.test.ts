import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { StatementReader } from "../../src/cli/shell/statement-reader.ts";

/** What a text of several lines has, each with its line; what nothing ended is the last. */
function statements(text: string): [number, string][] {
  const reader = new StatementReader("x.sql");
  const found = text.split("\n").flatMap((line) => reader.add(line));
  return [...found, ...reader.end()].map((sql) => [sql.line, sql.text.trimEnd()]);
}

describe("statements end with a semicolon", () => {
  test.each<[string, string, [number, string][]]>([
    [
      "one a line",
      "SELECT 1;\nSELECT 2;",
      [
        [1, "SELECT 1"],
        [2, "SELECT 2"],
      ],
    ],
    [
      "two on a line",
      "SELECT 1; SELECT 2;",
      [
        [1, "SELECT 1"],
        [1, " SELECT 2"],
      ],
    ],
    [
      "over lines, behind blank ones",
      "\n\nSELECT\n1;\n\nSELECT 2",
      [
        [3, "SELECT\n1"],
        [6, "SELECT 2"],
      ],
    ],
    [
      "none in a text",
      "SELECT ';''; ' || E'\\';' ;SELECT 2",
      [
        [1, "SELECT ';''; ' || E'\\';'"],
        [1, "SELECT 2"],
      ],
    ],
    ["none in a text of lines", "SELECT 'a;\nb;';", [[1, "SELECT 'a;\nb;'"]]],
    ["none in a name", 'SELECT 1 AS "a;""b";', [[1, 'SELECT 1 AS "a;""b"']]],
    ["none in comments", "-- a; 'b\n/* c;\n' */ SELECT 1;", [[1, "-- a; 'b\n/* c;\n' */ SELECT 1"]]],
    ["none between dollars", "SELECT $$a;$$, $x$;$$;$x$;", [[1, "SELECT $$a;$$, $x$;$$;$x$"]]],
    [
      "a name that ends with e is no prefix of a text",
      "SELECT date'\\'; SELECT 2;",
      [
        [1, "SELECT date'\\'"],
        [1, " SELECT 2"],
      ],
    ],
    ["nothing but blanks and comments is none", ";;\n-- the end\n;/* x */\n", []],
    ["what is not closed goes to the end", "SELECT 'a;\nSELECT 2;", [[1, "SELECT 'a;\nSELECT 2;"]]],
  ])("%s", (_, text, found) => {
    expect(statements(text)).toEqual(found);
  });

  test("what was begun is dropped on request, and lines go on counting", () => {
    const reader = new StatementReader(null);
    reader.add("SELECT 'half;");
    expect(reader.isWithin).toBe(true);
    reader.clear();
    expect(reader.isWithin).toBe(false);
    reader.skip();
    expect(reader.add("SELECT 1;")).toEqual([{ text: "SELECT 1", file: null, line: 3 }]);
  });

  test("lines bring the same statements as the whole text at once", () => {
    const piece = fc.constantFrom(..."' \" ; -- /* */ $$ $x$ e' \\ a".split(" "), " ", "\n", ";\n");
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const text = pieces.join("");
        const reader = new StatementReader("x.sql");
        const atOnce = [...reader.add(text), ...reader.end()];
        // blanks ahead of the last may be told as part of it, or not
        expect(statements(text).map(([, sql]) => sql.trim())).toEqual(atOnce.map((sql) => sql.text.trim()));
      }),
      { numRuns: 2_000 },
    );
  });

  test.each([
    ["a text", "'", "; of a text that nothing closes, or not before its end"],
    ["many texts", "SELECT", "  'one; text', '', of many, each of which has a semicolon"],
    ["no semicolon", "SELECT", "  a AS column_of_many, and another one of them, named so"],
  ])("a statement of 15,000 lines, %s, is not looked at anew with each of them", (_, first, line) => {
    const reader = new StatementReader("x.sql");
    reader.add(first);
    const startedMs = performance.now();
    for (let count = 0; count < 15_000; count++) if (reader.isWithin) reader.add(line);
    expect(performance.now() - startedMs).toBeLessThan(1_000);
    expect(reader.end()).toHaveLength(1);
  });

  test("one that is longer than any that people write is refused, and dropped", () => {
    const reader = new StatementReader("x.sql");
    reader.add("SELECT");
    expect(() => reader.add("1".repeat(1024 * 1024))).toThrow("longer than 1 MiB");
    expect(reader.isWithin).toBe(false);
    expect(reader.add("SELECT 1;")).toEqual([{ text: "SELECT 1", file: "x.sql", line: 3 }]);
  });
});

test("each line is looked at once, however much is open", () => {
  const reader = new StatementReader(null);
  const beganMs = performance.now();
  reader.add("/*");
  for (let n = 0; n < 11_000; n++) {
    expect(reader.isWithin).toBe(true);
    expect(reader.add(`${";".repeat(60)} a line of a comment`)).toEqual([]);
  }
  expect(reader.add("*/ SELECT 1;")).toHaveLength(1);
  // it takes milliseconds; looking at all of them each time takes a minute
  expect(performance.now() - beganMs).toBeLessThan(5_000);
});
