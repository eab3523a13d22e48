// @module-tag slow
import { expect, it } from "vitest";
import { driftOf, driftText } from "../../src/archive/convert/drift.ts";
import { convertLineByLine } from "../../src/archive/convert/line-by-line-conversion.ts";
import { defaultExactTypes } from "../../src/model/profile/exact-types.ts";
import { tableNamed } from "../../src/model/profile/table.ts";
import { checkLine } from "../../src/row/strict-line.ts";
import { hours, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { type ArrayRow, ArraySource } from "../fixtures/source/array-source.ts";
import { longestTurnMs } from "../fixtures/source/longest-turn.ts";

const MiB = 1 << 20;
const fills = tableNamed("fills");
const rules = { table: fills, ...run, exactTypes: defaultExactTypes(fills) };
const rows = world({ fills: hours(12) }).get("fills")!;

/** The same row with fields behind its own that the contract does not know. */
function grown(row: ArrayRow, fields: string): ArrayRow {
  return { ...row, line: row.line.replace(/\}$/, `,${fields}}`) };
}
const fields = (count: number, name = "k") =>
  Array.from({ length: count }, (_, i) => `"${name}${String(i).padStart(6, "0")}":1`).join(",");

it("a row of two hundred thousand unknown fields is archived whole, and the drift told names a hundred", async () => {
  await using tables = await TableWorld.create();
  const odd = rows.with(5, grown(rows[5]!, fields(200_000)));
  const { manifest } = await tables.archiveRun(new ArraySource(run, new Map([["fills", odd]])));
  const { state, proven } = manifest.tables.fills!;
  expect([state, proven!.certificate!.rows]).toEqual(["COMPLETE", 12]);
  expect(proven!.drift).toHaveLength(101);
  expect(proven!.drift.slice(-2)).toEqual(["k000099", "and 199900 more"]);
});

it("rows that each have other unknown fields are archived, and what is told of them stays short", async () => {
  await using tables = await TableWorld.create();
  const odd = rows.map((row, i) => grown(row, fields(2000, `row${i}x`)));
  const { manifest } = await tables.archiveRun(new ArraySource(run, new Map([["fills", odd]])));
  const { state, proven } = manifest.tables.fills!;
  expect([state, proven!.certificate!.rows]).toEqual(["COMPLETE", 12]);
  expect(proven!.drift).toHaveLength(101);
});

it("drift of several files is told as that of all", () => {
  expect(driftOf([["b", "a"], ["c"], ["a"]])).toEqual(["a", "b", "c"]);
  const many = driftOf([Array.from({ length: 150 }, (_, i) => `f${1000 + i}`)]);
  expect(many).toHaveLength(101);
  expect(many.at(-1)).toBe("and 50 more");
  expect(driftOf([many, many, ["z"]]).at(-1)).toBe("and 51 more");
  expect(driftText(many)).toBe(
    `${Array.from({ length: 10 }, (_, i) => `f${1000 + i}`).join(", ")}, and 140 more`,
  );
  expect(driftOf([["x".repeat(MiB)]])[0]).toHaveLength(101);
});

it.each([
  ["text", (text: string) => `"note":"${text}"`, "a".repeat(15 * MiB)],
  ["text of escapes", (text: string) => `"note":"${text}"`, "\\n".repeat(7 * MiB)],
  ["key", (text: string) => `"${text}":1`, "a".repeat(15 * MiB)],
])("a row with a very long %s is read as any other", (_, field, long) => {
  expect(checkLine(grown(rows[0]!, field(long)).line, rules).kind).toBe("row");
});

it.each(['"a', '"a\\', '"a\\x"', '"\\u12"', '"a\nb"', '"\\ud83d"'])(
  "a string that is none, %j, is none however it is read",
  (token) => {
    const long = token.replace("a", "a".repeat(3000));
    for (const text of [token, long]) {
      expect(checkLine(grown(rows[0]!, `"note":${text}`).line, rules).kind).toBe("bad");
    }
  },
);

it("the event loop goes on while a segment is read line by line", async () => {
  const text = Buffer.from(`${rows.map(({ line }) => line).join("\n")}\n`.repeat(1500));
  async function* chunks() {
    yield text;
  }
  let good = 0;
  const read = () =>
    convertLineByLine({ ...rules, text: chunks() }, { good: () => void good++, bad: () => undefined });
  expect(await longestTurnMs(read)).toBeLessThan(250);
  expect(good).toBe(18_000);
});
