import { create, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import fc from "fast-check";
import { expect, test } from "vitest";
import { foreignRows } from "../../src/gateway/rpc/foreign-rows.ts";
import type { TimeUnit } from "../../src/model/profile/row-map.ts";
import { tableNamed } from "../../src/model/profile/table.ts";
import { indexPage } from "../../src/row/wire/page-index.ts";
import { RowTranscoder } from "../../src/row/wire/row-transcoder.ts";
import { directions, tickFields, tickMap, tickMessage } from "../fixtures/foreign/tick-message.ts";

const fills = tableNamed("fills")!;
const run = { instanceId: "north", runId: "2026-01-05" };

/** Lines of rows on the wire, by the way that the map leads to, and the fields told of. */
async function linesOf(rows: readonly Uint8Array[], units: readonly [TimeUnit, TimeUnit], isSlow: boolean) {
  const writer = new BinaryWriter();
  for (const row of rows) writer.tag(1, WireType.LengthDelimited).bytes(row);
  const layout = { rows: 1, token: 2, member: undefined, others: new Set<number>() };
  const index = indexPage(writer.finish(), layout, rows.length);
  const { transcoder, normaliser } = foreignRows(fills, tickMap(units, isSlow), tickMessage, run, () => {});
  expect(transcoder instanceof RowTranscoder).toBe(!isSlow);
  const steps = transcoder.transcode(index);
  let step = steps.next();
  while (!step.done) step = steps.next();
  const { chunks } = step.value;
  const parts: Uint8Array[] = [];
  if (normaliser === undefined) parts.push(...chunks);
  else for await (const part of normaliser.over(fromArray(chunks))) parts.push(Uint8Array.from(part));
  return Buffer.concat(parts).toString("utf8").split("\n").slice(0, -1);
}

async function* fromArray(chunks: readonly Uint8Array[]) {
  yield* chunks;
}

const most = 2n ** 63n - 1n;
/** Times, those among them that 64-bit nanoseconds and doubles just hold and just do not. */
const time = fc.oneof(
  fc.bigInt({ min: -(2n ** 63n), max: most }),
  fc.bigInt({ min: 0n, max: 4_000_000_000_000n }),
  fc
    .tuple(
      fc.constantFrom(2n ** 53n, ...[3n, 6n, 9n].map((zeros) => most / 10n ** zeros)),
      fc.bigInt({ min: -3n, max: 3n }),
      fc.constantFrom(1n, -1n),
    )
    .map(([bound, more, sign]) => (bound + more) * sign),
  fc.constantFrom(0n, 1n, -1n, -(2n ** 63n)),
);
const known = Object.values(directions);
const row = fc.record({
  at: fc.oneof({ weight: 3, arbitrary: fc.bigInt({ min: 0n, max: 2_000_000_000n }) }, time),
  received: fc.oneof({ weight: 3, arbitrary: fc.bigInt({ min: 0n, max: 2_000_000_000n }) }, time),
  direction: fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(1, 2, -1) },
    fc.constantFrom(...known, 5, 9, -9),
  ),
  maker: fc.boolean(),
  seq: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
  symbol: fc.constantFrom("", "AB/C", 'D"E\\é', "x".repeat(40)),
  price: fc.oneof(
    {
      weight: 6,
      arbitrary: fc.constantFrom("1", "-0.5", "", "15.25", "0", "100", "-12.000000001", "1.50", "10.000"),
    },
    fc.constantFrom(
      "01",
      "-0",
      "-0.00",
      "-0.10",
      "0.0",
      "1e3",
      "abc",
      ".5",
      "5.",
      "-",
      "+1",
      "1.2.3",
      "9".repeat(101),
      " 1",
      "NaN",
    ),
    fc.string({ unit: fc.constantFrom("0", "1", ".", "-", "e"), maxLength: 6 }),
  ),
  quantity: fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: -1_000_000, max: 1_000_000_000 }).map((n) => n / 1e4) },
    fc.constantFrom(0, -0, 1e-6, 1e-7, 123_456_789.125, 1e20, 1e21, Number.NaN, Infinity),
    fc.double(),
  ),
  extra: fc.option(fc.integer({ min: 0, max: 200 }), { nil: undefined, freq: 6 }),
  isReversed: fc.boolean(),
});

test("rows with units and words are the same straight from the wire as by way of JSON, odd and bad ones too", async () => {
  const units = fc.constantFrom<[TimeUnit, TimeUnit]>(["ms", "s"], ["us", "ns"], ["s", "us"]);
  await fc.assert(
    fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 5 }), units, async (rows, unit) => {
      const sent = rows.map(({ extra, isReversed, ...fields }) => {
        const bytes = toBinary(tickMessage, create(tickMessage, fields));
        const more =
          extra === undefined
            ? new Uint8Array(0)
            : new BinaryWriter().tag(99, WireType.Varint).uint32(extra).finish();
        return Buffer.concat(isReversed ? [more, bytes] : [bytes, more]);
      });
      expect(await linesOf(sent, unit, false)).toEqual(await linesOf(sent, unit, true));
    }),
    { numRuns: 150 },
  );
});

test("a page is refused both ways where an enum has more than 32 bits, and a bool is true by any of its bits", async () => {
  const enumBytes = new BinaryWriter()
    .tag(tickFields.direction, WireType.Varint)
    .uint64(2n ** 40n)
    .finish();
  for (const isSlow of [false, true]) {
    await expect(linesOf([enumBytes], ["ms", "s"], isSlow)).rejects.toMatchObject({ code: "malformed_row" });
    const writer = new BinaryWriter().tag(tickFields.direction, WireType.Varint).int32(1);
    const bool = writer
      .tag(tickFields.maker, WireType.Varint)
      .uint64(2n ** 40n)
      .finish();
    const [line = ""] = await linesOf([bool], ["ms", "s"], isSlow);
    expect(JSON.parse(line)).toMatchObject({ side: "BUY", liquidity: "MAKER", ts_event: "0" });
  }
});

test("lines longer than a chunk has room for, among others, are whole", async () => {
  const odd = toBinary(tickMessage, create(tickMessage, { direction: 9, symbol: "\u0001".repeat(90_000) }));
  const usual = toBinary(tickMessage, create(tickMessage, { direction: 1, symbol: "x".repeat(50_000) }));
  const rows = [usual, odd, usual, odd, odd, usual];
  expect(await linesOf(rows, ["ms", "s"], false)).toEqual(await linesOf(rows, ["ms", "s"], true));
});
