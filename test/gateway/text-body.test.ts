import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openGateway } from "../../src/gateway/open-gateway.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";

const line = '{"run_id":"r","instance_id":"a"}\n';
let sent: Buffer;
let coding: string | undefined;
let asked = 0;
const server = createServer(async (request, response) => {
  asked++;
  const isRows = request.url!.includes("/history/fills");
  response.writeHead(200, {
    "content-type": isRows ? "application/x-ndjson" : "application/json",
    ...(coding === undefined ? {} : { "content-encoding": coding }),
  });
  // the first bytes come one by one
  for (let at = 0; at < 5; at++) {
    response.write(sent.subarray(at, at + 1));
    await new Promise((done) => setImmediate(done));
  }
  response.end(sent.subarray(5));
});
let baseUrl: string;
beforeAll(async () => {
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v1`;
});
afterAll(() => void server.close());

async function ask(what: "rows" | "instances"): Promise<string> {
  await using gateway = openGateway({ baseUrl, retry: quickRetry({ retries: 3 }) }, "rest");
  if (what === "instances") return JSON.stringify(await gateway.instances());
  const parts: Uint8Array[] = [];
  for await (const chunk of gateway.rows({ instanceId: "a", runId: "r", table: "fills" })) parts.push(chunk);
  return Buffer.concat(parts).toString("utf8");
}

// each was asked for again, five times, and then said to be truncated
test.each([
  [
    "compressed twice",
    gzipSync(gzipSync(line)),
    "gzip",
    "1f 8b: it is still gzip after its Content-Encoding (gzip)",
  ],
  ["gzip that nothing says", gzipSync(line), undefined, "1f 8b: it is gzip, but no Content-Encoding"],
  ["zstd that nothing says", zstdCompressSync(line), undefined, "28 b5 2f fd: it is zstd"],
  ["UTF-16 with its mark", Buffer.from(`\ufeff${line}`, "utf16le"), undefined, "ff fe: it is UTF-16"],
  ["UTF-16 without one", Buffer.from(line, "utf16le"), undefined, "7b 00: it is UTF-16"],
  ["UTF-16, the other way round", Buffer.from(line, "utf16le").swap16(), undefined, "00 7b: it is UTF-16"],
])(
  "an answer that is %s is named by its first bytes, and not asked for again",
  async (_, bytes, encoding, says) => {
    sent = bytes;
    coding = encoding;
    for (const what of ["rows", "instances"] as const) {
      asked = 0;
      await expect(ask(what)).rejects.toMatchObject({
        code: "malformed_row",
        message: expect.stringContaining(`the answer begins with the bytes ${says}`),
      });
      expect(asked).toBe(1);
    }
  },
);

// five retries, and no word on what to do
test("an answer that says it is compressed twice is refused at once, with what to have changed", async () => {
  sent = gzipSync(gzipSync(line));
  coding = "gzip, gzip";
  asked = 0;
  await expect(ask("rows")).rejects.toMatchObject({
    code: "not_a_gateway",
    hint: expect.stringContaining("compress answers only once"),
  });
  expect(asked).toBe(1);
});

test.each([
  ["with a mark of UTF-8", `\ufeff${line}`],
  ["of three bytes", "{}\n"],
  ["with blanks ahead", `\n\n${line}`],
])("text %s comes as it is", async (_, text) => {
  sent = Buffer.from(text);
  coding = undefined;
  expect(await ask("rows")).toBe(text);
});
