import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { convertTogether } from "../../src/archive/convert/convert-together.ts";
import { duckDBConverter } from "../../src/archive/convert/duckdb-form.ts";
import { convertLineByLine } from "../../src/archive/convert/line-by-line-conversion.ts";
import { fileList } from "../../src/duckdb/sql.ts";
import { ExtraConverter } from "../../src/extract/fetch/extra-converter.ts";
import { defaultExactTypes } from "../../src/model/profile/exact-types.ts";
import { extraTypes } from "../../src/model/profile/extra-column.ts";
import { type Table, tableNamed } from "../../src/model/profile/table.ts";
import { badRowLine, notARow } from "../../src/row/bad-row.ts";
import { checkLine } from "../../src/row/strict-line.ts";
import { ConvertFixture, instanceId, runId, sampleLine } from "../fixtures/archive/convert-fixture.ts";

let fixture: ConvertFixture;
beforeAll(async () => {
  fixture = await ConvertFixture.open();
});
afterAll(() => fixture[Symbol.asyncDispose]());

const fills = tableNamed("fills");
const factors = tableNamed("factors");

function withExtra(line: string, extra: string): string {
  return `${line.slice(0, -1)},"extra":${extra}}`;
}

function conversionOf(table: Table, segments: Parameters<ReturnType<typeof duckDBConverter>>[0]["segments"]) {
  const exactTypes = { ...defaultExactTypes(table), ...extraTypes };
  const out = `${fixture.dir}/extra.parquet`;
  return { table, instanceId, runId, exactTypes, extra: true, segments, out };
}

async function converted(table: Table, lines: readonly string[]): Promise<(string | null)[]> {
  const segment = await fixture.segment(lines.map((line) => `${line}\n`).join(""));
  const conversion = conversionOf(table, [segment]);
  const { rows, drift } = await duckDBConverter(fixture.db.connection)(conversion);
  expect({ rows, drift }).toEqual({ rows: lines.length, drift: [] });
  return await extraOf(conversion.out);
}

async function extraOf(file: string): Promise<(string | null)[]> {
  const reader = await fixture.db.connection.runAndReadAll(
    `SELECT extra FROM read_parquet(${fileList([file])}, file_row_number = true) ORDER BY file_row_number`,
  );
  return reader.getRows().map(([extra]) => extra as string | null);
}

const texts = [
  '{"lot":3,"instrument":{"isin":"x"}}',
  '{"big":123456789012345678901.5,"z":1e400,"a":0.10}',
  '{"b":1, "a" : [ {"extra":{"extra":{}}} , null ]}',
  '{"note":"Ünïcode 😀 \\" ,\\"extra\\":{ ","":""}',
  "{}",
];

describe("the member extra at a line's end", () => {
  test("is kept as it stands, to the last digit and blank, and is NULL where a line has none", async () => {
    const lines = ["", ...texts].map((extra, seq) => {
      const line = sampleLine(fills, { seq: String(seq), symbol: seq % 2 ? "Ünï😀" : "a" });
      return extra === "" ? line : withExtra(line, extra);
    });
    expect(await converted(fills, lines)).toEqual([null, ...texts]);
  });

  test("is read of a line that is no canonical one as well, whose shape is learned", async () => {
    const lines = ["", ...texts].map((extra, seq) => {
      const line = sampleLine(fills, { seq: String(seq) }).replace('"side":', '"side" : ');
      return extra === "" ? line : withExtra(line, extra);
    });
    expect(await converted(fills, lines)).toEqual([null, ...texts]);
  });

  test("says nothing of a column that is called as one of its fields, nor of its sign", async () => {
    const lines = [0, -0, 1].map((value, seq) =>
      withExtra(sampleLine(factors, { seq: String(seq), value }), '{"value":-0.5,"factor":"other"}'),
    );
    await converted(factors, lines);
    const reader = await fixture.db.connection.runAndReadAll(
      `SELECT CAST(value AS VARCHAR) FROM read_parquet(${fileList([`${fixture.dir}/extra.parquet`])})`,
    );
    expect(reader.getRows().flat()).toEqual(["0.0", "-0.0", "1.0"]);
  });

  test("is found in many lines that were taken for lines without, and looked for in those after them", async () => {
    const plain = Array.from({ length: 100 }, (_, seq) => sampleLine(fills, { seq: String(seq) }));
    const some = [...plain.slice(0, -1), withExtra(plain.at(-1)!, texts[0]!)];
    const toParquet = duckDBConverter(fixture.db.connection);
    const asked: (boolean | undefined)[] = [];
    const converter = new ExtraConverter((conversion) => {
      asked.push(conversion.extra);
      return toParquet(conversion);
    }, 100);
    for (const [lines, last] of [
      [plain, null],
      [some, texts[0]],
      [plain, null],
    ] as const) {
      const conversion = conversionOf(fills, [await fixture.segment(`${lines.join("\n")}\n`)]);
      const { rows, drift } = await converter.convert(conversion);
      expect({ rows, drift }).toEqual({ rows: lines.length, drift: [] });
      expect((await extraOf(conversion.out)).at(-1)).toBe(last);
    }
    expect(asked).toEqual([false, false, true, true]);
  });

  test("is read by conversions that are made together", async () => {
    const one = async (seq: string, extra: string) => {
      const segment = await fixture.segment(`${withExtra(sampleLine(fills, { seq }), extra)}\n`);
      return { ...conversionOf(fills, [segment]), out: `${fixture.dir}/together-${seq}.parquet` };
    };
    const conversions = [await one("1", texts[1]!), await one("2", texts[2]!), await one("3", '{"a":NaN}')];
    const made = await convertTogether(fixture.db.connection, conversions);
    expect(made.map((found) => found?.rows)).toEqual([1, 1, undefined]);
    expect(await extraOf(conversions[0]!.out)).toEqual([texts[1]]);
    expect(await extraOf(conversions[1]!.out)).toEqual([texts[2]]);
  });

  test.each([
    ["bare NaN", (line: string) => withExtra(line, '{"a":NaN}')],
    ["a comma too many", (line: string) => withExtra(line, '{"a":1,}')],
    ["text behind its object", (line: string) => withExtra(line, '{"a":1} 7')],
    ["a column twice", (line: string) => withExtra(line, '{"a":1},"price":"9","b":{}')],
  ])("makes a line with %s no row of it", async (_, spoil) => {
    const line = spoil(sampleLine(fills));
    const segment = await fixture.segment(`${line}\n`);
    const converting = duckDBConverter(fixture.db.connection)(conversionOf(fills, [segment]));
    await expect(converting).rejects.toMatchObject({ code: "malformed_row" });
    const rules = { table: fills, instanceId, runId, exactTypes: defaultExactTypes(fills), extra: true };
    expect(checkLine(line, rules).kind).toBe("bad");
  });

  test("is an unknown field where no column takes it and no map keeps it, or where it is not the last", () => {
    const rules = { table: fills, instanceId, runId, exactTypes: defaultExactTypes(fills) };
    const line = sampleLine(fills);
    expect(checkLine(withExtra(line, "{}"), rules)).toMatchObject({ kind: "row", unknown: ["extra"] });
    expect(checkLine(withExtra(line, "{}"), { ...rules, extra: true })).toMatchObject({ unknown: [] });
    const first = `{"extra":{},${line.slice(1)}`;
    expect(checkLine(first, { ...rules, extra: true })).toMatchObject({ unknown: ["extra"] });
  });
});

describe("a line that stands for a bad row", () => {
  async function setAside(lines: readonly string[]) {
    async function* text() {
      yield Buffer.from(lines.map((line) => `${line}\n`).join(""));
    }
    const bad: { reason: string; raw: string }[] = [];
    const input = { text: text(), table: fills, instanceId, runId, exactTypes: defaultExactTypes(fills) };
    const { good } = await convertLineByLine(input, {
      good: () => {},
      bad: (record) => void bad.push(record),
    });
    return { good, bad: bad.map(({ reason, raw }) => ({ reason, raw })) };
  }

  test("is set aside as the wire had it, with its source's reason", async () => {
    const text = '{"px": 1.50, "note":"\\u00e9 \\"x\\"", "t":null}';
    const line = badRowLine({ reason: "px is a bare number", text }, "1640995260000000001");
    expect(await setAside([sampleLine(fills), line])).toEqual({
      good: 1,
      bad: [{ reason: "px is a bare number", raw: text }],
    });
    await expect(
      duckDBConverter(fixture.db.connection)(conversionOf(fills, [await fixture.segment(`${line}\n`)])),
    ).rejects.toMatchObject({ code: "malformed_row" });
  });

  test("is never a row, whatever it has beside, and then is kept whole", async () => {
    const row = sampleLine(fills);
    const made = [
      `{"${notARow}":"x","row":"y",${row.slice(1)}`,
      `${row.slice(0, -1)},"runvault:not\\u005fa_row":1}`,
    ];
    expect(await setAside(made)).toEqual({
      good: 0,
      bad: made.map((raw) => ({ reason: `it has ${notARow}, which no row has`, raw })),
    });
    for (const line of made) {
      const segment = await fixture.segment(`${line}\n`);
      const converting = duckDBConverter(fixture.db.connection)(conversionOf(fills, [segment]));
      await expect(converting).rejects.toMatchObject({ code: "malformed_row" });
    }
  });
});
