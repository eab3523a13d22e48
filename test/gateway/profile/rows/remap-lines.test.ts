import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { remapLines } from "../../../../src/gateway/profile/rows/remap-lines.ts";
import { RowNormaliser } from "../../../../src/gateway/profile/rows/row-normaliser.ts";
import type { ColumnSource, RowMap } from "../../../../src/model/profile/row-map.ts";
import { type ForeignTable, foreignTables, run, table } from "./foreign-rows.ts";

async function* cutText(text: string): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.byteLength; at += 100) yield bytes.subarray(at, at + 100);
}

async function textOf(pieces: AsyncIterable<Uint8Array>): Promise<string> {
  const all: Uint8Array[] = [];
  for await (const piece of pieces) all.push(piece);
  return Buffer.concat(all).toString();
}

const fetched = (map: RowMap, rows: string) => textOf(new RowNormaliser(table, map, run).over(cutText(rows)));
const remapped = (from: RowMap, to: RowMap, lines: string) =>
  textOf(remapLines(cutText(lines), { table, from, to, run }));

function withColumns(map: RowMap, columns: Readonly<Record<string, ColumnSource>>): RowMap {
  return { ...map, columns: { ...map.columns, ...columns } };
}

describe("rows held, read by another map", () => {
  it("are what a fetch by that map gives, where units, words and places of constants were wrong", async () => {
    const wrong = fc.record({
      eventUnit: fc.constantFrom("ns", "us", "ms", "s"),
      side: fc.boolean(),
      isAbsent: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(foreignTables, wrong, async (held: ForeignTable, { eventUnit, side, isAbsent }) => {
        const { map } = held;
        const changed: Record<string, ColumnSource> = {};
        for (const name of ["ts_event", "ts_init"]) {
          const source = map.columns[name]!;
          if (source.kind === "field" && source.unit !== "rfc3339")
            changed[name] = { ...source, unit: eventUnit };
        }
        const words = map.columns.side!;
        if (side && words.kind === "field") {
          const swapped = words.words!.map(({ wire }, index, all) => ({
            wire,
            column: all[(index + 1) % all.length]!.column,
          }));
          changed.side = { ...words, words: swapped };
        }
        // text goes into extra as it was read, so that nothing of it is lost
        const { maker } = map.columns;
        if (isAbsent && maker?.kind === "field" && !maker.optional) changed.symbol = maker;
        const from = withColumns(map, changed);
        const rows = held.rows.map(({ wire }) => `${wire}\n`).join("");
        const lines = await fetched(from, rows);
        const expected = held.rows.map(({ line }) => `${line}\n`).join("");
        // a wrong unit may leave no time at all: the lines of such bad rows are among them
        const again = await remapped(from, map, lines);
        expect(again.split("\n").map(sortedExtra)).toEqual(expected.split("\n").map(sortedExtra));
      }),
      { numRuns: 150 },
    );
  });

  const field = (path: string, more: Partial<ColumnSource & { kind: "field" }> = {}): ColumnSource => ({
    kind: "field",
    path: path.split("."),
    ...more,
  });
  const base: RowMap = {
    numbers: "exact",
    fields: "keep",
    ties: "bytes",
    dropped: [],
    columns: {
      run_id: { kind: "run" },
      seq: { kind: "derived" },
      ts_event: field("time", { unit: "ms" }),
      ts_init: field("time", { unit: "ms" }),
      symbol: field("symbol"),
      side: field("side", {
        words: [
          { wire: "B", column: "BUY" },
          { wire: "b", column: "BUY" },
          { wire: 2, column: "SELL" },
        ],
        lossy: true,
      }),
      maker: field("maker", { optional: true }),
      price: field("px"),
      quantity: field("qty"),
      net: { kind: "absent" },
      level: { kind: "absent" },
      value: field("value"),
      window: { kind: "constant", text: "w" },
    },
  };
  const row = (fields: Readonly<Record<string, string>> = {}) => {
    const usual = { time: "1.5", symbol: '"s"', side: "2", maker: '"m"', px: "1.50", qty: "2", value: "0.5" };
    return `{${Object.entries({ ...usual, ...fields })
      .map(([name, text]) => `"${name}":${text}`)
      .join(",")}}\n`;
  };

  it.each<[string, Readonly<Record<string, ColumnSource>>, Readonly<Record<string, string>>]>([
    ["a field out of extra", { net: field("lot") }, { lot: "3.0" }],
    ["a field inside of others out of extra", { net: field("more.lot") }, { more: '{"lot":"7","x":1}' }],
    ["a text into extra", { symbol: { kind: "absent" } }, {}],
    ["two columns changed over", { symbol: field("maker"), maker: field("symbol") }, {}],
    ["a time in another unit", { ts_event: field("time", { unit: "s" }) }, {}],
    ["a number as a double", { value: field("px") }, {}],
    ["a seq that was derived", { seq: field("n") }, { n: "5" }],
    ["rows that the new map cannot take", { net: field("lot") }, {}],
  ])("are as fetched: %s", async (_, columns, fields) => {
    // the double goes into extra where another field takes its column, and its spelling there is not known
    const from = "value" in columns ? withColumns(base, { value: { kind: "absent" } }) : base;
    const to = withColumns(from, columns);
    const sent = row({ ...fields, ...(from === base ? {} : { value: '"0.5"' }) }).repeat(2);
    const expected = await fetched(to, sent);
    const lines = await remapped(from, to, await fetched(from, sent));
    expect(lines.replaceAll(/"row":"(?:[^"\\]|\\.)*"/g, "")).toBe(
      expected.replaceAll(/"row":"(?:[^"\\]|\\.)*"/g, ""),
    );
  });

  it.each<[string, RowMap, string]>([
    ['side: "BUY" stands for "B" and for "b"', withColumns(base, {}), row({ side: '"b"' })],
    [
      'price (px) is "1.5", and no column takes that field any more, and it is not known how the gateway wrote the number',
      withColumns(base, { price: { kind: "absent" } }),
      row(),
    ],
    [
      'price (px) is "1.5", and it is not known how the gateway wrote it',
      withColumns(base, { window: field("px") }),
      row(),
    ],
    ["value is 0.5, and a double is rounded", withColumns(base, { net: field("value") }), row()],
    [
      'price (px) is "1.5", and it is not known whether the gateway writes it as text',
      { ...base, numbers: "text" },
      row(),
    ],
    [
      'maker is "", and it is not known whether the gateway sent null',
      withColumns(base, { maker: field("maker") }),
      row({ maker: "null" }),
    ],
    [
      'maker is "", and it is not known whether the gateway sent null',
      withColumns(base, { maker: { kind: "absent" } }),
      row({ maker: "null" }),
    ],
  ])("are refused where nobody can tell: %s", async (message, to, sent) => {
    const lines = await fetched(base, sent);
    await expect(remapped(base, to, lines)).rejects.toThrow(message);
  });

  it("have an empty field where one of its two columns has to have it", async () => {
    const from = withColumns(base, { symbol: field("symbol", { optional: true }), window: field("symbol") });
    const to = withColumns(from, { ts_event: field("time", { unit: "s" }) });
    const sent = row({ symbol: '""' });
    expect(await remapped(from, to, await fetched(from, sent))).toBe(await fetched(to, sent));
  });

  it("are refused at once where a field was dropped that is not any more", async () => {
    const dropping: RowMap = { ...base, dropped: [["lot"]] };
    const lines = await fetched(dropping, row({ lot: "1" }));
    await expect(remapped(dropping, base, lines)).rejects.toThrow("dropped the field lot");
    expect(await remapped(dropping, dropping, lines)).toBe(lines);
  });

  it("are refused where they are none of the old map's", async () => {
    for (const line of ["{}", "[]", '{"ts_event":5}', (await fetched(base, row())).replace('"s"', "5")]) {
      await expect(remapped(base, base, `${line.trimEnd()}\n`)).rejects.toMatchObject({
        code: "archive_damaged",
      });
    }
  });
});

/** The members of extra, in the order of their names: what was a column's stands behind what was not. */
function sortedExtra(line: string): string {
  const at = line.indexOf(',"extra":');
  return at < 0 ? line : line.slice(0, at) + [...line.slice(at)].toSorted().join("");
}
