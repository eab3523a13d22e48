import { once } from "node:events";
import { gzipSync } from "node:zlib";
import { Code } from "@connectrpc/connect";
import { afterEach, expect, test } from "vitest";
import type { RunvaultError } from "../../src/model/error.ts";
import { type Served, serve } from "../../src/serve/server.ts";
import { Http2Session } from "../fixtures/served/http2-client.ts";
import { ArraySource } from "../fixtures/served/serve-source.ts";

const open: Served[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});

const [plain, compressed] = [0, 1];

/** A message as gRPC has it on the wire. */
function envelope(flags: number, message: Buffer): Buffer {
  const head = Buffer.alloc(5, flags);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** Bytes that are no message, and whether they are said to be compressed. */
const bodies: readonly (readonly [string, Buffer, number])[] = [
  ["is no message", Buffer.of(0xff, 0xff, 0xff), plain],
  ["is not compressed as it says", Buffer.of(1, 2, 3), compressed],
  ["ends within what is compressed", gzipSync(Buffer.alloc(100)).subarray(0, 12), compressed],
];
const types = ["grpc", "grpc+json", "grpc-web", "grpc-web+json", "proto", "json"];

test.each(types.flatMap((type) => bodies.map(([what, body, flags]) => [type, what, body, flags] as const)))(
  "a body of %s that %s is the client's fault",
  async (type, _what, body, flags) => {
    const told: RunvaultError[] = [];
    const source = new ArraySource({});
    const server = await serve({ source, host: "127.0.0.1", port: 0, onError: (error) => told.push(error) });
    open.push(server);
    await using client = new Http2Session(server);
    const isGrpc = type.startsWith("grpc");
    const coding = isGrpc ? "grpc-encoding" : "content-encoding";
    const stream = client.request(
      "/example.history.v1.HistoryService/ListRuns",
      {
        ":method": "POST",
        "content-type": `application/${type}`,
        ...(flags === compressed || isGrpc ? { [coding]: "gzip" } : {}),
      },
      false,
    );
    let [text, trailer] = ["", ""];
    stream.on("trailers", (given) => {
      trailer = String(given["grpc-status"] ?? "");
    });
    stream.on("data", (part) => {
      text += part;
    });
    stream.end(isGrpc ? envelope(flags, body) : body);
    await once(stream, "close");
    if (type.startsWith("grpc-web")) expect(text).toContain(`grpc-status: ${Code.InvalidArgument}\r\n`);
    else if (isGrpc) expect(trailer).toBe(String(Code.InvalidArgument));
    else expect(JSON.parse(text).code).toBe("invalid_argument");
    expect(told).toEqual([]);
  },
);
