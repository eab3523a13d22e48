import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  createFileRegistry,
  fromBinary,
  fromJson,
  type JsonObject,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { expect, test } from "vitest";
import { planMessage } from "../../src/row/wire/json-plan.ts";
import { JsonTranscoder } from "../../src/row/wire/json-transcoder.ts";
import { indexPage } from "../../src/row/wire/page-index.ts";

const set = join(import.meta.dirname, "../fixtures/foreign/corvid/corvid.binpb");
const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(set)));
const trade = registry.getMessage("corvid.tape.v1.Trade")!;

function linesOf(rows: readonly Uint8Array[]): string[] {
  const read = planMessage(trade);
  if ("unreadable" in read) throw new Error("Trade cannot be read");
  const writer = new BinaryWriter();
  for (const row of rows) writer.tag(1, WireType.LengthDelimited).bytes(row);
  const layout = { rows: 1, token: 2, member: undefined, others: new Set<number>() };
  const steps = new JsonTranscoder(read.plan).transcode(indexPage(writer.finish(), layout, rows.length));
  for (;;) {
    const step = steps.next();
    if (!step.done) continue;
    return Buffer.concat(step.value.chunks).toString("utf8").split("\n").slice(0, -1);
  }
}

const text = fc.string({ unit: "binary" }).filter((value) => value.isWellFormed());
const instant = fc.record({
  seconds: fc.bigInt({ min: -62_135_596_800n, max: 253_402_300_799n }),
  nanos: fc.integer({ min: 0, max: 999_999_999 }),
});
const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const row = fc.record({
  at: optional(instant),
  instrument: optional(fc.record({ code: text, exchange: text })),
  direction: fc.constantFrom("DIRECTION_NONE", "DIRECTION_BUY", "DIRECTION_SELL"),
  px: optional(fc.record({ value: text })),
  fee: optional(text),
  fee_currency: optional(text),
  maker: fc.boolean(),
  account: text,
  origin: fc.oneof(
    fc.record({ broker: text }),
    fc.record({ venue_number: fc.integer({ min: 0, max: 2 ** 32 - 1 }) }),
    fc.constant({}),
  ),
  flags: fc.array(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })),
});

test("a row of any message is the JSON that protobuf has for it, with times as nanoseconds", () => {
  fc.assert(
    fc.property(fc.array(row, { minLength: 1, maxLength: 4 }), (rows) => {
      const sent = rows.map(({ at, origin, ...values }) => {
        const json = JSON.parse(JSON.stringify({ ...values, ...origin })) as JsonObject;
        const bytes = toBinary(trade, fromJson(trade, json));
        if (at === undefined) return { bytes, json };
        const stamp = new BinaryWriter()
          .tag(1, WireType.Varint)
          .int64(at.seconds)
          .tag(2, WireType.Varint)
          .int32(at.nanos);
        const more = new BinaryWriter().tag(9, WireType.LengthDelimited).bytes(stamp.finish()).finish();
        // protobuf takes fields in any order
        return {
          bytes: Buffer.concat([more, bytes]),
          json: { ...json, at: `${at.seconds * 1_000_000_000n + BigInt(at.nanos)}` },
        };
      });
      const lines = linesOf(sent.map(({ bytes }) => bytes)).map((line) => JSON.parse(line) as JsonObject);
      const wanted = sent.map(({ json: { at, ...json } }) => ({
        ...(toJson(trade, fromJson(trade, json as JsonObject), {
          useProtoFieldName: true,
          alwaysEmitImplicit: true,
        }) as JsonObject),
        ...(at === undefined ? {} : { at }),
      }));
      expect(lines).toEqual(wanted);
    }),
    { numRuns: 300 },
  );
});

test.each<[string, number[]]>([
  ["a field cut off", [0x5a, 5, 0x61]],
  ["another wire type", [0x58, 1]],
  ["a field twice", [0x5a, 0, 0x5a, 0]],
  ["two of a oneof", [0x8a, 1, 0, 0x90, 1, 1]],
  ["text that is no UTF-8", [0x5a, 1, 0xff]],
  ["a number of more than 32 bits", [0x90, 1, 0x80, 0x80, 0x80, 0x80, 0x10]],
  ["nanoseconds of more than a second", [0x4a, 6, 0x10, 0x80, 0x94, 0xeb, 0xdc, 0x03]],
  ["a Timestamp with a field of another", [0x4a, 2, 0x18, 1]],
])("%s is no row", (_what, bytes) => {
  expect(() => linesOf([Uint8Array.from(bytes)])).toThrow(expect.objectContaining({ code: "malformed_row" }));
});

test("a map and a message that contains itself are reported by name", () => {
  expect(planMessage(registry.getMessage("corvid.tape.v1.Oddity")!)).toEqual({
    unreadable: [
      { path: "labels", what: "a map" },
      { path: "inner", what: "a message that contains itself" },
    ],
  });
});
