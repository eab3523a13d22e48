import { create, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import fc from "fast-check";
import { expect, test } from "vitest";
import { openRpcGateway } from "../../src/gateway/rpc/rpc-gateway.ts";
import { PreviewTableResponseSchema } from "../../src/gen/example/history/v1/history_service_pb.ts";
import { tables } from "../../src/model/profile/table.ts";
import { indexPage, pageLayout } from "../../src/row/wire/page-index.ts";
import { rowMessage } from "../../src/row/wire/row-message.ts";
import { RowTranscoder } from "../../src/row/wire/row-transcoder.ts";
import { RowWire } from "../../src/row/wire/row-wire.ts";
import { serve } from "../../src/serve/server.ts";
import { ArraySource, fills } from "../fixtures/served/serve-source.ts";
import { transcoded } from "../fixtures/source/transcoded.ts";

const number = fc.integer({ min: 900, max: 2 ** 29 - 1 });
const field = fc.oneof(
  fc
    .tuple(number, fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }))
    .map(([no, value]) => new BinaryWriter().tag(no, WireType.Varint).uint64(value).finish()),
  fc
    .tuple(number, fc.uint8Array({ maxLength: 40 }))
    .map(([no, value]) => new BinaryWriter().tag(no, WireType.LengthDelimited).bytes(value).finish()),
  fc
    .tuple(number, fc.double())
    .map(([no, value]) => new BinaryWriter().tag(no, WireType.Bit64).double(value).finish()),
  fc
    .tuple(number, fc.integer())
    .map(([no, value]) => new BinaryWriter().tag(no, WireType.Bit32).sfixed32(value).finish()),
);

test.each(tables)("unknown fields of rows of $name go to lines and back onto the wire", (table) => {
  const known = toBinary(
    rowMessage(table),
    create(rowMessage(table), { runId: "r1", instanceId: "alpha", seq: 7n, tsEvent: -5n }),
  );
  const linesOf = (page: Uint8Array) => {
    const index = indexPage(page, pageLayout(table, PreviewTableResponseSchema), 10);
    return Buffer.concat(transcoded(new RowTranscoder(table).transcode(index)).chunks);
  };
  fc.assert(
    fc.property(fc.array(field, { minLength: 1, maxLength: 4 }), (fields) => {
      const sent = new RowWire(table, "preview", 1000);
      sent.appendMessage(Buffer.concat([known, ...fields]));
      const line = linesOf(sent.written());
      const served = new RowWire(table, "preview", 1000);
      expect(served.appendCanonical(line, 0)).toBe(-1);
      served.appendLine(line.subarray(0, -1), "the row");
      expect([served.eventHigh, served.eventLow]).toEqual([2 ** 32 - 1, 2 ** 32 - 5]);
      expect(linesOf(served.written()).toString("utf8")).toBe(line.toString("utf8"));
      // the same bytes, in the order of their numbers
      const bytes = (wire: Uint8Array) => [...wire].sort((a, b) => a - b);
      expect(bytes(served.lastMessage())).toEqual(bytes(sent.lastMessage()));
    }),
    { numRuns: 40 },
  );
});

test("rows among which one drifted are read over RPC, page by page, as they are stored", async () => {
  class Drifted extends ArraySource {
    override async *rows(request: Parameters<ArraySource["rows"]>[0]): AsyncGenerator<Uint8Array> {
      this.chunkBytes = Number.POSITIVE_INFINITY;
      for await (const chunk of super.rows(request)) {
        const text = Buffer.from(chunk).toString("utf8");
        yield Buffer.from(text.replace(/("seq":"4",.*)\}\n/, '$1,"#1000":"wD4B"}\n'));
      }
    }
  }
  await using stack = new AsyncDisposableStack();
  const source = new Drifted({ fills: fills(9) });
  const server = await serve({ source, host: "127.0.0.1", port: 0, maxRowsPerAnswer: 4 });
  stack.defer(() => server.close());
  await using gateway = openRpcGateway({ baseUrl: server.url });
  const parts: Uint8Array[] = [];
  for await (const chunk of gateway.rows({ instanceId: "alpha", runId: "r1", table: "fills" })) {
    parts.push(Buffer.from(chunk));
  }
  const lines = Buffer.concat(parts).toString("utf8").split("\n").slice(0, -1);
  const expected = source.lines("fills");
  expected[3] = expected[3]!.replace(/\}$/, ',"#1000":"wD4B"}');
  expect(lines).toEqual(expected);
});
