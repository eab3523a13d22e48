// @module-tag slow
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { normaliseCarefully } from "../../../../src/gateway/profile/rows/careful-row.ts";
import { foreignRow } from "../../../../src/gateway/profile/rows/foreign-row.ts";
import { kernelProgram } from "../../../../src/gateway/profile/rows/kernel-program.ts";
import { kernelStop, RowKernel } from "../../../../src/gateway/profile/rows/row-kernel.ts";
import { RowNormaliser } from "../../../../src/gateway/profile/rows/row-normaliser.ts";
import { planRows } from "../../../../src/gateway/profile/rows/row-plan.ts";
import type { ColumnSource, RowMap } from "../../../../src/model/profile/row-map.ts";
import { tableNamed } from "../../../../src/model/profile/table.ts";
import { badRowLine, readBadRow } from "../../../../src/row/bad-row.ts";
import { foreignTables, numbersAsText, run, table } from "./foreign-rows.ts";

async function linesOf(normaliser: RowNormaliser, chunks: readonly Uint8Array[]): Promise<string> {
  async function* sent() {
    yield* chunks;
  }
  const out: Uint8Array[] = [];
  for await (const piece of normaliser.over(sent())) out.push(piece);
  return Buffer.concat(out).toString();
}

/** The bytes cut after each of some lengths. */
function cut(bytes: Uint8Array, lengths: readonly number[]): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  let at = 0;
  for (let index = 0; at < bytes.byteLength; index++) {
    const end = at + lengths[index % lengths.length]!;
    chunks.push(bytes.subarray(at, end));
    at = end;
  }
  return chunks;
}

describe("rows of any map, in any spelling", () => {
  it("become the canonical lines that they mean, however they are cut, and their own rows again", async () => {
    const cuts = fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(foreignTables, cuts, async ({ map, rows }, lengths) => {
        const text = Buffer.from(rows.map(({ wire }) => `${wire}\n`).join(""));
        const lines = rows.map(({ line }) => `${line}\n`).join("");
        const normaliser = new RowNormaliser(table, map, run);
        expect(await linesOf(normaliser, cut(text, lengths))).toBe(lines);
        const plan = planRows(table, map, run);
        for (const { wire, line, back } of rows) {
          expect(normaliser.row(Buffer.from(wire)).toString()).toBe(`${line}\n`);
          expect(normaliseCarefully(plan, wire)).toMatchObject({ kind: "row", line });
          const again = foreignRow(table, map, line);
          expect(numbersAsText(again)).toEqual(numbersAsText(back));
          expect(normaliser.row(Buffer.from(again)).toString()).toBe(`${line}\n`);
        }
      }),
      { numRuns: 200 },
    );
  });

  it("come to the same by the quick way and by the careful one where bytes of them are others", async () => {
    const odd = fc.constantFrom(
      ...'{}[]",:\\0123456789.eE+-/untfalsbrNI \t\r\u0000\u001f',
      "é",
      "\\ud800",
      "\\ud834\\udd1e",
      '""',
    );
    const edits = fc.array(
      fc.record({
        at: fc.nat(),
        length: fc.integer({ min: 0, max: 3 }),
        put: fc.oneof(
          odd.map((text) => Buffer.from(text)),
          fc.uint8Array({ maxLength: 2 }),
        ),
      }),
      { minLength: 1, maxLength: 3 },
    );
    await fc.assert(
      fc.asyncProperty(foreignTables, edits, async ({ map, rows }, changes) => {
        const normaliser = new RowNormaliser(table, map, run);
        const plan = planRows(table, map, run);
        for (const { wire } of rows) {
          let bytes = Buffer.from(wire);
          for (const { at, length, put } of changes) {
            const from = at % bytes.byteLength;
            bytes = Buffer.concat([bytes.subarray(0, from), put, bytes.subarray(from + length)]);
          }
          const line = Buffer.from(bytes.filter((byte) => byte !== 10));
          const text = line.toString();
          const made = Buffer.concat([normaliser.row(line)]);
          if (!Buffer.from(text).equals(line)) {
            // no UTF-8: what reads the lines later decides
            expect(made.equals(Buffer.concat([line, Buffer.from("\n")]))).toBe(true);
            continue;
          }
          if (/^[ \t\r]*$/.test(text)) continue;
          const careful = normaliseCarefully(plan, text);
          const expected = careful.kind === "row" ? careful.line : badRowLine(careful.row, careful.ts);
          expect(made.toString()).toBe(`${expected}\n`);
        }
      }),
      { numRuns: 500 },
    );
  });
});

const fills = tableNamed("fills");

/** The map of the issue's example, in which every kind of source is. */
const acme: RowMap = {
  numbers: "exact",
  fields: "keep",
  ties: "bytes",
  dropped: [["instrument", "internal"]],
  columns: {
    run_id: { kind: "field", path: ["executionId"] },
    instance_id: { kind: "instance" },
    seq: { kind: "derived" },
    ts_event: { kind: "field", path: ["time"], unit: "ms" },
    ts_init: { kind: "field", path: ["time"], unit: "ms" },
    resource_key: { kind: "absent" },
    account: { kind: "field", path: ["acct"] },
    portfolio: { kind: "constant", text: "main" },
    venue: { kind: "field", path: ["instrument", "exchange"] },
    symbol: { kind: "field", path: ["instrument", "symbol"] },
    trade_id: { kind: "field", path: ["id"] },
    client_order_id: { kind: "field", path: ["order"], optional: true },
    venue_order_id: { kind: "field", path: ["order"], optional: true },
    side: {
      kind: "field",
      path: ["side"],
      words: [
        { wire: "B", column: "BUY" },
        { wire: "S", column: "SELL" },
      ],
    },
    price: { kind: "field", path: ["px"] },
    quantity: { kind: "field", path: ["qty"] },
    fee: { kind: "field", path: ["fee"] },
    fee_currency: { kind: "field", path: ["feeCcy"], optional: true },
    liquidity: {
      kind: "field",
      path: ["maker"],
      words: [
        { wire: true, column: "MAKER" },
        { wire: false, column: "TAKER" },
      ],
    },
  },
};

const ids = { runId: "run-1", instanceId: "desk" };
const usual = {
  executionId: '"run-1"',
  time: "1700000000123",
  acct: '"a"',
  instrument: '{"exchange":"X","symbol":"BTC"}',
  id: '"t1"',
  order: '"o1"',
  side: '"B"',
  px: "1.50",
  qty: '"3"',
  fee: "-0.00",
  feeCcy: '"USD"',
  maker: "true",
};
type Fields = Readonly<Record<string, string | undefined>>;

/** A row of the example's gateway; a field that is undefined is left out. */
function acmeRow(fields: Fields = {}): string {
  const members = Object.entries<string | undefined>({ ...usual, ...fields });
  return `{${members.flatMap(([name, text]) => (text === undefined ? [] : [`"${name}":${text}`])).join(",")}}`;
}

function acmeLine(columns: Fields = {}, extra?: string): string {
  const values: Fields = {
    ...{ run_id: "run-1", instance_id: "desk", seq: "", ts_event: "1700000000123000000" },
    ...{ ts_init: "1700000000123000000", resource_key: "", account: "a", portfolio: "main", venue: "X" },
    ...{
      symbol: "BTC",
      trade_id: "t1",
      client_order_id: "o1",
      venue_order_id: "o1",
      side: "BUY",
      price: "1.5",
    },
    ...{ quantity: "3", fee: "0", fee_currency: "USD", liquidity: "MAKER", ...columns },
  };
  const members = fills.columns.map(({ name }) => `"${name}":${JSON.stringify(values[name])}`);
  return `{${members.join(",")}${extra === undefined ? "" : `,"extra":${extra}`}}`;
}

/** What becomes of one row, without its line end. */
function made(row: string | Uint8Array, map: RowMap = acme): string {
  const text = new RowNormaliser(fills, map, ids).row(Buffer.from(row)).toString();
  expect(text.endsWith("\n")).toBe(true);
  return text.slice(0, -1);
}

function withColumn(name: string, source: ColumnSource, rest: Partial<RowMap> = {}): RowMap {
  return { ...acme, ...rest, columns: { ...acme.columns, [name]: source } };
}

describe("one row", () => {
  it.each<[string, Fields, Fields, string?]>([
    ["is made canonical", {}, {}],
    [
      "of another run goes out as it is, to be refused by its id",
      { executionId: '"other"' },
      { run_id: "other" },
    ],
    [
      "keeps an exact number beyond every double",
      { px: "123456789012345678901.5" },
      { price: "123456789012345678901.5" },
    ],
    [
      "has exponents written out",
      { px: "1.64e+18", qty: '"25E-7"' },
      { price: "1640000000000000000", quantity: "0.0000025" },
    ],
    ["loses zeros ahead in a text", { qty: '"-007.10"' }, { quantity: "-7.1" }],
    ["loses the sign of a zero with an exponent", { qty: "-0e5" }, { quantity: "0" }],
    ["has an absent price where it is null or empty", { px: "null", qty: '""' }, { price: "", quantity: "" }],
    [
      "has empty columns where an optional field is missing",
      { feeCcy: undefined, order: undefined },
      { fee_currency: "", client_order_id: "", venue_order_id: "" },
    ],
    [
      "has times from fractions",
      { time: "1700000000123.456789" },
      { ts_event: "1700000000123456789", ts_init: "1700000000123456789" },
    ],
    ["has times from before 1970", { time: '"-0.000001"' }, { ts_event: "-1", ts_init: "-1" }],
    ["keeps what no column takes", { lot: '[1.0, {"a" : "\\u0041\\/"}]' }, {}, '{"lot":[1.0,{"a":"A/"}]}'],
    [
      "keeps a field inside an object of others",
      { instrument: '{"exchange":"X","isin":"Q","symbol":"BTC"}' },
      {},
      '{"instrument":{"isin":"Q"}}',
    ],
    ["loses what the profile drops", { instrument: '{"exchange":"X","internal":[{}],"symbol":"BTC"}' }, {}],
    [
      "keeps a bare NaN that no column takes as text",
      { odd: "[NaN,-Infinity]" },
      {},
      '{"odd":["NaN","-Infinity"]}',
    ],
    ["keeps a field named extra", { extra: '{"a":1}' }, {}, '{"extra":{"a":1}}'],
  ])("%s", (_, fields, columns, extra) => {
    expect(made(acmeRow(fields))).toBe(acmeLine(columns, extra));
  });

  it.each<[string, Fields]>([
    ["price (px) is missing", { px: undefined }],
    ['price (px): "abc" is not a decimal number', { px: '"abc"' }],
    ['price (px): "1_000" is not a decimal number', { px: '"1_000"' }],
    ['price (px): ".5" is not a decimal number', { px: '".5"' }],
    ["price (px): true is not a decimal number", { px: "true" }],
    ["price (px): NaN is not a decimal number", { px: "NaN" }],
    ["price (px): 1e999 has an exponent too large for any column", { px: "1e999" }],
    ["ts_event (time): 1.0000001 is finer than a nanosecond", { time: "1.0000001" }],
    [
      "ts_event (time): 9223372036854.775808 is outside the range of 64-bit nanoseconds",
      { time: "9223372036854.775808" },
    ],
    ['ts_event (time): "soon" is not a time in ms', { time: '"soon"' }],
    ["ts_event (time) is null", { time: "null" }],
    ["account (acct): 5 is not text", { acct: "5" }],
    ["account (acct): an object is not text", { acct: "{}" }],
    [`side: "Q" is not in the profile's words: "B", "S"`, { side: '"Q"' }],
    [`liquidity (maker): "true" is not in the profile's words: true, false`, { maker: '"true"' }],
    ["venue (instrument.exchange) is missing", { instrument: "null" }],
    ["venue (instrument.exchange) is missing", { instrument: "{}" }],
    ["symbol (instrument.symbol) is missing", { instrument: '{"exchange":"X"}' }],
    ['duplicate key "px"', { px: '1,"px":1' }],
    ['duplicate key "\\u0070x"'.replace("\\u0070", "p"), { px: '1,"\\u0070x":1' }],
    ['duplicate key "lot"', { lot: '1,"lot":1' }],
    ['duplicate key "a"', { lot: '{"a":1,"a":1}' }],
    ["half a surrogate pair in a string", { acct: '"\\ud800"' }],
    ["half a surrogate pair in a string", { lot: '["\\udc00"]' }],
    ["values are nested deeper than 63 levels", { lot: "[".repeat(63) + "]".repeat(63) }],
    ['found "}" at character', { maker: "" }],
    ['found "\\u0001" at character', { acct: '"\u0001"' }],
    ["text after the row's object", { maker: "true} {" }],
  ])("is set aside: %s", (reason, fields) => {
    const row = acmeRow(fields);
    const bad = readBadRow(made(row));
    expect(bad?.text).toBe(row);
    expect(bad?.reason).toContain(reason);
  });

  it("has RFC 3339 times to the nanosecond, and is set aside where one is finer", () => {
    const map = withColumn("ts_event", { kind: "field", path: ["at"], unit: "rfc3339" });
    const at = (fraction: string) => acmeRow({ at: `"2023-11-14T22:13:20.${fraction}Z"` });
    const line = acmeLine({ ts_event: "1700000000123456789" });
    for (const fraction of ["123456789", "12345678900"]) expect(made(at(fraction), map)).toBe(line);
    expect(readBadRow(made(at("1234567891"), map))?.reason).toBe(
      'ts_event (at): "2023-11-14T22:13:20.1234567891Z" is finer than a nanosecond',
    );
  });

  it("tells the time of a bad row where it can be read", () => {
    expect(JSON.parse(made(acmeRow({ px: "true" })))).toMatchObject({ ts_event: "1700000000123000000" });
    expect(JSON.parse(made(acmeRow({ time: "true" })))).not.toHaveProperty("ts_event");
  });

  it("takes bare numbers of exact columns only where the profile says so", () => {
    const map: RowMap = { ...acme, numbers: "text" };
    const texts = { px: '"1.50"', fee: '"0"' };
    expect(made(acmeRow(texts), map)).toBe(acmeLine());
    expect(readBadRow(made(acmeRow({ ...texts, px: "1.50" }), map))?.reason).toBe(
      "price (px): 1.50 is a bare number, which the profile does not allow (numbers: exact)",
    );
  });

  it("may be as deep as leaves room for extra, and stand on several lines", () => {
    const deep = "[".repeat(62) + "]".repeat(62);
    expect(made(acmeRow({ lot: deep }))).toBe(acmeLine({}, `{"lot":${deep}}`));
    expect(made(acmeRow().replaceAll(",", ",\n"))).toBe(acmeLine());
  });

  it("has words for small numbers, whatever their spelling", () => {
    const words = [
      { wire: 1, column: "BUY" },
      { wire: -1, column: "SELL" },
    ];
    const map = withColumn("side", { kind: "field", path: ["side"], words });
    for (const one of ["1", "1.0", "10e-1"]) expect(made(acmeRow({ side: one }), map)).toBe(acmeLine());
    expect(readBadRow(made(acmeRow({ side: '"1"' }), map))?.reason).toContain("not in the profile's words");
    expect(readBadRow(made(acmeRow({ side: "1.00000000000000000001" }), map))?.reason).toContain(
      "not in the profile's words",
    );
  });

  it("is usually made without a look by the careful way", () => {
    const kernel = new RowKernel(kernelProgram(planRows(fills, acme, ids)));
    const rows = [
      acmeRow(),
      acmeRow({
        px: "1e-7",
        qty: '"007"',
        fee: "12.000",
        time: "1700000000123.5",
        acct: '"\\u00e9\\n\u00fc"',
      }),
      acmeRow({ feeCcy: "null", order: undefined, maker: "false", side: '"S"' }),
      acmeRow().replaceAll(",", " , "),
      `{${acmeRow()
        .slice(1, -1)
        .split(/,(?=")(?!"symbol)/)
        .toReversed()
        .join(",")}}`,
    ];
    kernel.take(Buffer.from(`${rows.join("\n")}\n`));
    expect(kernel.run()).toBe(kernelStop.done);
    expect(kernel.flush()!.toString().split("\n")).toHaveLength(rows.length + 1);
  });

  it("fails the table at a field that no column takes where fields are frozen", () => {
    const frozen: RowMap = { ...acme, fields: "freeze" };
    expect(made(acmeRow(), frozen)).toBe(acmeLine());
    const thrown = (fields: Fields) => () => made(acmeRow(fields), frozen);
    expect(thrown({ lot: "1" })).toThrow("rows of fills have a field lot that no column takes");
    expect(thrown({ instrument: '{"exchange":"X","symbol":"BTC","isin":1}' })).toThrow(
      "a field instrument.isin",
    );
  });

  it("cannot be read by a map that contradicts itself", () => {
    const contrary = withColumn("venue", { kind: "field", path: ["acct", "venue"] });
    expect(() => made("{}", contrary)).toThrow("fills: the field acct is used in two ways");
    const constant = withColumn("price", { kind: "constant", text: "cheap" });
    expect(() => made("{}", constant)).toThrow('fills.price: "cheap" is not a decimal number');
  });
});

describe("an answer", () => {
  const odd = Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]);
  const text = Buffer.concat([
    Buffer.from(`\ufeff${acmeRow()}\r\n \t\n${acmeRow({ px: '"é"' })}\n\n`),
    odd,
    Buffer.from(`\n${acmeRow({ lot: "1" })}\n${acmeRow({ acct: '"é\\u00e9"' })}`),
  ]);
  const bad = badRowLine(
    { reason: 'price (px): "é" is not a decimal number', text: acmeRow({ px: '"é"' }) },
    "1700000000123000000",
  );
  const lines = [
    ...[acmeLine(), " \t", bad, "", odd.toString(), acmeLine({}, '{"lot":1}')],
    ...[acmeLine({ account: "éé" }), ""],
  ].join("\n");

  it("comes to the same wherever it is cut", async () => {
    const normaliser = new RowNormaliser(fills, acme, ids);
    expect(await linesOf(normaliser, cut(text, [1]))).toBe(lines);
    for (let at = 0; at <= text.byteLength; at++) {
      expect(await linesOf(normaliser, [text.subarray(0, at), text.subarray(at)])).toBe(lines);
    }
  });

  it("is handed out raw from where it is torn, so that the cut shows", async () => {
    const normaliser = new RowNormaliser(fills, acme, ids);
    const row = acmeRow();
    for (const torn of [row.slice(0, -1), row.slice(0, 20), "{", `${row}}`, " ", "\ufeff"]) {
      const out = await linesOf(normaliser, [Buffer.from(`${row}\n${torn}`)]);
      expect(out).toBe(`${acmeLine()}\n${torn}`);
    }
    expect(await linesOf(normaliser, [Buffer.from(acmeRow({ px: "NaN" }))])).toContain(
      "is not a decimal number",
    );
  });

  it("has each new field told once", async () => {
    const told: string[] = [];
    const onUnknownField = (path: readonly string[]) => told.push(path.join("/"));
    const normaliser = new RowNormaliser(fills, acme, ids, { onUnknownField });
    const rows = [
      ...[{}, { lot: "1" }, { lot: "2", instrument: '{"exchange":"X","symbol":"BTC","isin":"Q"}' }],
      ...[{ odd: '"\\ud800"' }, { lot: "3", é: '{"a":1}' }],
    ];
    const sent = Buffer.from(rows.map((fields) => `${acmeRow(fields)}\n`).join(""));
    await linesOf(normaliser, [sent]);
    await linesOf(normaliser, [sent]);
    expect(told).toEqual(["lot", "instrument/isin", "é"]);
  });

  it("may have a line of megabytes, and none without end", async () => {
    const normaliser = new RowNormaliser(fills, acme, ids);
    const long = "x".repeat(3_000_000);
    const sent = Buffer.from(`${acmeRow()}\n${acmeRow({ order: `"${long}"` })}\n${acmeRow()}\n`);
    const line = acmeLine({ client_order_id: long, venue_order_id: long });
    expect((await linesOf(normaliser, [sent])) === `${acmeLine()}\n${line}\n${acmeLine()}\n`).toBe(true);
    const piece = Buffer.alloc(1024 * 1024, "x");
    await expect(linesOf(normaliser, new Array(18).fill(piece))).rejects.toMatchObject({
      code: "line_too_long",
    });
  });

  it("keeps out of another that is read at the same time, and of one that was left", async () => {
    const normaliser = new RowNormaliser(fills, acme, ids);
    async function* slowly(row: string) {
      for (const chunk of cut(Buffer.from(`${row}\n`.repeat(3)), [50])) yield chunk;
    }
    const left = normaliser.over(slowly(acmeRow({ acct: '"left"' })));
    await left.next();
    await left.return();
    const [first, second] = [
      normaliser.over(slowly(acmeRow())),
      normaliser.over(slowly(acmeRow({ acct: '"b"' }))),
    ];
    const out = ["", ""];
    for (let done = 0; done < 2; ) {
      done = 0;
      for (const [index, answer] of [first, second].entries()) {
        const { value, done: isDone } = await answer.next();
        if (isDone) done++;
        else out[index] += Buffer.from(value).toString();
      }
    }
    expect(out).toEqual([`${acmeLine()}\n`.repeat(3), `${acmeLine({ account: "b" })}\n`.repeat(3)]);
  });
});
