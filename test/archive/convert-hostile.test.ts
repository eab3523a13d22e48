// @module-tag slow
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { BadLine, LineByLineResult } from "../../src/archive/convert/line-by-line-conversion.ts";
import { convertLineByLine } from "../../src/archive/convert/line-by-line-conversion.ts";
import { defaultExactTypes } from "../../src/model/profile/exact-types.ts";
import { type Table, tableNamed } from "../../src/model/profile/table.ts";
import { ConvertFixture, instanceId, runId, sampleLine } from "../fixtures/archive/convert-fixture.ts";

let fixture: ConvertFixture;
beforeAll(async () => {
  fixture = await ConvertFixture.open();
});
afterAll(() => fixture[Symbol.asyncDispose]());

const fills = tableNamed("fills");
const factors = tableNamed("factors");
const book = tableNamed("order_book");

const fill = sampleLine(fills);
const factor = sampleLine(factors);
const level = sampleLine(book);

/** The sample line of a table with one member's text replaced. */
function edit(line: string, from: string | RegExp, to: string): string {
  const edited = line.replace(from, to);
  if (edited === line) throw new Error(`nothing to edit: ${from}`);
  return edited;
}

function price(token: string): string {
  return edit(fill, '"price":"1.5"', `"price":${token}`);
}

function bytes(before: string, middle: number[], after: string): Buffer {
  return Buffer.concat([Buffer.from(before), Buffer.from(middle), Buffer.from(after)]);
}

/** Cuts the text after every `size` bytes, so that lines and characters are cut anywhere. */
async function* cut(text: Buffer, size: number) {
  for (let at = 0; at < text.length; at += size) yield text.subarray(at, at + size);
}

interface Careful {
  readonly result: LineByLineResult;
  readonly good: Buffer;
  readonly bad: BadLine[];
}

async function careful(table: Table, text: string | Buffer, size = 65_536): Promise<Careful> {
  const good: Buffer[] = [];
  const bad: BadLine[] = [];
  const result = await convertLineByLine(
    { text: cut(Buffer.from(text), size), table, instanceId, runId, exactTypes: defaultExactTypes(table) },
    { good: (line) => void good.push(Buffer.from(line)), bad: (record) => void bad.push(record) },
  );
  return { result, good: Buffer.concat(good), bad };
}

/** A hostile line between two good ones. */
function between(line: string | Buffer, good: string): Buffer {
  return Buffer.concat([Buffer.from(`${good}\n`), Buffer.from(line), Buffer.from(`\n${good}\n`)]);
}

const malformed: [name: string, table: Table, line: string | Buffer, reason: RegExp][] = [
  ["a number token for a price", fills, price("1.5"), /price is 1.5 where a decimal in a string is expected/],
  ["a boolean for a price", fills, price("true"), /price is true/],
  ["null for a price", fills, price("null"), /price is null/],
  ["an object for a price", fills, price('{"a":1}'), /price is an object or array/],
  ["an exponent in a price", fills, price('"1e3"'), /price is the string/],
  ["a plus sign in a price", fills, price('"+1"'), /price is the string/],
  ["blanks in a price", fills, price('" 1"'), /price is the string/],
  ["an underscore in a price", fills, price('"1_000"'), /price is the string/],
  ["a price that begins with its point", fills, price('".5"'), /price is the string/],
  ["a price that ends with its point", fills, price('"5."'), /price is the string/],
  ["hexadecimal in a price", fills, price('"0x1F"'), /price is the string/],
  ["NaN as a price", fills, price('"NaN"'), /price is the string/],
  ["a price of other digits", fills, price('"١"'), /price is the string/],
  ["a number token for seq", fills, edit(fill, '"seq":"7"', '"seq":7'), /seq is 7/],
  ["a fraction in seq", fills, edit(fill, '"seq":"7"', '"seq":"1.5"'), /seq is the string/],
  ["a negative seq", fills, edit(fill, '"seq":"7"', '"seq":"-1"'), /seq is the string/],
  ["an empty seq", fills, edit(fill, '"seq":"7"', '"seq":""'), /seq is the string/],
  ["a leading zero in seq", fills, edit(fill, '"seq":"7"', '"seq":"07"'), /seq is the string/],
  [
    "a number token for ts_event",
    fills,
    edit(fill, /"ts_event":"\d+"/, '"ts_event":1640995260000000001'),
    /ts_event is 16/,
  ],
  [
    "a date for ts_event",
    fills,
    edit(fill, /"ts_event":"\d+"/, '"ts_event":"2022-01-01"'),
    /ts_event is the string/,
  ],
  [
    "a negative zero for ts_event",
    fills,
    edit(fill, /"ts_event":"\d+"/, '"ts_event":"-0"'),
    /ts_event is the string/,
  ],
  ["a number where text belongs", fills, edit(fill, '"symbol":"a symbol"', '"symbol":12'), /symbol is 12/],
  ["null where text belongs", fills, edit(fill, '"symbol":"a symbol"', '"symbol":null'), /symbol is null/],
  ["a missing field", fills, edit(fill, '"symbol":"a symbol",', ""), /field symbol is missing/],
  ["a field in other letters", fills, edit(fill, '"symbol"', '"Symbol"'), /field symbol is missing/],
  ["a field twice", fills, edit(fill, '"symbol"', '"symbol":"b","symbol"'), /"symbol" appears twice/],
  [
    "a field twice, once escaped",
    fills,
    edit(fill, '"symbol"', '"s\\u0079mbol":"b","symbol"'),
    /"symbol" appears twice/,
  ],
  ["an unknown field twice", fills, edit(fill, "{", '{"x":1,"x":2,'), /"x" appears twice/],
  [
    "an unknown field with a key twice inside",
    fills,
    edit(fill, "{", '{"x":{"a":1,"a":2},'),
    /"a" appears twice/,
  ],
  ["an array", fills, "[1,2]", /not a JSON object/],
  ["null", fills, "null", /not a JSON object/],
  ["a string", fills, '"x"', /not a JSON object/],
  ["plain text", fills, "502 Bad Gateway", /not a JSON object/],
  ["two rows on one line", fills, `${fill}${fill}`, /text after the object/],
  ["a line cut short", fills, fill.slice(0, 100), /the line ends|found/],
  ["a comma too many", fills, edit(fill, /\}$/, ",}"), /found "}"/],
  ["a comma too many in an unknown array", fills, edit(fill, "{", '{"x":[1,],'), /found "\]"/],
  ["a comment", fills, edit(fill, "{", "{/* */"), /found "\/"/],
  ["quotes of another kind", fills, fill.replaceAll('"', "'"), /found "'"/],
  ["a control character in text", fills, edit(fill, "a symbol", "a\u0001symbol"), /found/],
  ["a zero byte in text", fills, edit(fill, "a symbol", "a\u0000symbol"), /found/],
  ["an escape that there is not", fills, edit(fill, "a symbol", "\\x41"), /found/],
  ["half a surrogate pair, escaped", fills, edit(fill, "a symbol", "\\ud800"), /half a surrogate pair/],
  [
    "half a surrogate pair as bytes",
    fills,
    bytes(fill.slice(0, 11), [0xed, 0xa0, 0x80], fill.slice(11)),
    /not UTF-8/,
  ],
  ["bytes that are not UTF-8", fills, bytes(fill.slice(0, 11), [0xff, 0xfe], fill.slice(11)), /not UTF-8/],
  ["a byte order mark inside", fills, `\ufeff${fill}`, /not a JSON object/],
  [
    "a deeply nested unknown field",
    fills,
    edit(fill, "{", `{"x":${"[".repeat(100)}${"]".repeat(100)},`),
    /nested deeper/,
  ],
  [
    "a number in a string for a double",
    factors,
    edit(factor, '"value":0.25', '"value":"0.25"'),
    /value is the string/,
  ],
  ["a bare NaN", factors, edit(factor, '"value":0.25', '"value":NaN'), /found "N"/],
  ["a bare infinity", factors, edit(factor, '"value":0.25', '"value":-Infinity'), /found "-"/],
  [
    "an infinity by a short name",
    factors,
    edit(factor, '"value":0.25', '"value":"inf"'),
    /value is the string/,
  ],
  ["a double that begins with a zero", factors, edit(factor, '"value":0.25', '"value":00.25'), /found "0"/],
  ["a fraction for a small integer", book, edit(level, '"level":3', '"level":3.5'), /level is 3.5/],
  ["a small integer with an exponent", book, edit(level, '"level":3', '"level":3e0'), /level is 3e0/],
  ["a small integer in a string", book, edit(level, '"level":3', '"level":"3"'), /level is the string/],
  ["a negative small integer", book, edit(level, '"level":3', '"level":-3'), /level is -3/],
];

describe("a line that is no proper row is refused, and set aside by the line-by-line path alone", () => {
  it.each(malformed)("%s", async (_, table, line, reason) => {
    const good = sampleLine(table);
    const text = between(line, good);
    const segment = await fixture.segment(text);
    await expect(fixture.convert(table, [segment])).rejects.toMatchObject({
      code: "malformed_row",
      place: { instance: instanceId, run: runId, table: table.name },
    });
    const found = await careful(table, text, 7);
    expect(found.result).toEqual({ good: 2, bad: 1, drift: [] });
    expect(found.bad).toMatchObject([
      { line: 2, offset: good.length + 1, reason: expect.stringMatching(reason) },
    ]);
    expect(Buffer.from(found.bad[0]?.raw ?? "", found.bad[0]?.encoding)).toEqual(Buffer.from(line));
    expect(found.good.toString()).toBe(`${good}\n${good}\n`);
  });

  it.each([fills, factors, book])("what is left of $name is taken", async (table) => {
    const good = sampleLine(table);
    const again = await fixture.convert(table, [
      await fixture.segment(`${good}\n${good}\n`, { checked: true }),
    ]);
    expect(await fixture.lines(table, again.out)).toEqual([good, good]);
  });
});

const beyond: [name: string, table: Table, line: string, column: string, value: string, hint: RegExp][] = [
  [
    "ten decimals",
    fills,
    price('"1.2345678901"'),
    "fills.price",
    "1.2345678901",
    /new archive.*--decimal fills\.price=38,20`/,
  ],
  [
    "ten digits before the point",
    fills,
    price('"-1234567890"'),
    "fills.price",
    "-1234567890",
    /--decimal fills\.price=38,19`/,
  ],
  [
    "a price of a thousand digits",
    fills,
    price(`"${"9".repeat(1000)}"`),
    "fills.price",
    "99999",
    /no column type can hold/,
  ],
  [
    "a seq of uint64 max plus one",
    fills,
    edit(fill, '"seq":"7"', '"seq":"18446744073709551616"'),
    "fills.seq",
    "18446744073709551616",
    /no column type/,
  ],
  [
    "a ts_event of int64 max",
    fills,
    edit(fill, /"ts_event":"\d+"/, '"ts_event":"9223372036854775807"'),
    "fills.ts_event",
    "9223372036854775807",
    /no column type/,
  ],
  [
    "a ts_event of int64 min",
    fills,
    edit(fill, /"ts_event":"\d+"/, '"ts_event":"-9223372036854775808"'),
    "fills.ts_event",
    "-9223372036854775808",
    /no column type/,
  ],
  [
    "a ts_init beyond int64",
    fills,
    edit(fill, /"ts_init":"\d+"/, '"ts_init":"9223372036854775808"'),
    "fills.ts_init",
    "9223372036854775808",
    /no column type/,
  ],
  [
    "a double beyond doubles",
    factors,
    edit(factor, '"value":0.25', '"value":1e999'),
    "factors.value",
    "1e999",
    /no column type/,
  ],
  [
    "a small integer beyond uint32",
    book,
    edit(level, '"level":3', '"level":4294967296'),
    "order_book.level",
    "4294967296",
    /no column type/,
  ],
  [
    "a snapshot beyond uint64",
    book,
    edit(level, '"snapshot_id":"7"', `"snapshot_id":"${"1".repeat(30)}"`),
    "order_book.snapshot_id",
    "1111",
    /no column type/,
  ],
];

describe("a proper value beyond its column stops the table, with the value, the row and the remedy", () => {
  it.each(beyond)("%s", async (_, table, line, column, value, hint) => {
    const text = between(line, sampleLine(table));
    const error = {
      code: "value_out_of_range",
      message: expect.stringMatching(new RegExp(`^${column} of row seq \\d+ is "${value}`)),
      hint: expect.stringMatching(hint),
      place: expect.objectContaining({ table: table.name }),
    };
    await expect(fixture.convert(table, [await fixture.segment(text)])).rejects.toMatchObject(error);
    await expect(careful(table, text)).rejects.toMatchObject({
      ...error,
      place: { table: table.name, line: 2 },
    });
  });

  it("a wider column takes the value as it is", async () => {
    const line = price('"1.2345678901"');
    const exactTypes = { ...defaultExactTypes(fills), price: "DECIMAL(38,18)" };
    const { out } = await fixture.convert(fills, [await fixture.segment(`${line}\n`)], { exactTypes });
    expect(await fixture.lines(fills, out)).toEqual([line]);
  });
});

describe("a row of another run or instance fails the table", () => {
  it.each([
    [
      "run_id",
      edit(fill, '"run_id":"run"', '"run_id":"another"'),
      /run_id "another", but "run" was asked for/,
    ],
    [
      "instance_id",
      edit(fill, '"instance_id":"inst"', '"instance_id":"Inst"'),
      /instance_id "Inst", but "inst" was asked for/,
    ],
    ["an empty run_id", edit(fill, '"run_id":"run"', '"run_id":""'), /run_id ""/],
  ])("%s", async (_, line, message) => {
    const text = between(line, fill);
    const error = { code: "history_identity_conflict", message: expect.stringMatching(message) };
    await expect(fixture.convert(fills, [await fixture.segment(text)])).rejects.toMatchObject(error);
    await expect(careful(fills, text)).rejects.toMatchObject(error);
  });
});

const harmless: [name: string, table: Table, line: string, canonical: string, drift: string[]][] = [
  ["blanks", fills, ` ${fill.replaceAll('":"', '" : \t"').replaceAll('","', '" , "')} `, fill, []],
  ["a carriage return at the end", fills, `${fill}\r`, fill, []],
  ["another order of fields", fills, `{${fill.slice(1, -1).split(",").reverse().join(",")}}`, fill, []],
  [
    "escapes that need not be",
    fills,
    edit(fill, "a symbol", "\\u0061 s\\u0079mbol\\/").replaceAll("\\/", ""),
    fill,
    [],
  ],
  ["an escaped key", fills, edit(fill, '"symbol"', '"s\\u0079mbol"'), fill, []],
  ["zeros at the end of a price", fills, price('"1.500000000000000"'), fill, []],
  [
    "unknown fields",
    fills,
    edit(fill, '"symbol"', '"tag":"a \\" b","n":-1.5e3,"ok":true,"symbol"'),
    fill,
    ["n", "ok", "tag"],
  ],
  ["a double with zeros", factors, edit(factor, "0.25", "0.2500"), factor, []],
  ["a double with an exponent", factors, edit(factor, "0.25", "25E-2"), factor, []],
  ["a negative zero as a double", factors, edit(factor, "0.25", "-0.0"), edit(factor, "0.25", "-0"), []],
  [
    "a negative zero as a double, with blanks",
    factors,
    edit(factor, ":0.25", " : -0"),
    edit(factor, "0.25", "-0"),
    [],
  ],
  [
    "a double of more digits than a double has",
    factors,
    edit(factor, "0.25", "0.2500000000000000000001"),
    factor,
    [],
  ],
];

describe("a line that is only written in another way is the row it says", () => {
  it.each(harmless)("%s", async (_, table, line, canonical, drift) => {
    const good = sampleLine(table);
    // a carriage return at some line ends only is for the line-by-line path; here every line has it
    const text = line.endsWith("\r") ? `${good}\r\n${line}\n${good}\r\n` : between(line, good).toString();
    const result = await fixture.convert(table, [await fixture.segment(text)]);
    expect(await fixture.lines(table, result.out)).toEqual([good, canonical, good]);
    expect(result.drift).toEqual(drift);
    const found = await careful(table, text, 3);
    expect(found.result).toMatchObject({ good: 3, bad: 0 });
    expect(found.result.drift).toEqual(drift);
    const again = await fixture.convert(table, [await fixture.segment(found.good, { checked: true })]);
    expect(await fixture.lines(table, again.out)).toEqual([good, canonical, good]);
  });
});

describe("what only the line-by-line path can read is refused at first, and taken after it", () => {
  const manyShapes = Array.from({ length: 12 }, (_, i) => edit(fill, "{", `{"x${i}":1,`)).join("\n");
  it.each([
    ["a nested unknown field", `${edit(fill, "{", '{"x":{"a":[1,{"b":null}]},')}\n`, 1, ["x"]],
    ["blank lines", `\n${fill}\n \t\n\n`, 1, ["blank line"]],
    ["a byte order mark at the start", `\ufeff${fill}\n${fill}\n`, 2, ["byte order mark"]],
    ["carriage returns at some line ends", `${fill}\r\n${fill}\n`, 2, []],
    ["a carriage return between tokens", `${edit(fill, ",", ",\r")}\n${fill}\n`, 2, []],
    [
      "fields of more shapes than are learned",
      `${manyShapes}\n`,
      12,
      Array.from({ length: 12 }, (_, i) => `x${i}`).toSorted(),
    ],
  ])("%s", async (_, text, rows, drift) => {
    await expect(fixture.convert(fills, [await fixture.segment(text)])).rejects.toMatchObject({
      code: "malformed_row",
    });
    const found = await careful(fills, text, 5);
    expect(found.result).toEqual({ good: rows, bad: 0, drift });
    const segments = [
      await fixture.segment(`${fill}\n`),
      await fixture.segment(found.good, { checked: true }),
    ];
    const again = await fixture.convert(fills, segments);
    expect(await fixture.lines(fills, again.out)).toEqual(Array.from({ length: rows + 1 }, () => fill));
  });

  it("still refuses what is wrong in a segment that nobody checked", async () => {
    const segments = [
      await fixture.segment(`${fill}\n`, { checked: true }),
      await fixture.segment(`${price("1.5")}\n`),
    ];
    await expect(fixture.convert(fills, segments)).rejects.toMatchObject({ code: "malformed_row" });
  });

  it("refuses a number token even where other bytes make the line as long as a canonical one", async () => {
    const line = edit(edit(fill, '"price":"1.5"', '"price":1.5'), "{", "{  ");
    expect(line.length).toBe(fill.length);
    await expect(fixture.convert(fills, [await fixture.segment(`${line}\n`)])).rejects.toMatchObject({
      code: "malformed_row",
    });
  });
});

describe("odd zeros of exact numbers", () => {
  it.each([
    ['"0001.25"', '"1.25"'],
    ['"007"', '"7"'],
    ['"00.50"', '"0.50"'],
    ['"-0.00"', '"0"'],
    ['"-0"', '"0"'],
    ['"000"', '"0"'],
    ['"-00.5"', '"-0.5"'],
    ['"\\u002d0"', '"0"'],
  ])("%s is refused at first, and stored as %s by the line-by-line path", async (token, kept) => {
    const odd = `${price(token)}\n${fill}\n`;
    await expect(fixture.convert(fills, [await fixture.segment(odd)])).rejects.toMatchObject({
      code: "malformed_row",
    });
    const found = await careful(fills, odd, 7);
    expect(found.good.toString()).toBe(`${price(kept)}\n${fill}\n`);
    expect(found.result).toEqual({ good: 2, bad: 0, drift: ["odd zeros in decimals"] });
    const again = await fixture.convert(fills, [await fixture.segment(found.good, { checked: true })]);
    const value = kept.replace(/(\.\d*?)0+"$/, '$1"');
    expect(await fixture.lines(fills, again.out)).toEqual([price(value), fill]);
  });

  it.each(['"-0.5"', '"0.05"', '"0"', '"-10"', '"100"', '""'])("%s has none", async (token) => {
    const text = `${price(token)}\n`;
    const { out } = await fixture.convert(fills, [await fixture.segment(text)]);
    expect(await fixture.lines(fills, out)).toEqual([price(token)]);
    expect((await careful(fills, text)).good.toString()).toBe(text);
  });

  it.each(['"+1"', '"--0"', '"0x7"', '"-"', '"1e0"', '" 0"'])(
    "%s is no decimal, and is set aside",
    async (token) => {
      expect(await careful(fills, `${price(token)}\n`)).toMatchObject({ result: { good: 0, bad: 1 } });
    },
  );

  it("stay where they are no exact number of the table's", async () => {
    const text = `${edit(edit(fill, "a symbol", "007"), "{", '{"x":{"price":"007"},')}\n`;
    expect((await careful(fills, text)).good.toString()).toBe(text);
  });

  it("stay in segments that are committed already", async () => {
    const text = `${price('"-0.00"')}\n`;
    const { out } = await fixture.convert(fills, [await fixture.segment(text)], { oddZeros: true });
    expect(await fixture.lines(fills, out)).toEqual([price('"0"')]);
  });
});

describe("the line-by-line path", () => {
  it("names a line longer than 16 MiB", async () => {
    const text = Buffer.from(`${fill}\n${" ".repeat(16 * 1024 * 1024 + 1)}\n`);
    await expect(careful(fills, text, 1 << 20)).rejects.toMatchObject({
      code: "line_too_long",
      place: { line: 2 },
    });
  });

  it("keeps positions in bytes, not characters", async () => {
    const line = edit(fill, "a symbol", "Ünï😀");
    const { bad } = await careful(fills, `${line}\nx\n${line}\ny`, 4);
    const width = Buffer.byteLength(line) + 1;
    expect(bad.map(({ line, offset, raw }) => [line, offset, raw])).toEqual([
      [2, width, "x"],
      [4, 2 * width + 2, "y"],
    ]);
  });

  it("waits for a slow sink", async () => {
    const seen: string[] = [];
    const input = {
      text: cut(Buffer.from(`${fill}\n${fill}\n`), 64),
      table: fills,
      instanceId,
      runId,
      exactTypes: defaultExactTypes(fills),
    };
    await convertLineByLine(input, {
      good: async () => {
        seen.push("in");
        await new Promise((resolve) => setTimeout(resolve, 5));
        seen.push("out");
      },
      bad: () => undefined,
    });
    expect(seen).toEqual(["in", "out", "in", "out"]);
  });
});
