import { gzipSync, zstdCompressSync } from "node:zlib";
import type { Dispatcher } from "undici";
import { expect, it } from "vitest";
import { probe } from "../../src/extract/plan/table-asks.ts";
import { AnswerBody } from "../../src/gateway/http/answer.ts";
import { openGateway } from "../../src/gateway/open-gateway.ts";
import { loadProfile } from "../../src/gateway/profile/load-profile.ts";
import { openRestGateway } from "../../src/gateway/rest/rest-gateway.ts";
import { Pieces } from "../../src/model/pieces.ts";
import { tableNamed } from "../../src/model/profile/table.ts";
import { retryPolicy } from "../../src/model/retry/retry-policy.ts";
import { serveHttp } from "../fixtures/source/gateway-scripted-server.ts";
import { processorMs } from "../fixtures/source/longest-turn.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";

const blank = Buffer.alloc(64 << 20, "\n");

it.each([
  ["gzip", Buffer.concat(Array<Buffer>(16).fill(gzipSync(blank)))],
  ["zstd", zstdCompressSync(blank)],
])(
  "an answer of blank lines in %s ends when there are too many, wherever its rows may begin",
  async (coding, body) => {
    await using server = await serveHttp((_request, response) => {
      response
        .writeHead(200, { "content-type": "application/x-ndjson", "content-encoding": coding })
        .end(body);
    });
    const options = { baseUrl: server.url, retry: quickRetry({ retries: 0 }), compressed: true };
    await using plain = openRestGateway(options);
    await using described = openGateway({ ...options, profile: await loadProfile("default") }, "rest");
    const asks = {
      run: { instanceId: "a", runId: "r" },
      table: tableNamed("fills"),
      retry: retryPolicy({ retries: 0 }),
      signal: new AbortController().signal,
    };
    const spent = await processorMs(async () => {
      for (const source of [plain, described]) {
        await expect(probe({ ...asks, source }, { from: 0n, to: 1n })).rejects.toMatchObject({
          code: "malformed_row",
          message: "an answer has more than 100000 blank lines besides its 0 rows",
        });
      }
    });
    expect(spent).toBeLessThan(3000);
  },
);

it("chunks of a byte are counted for what holding them costs", async () => {
  let paused = 0;
  let resumed = 0;
  const controller = { pause: () => paused++, resume: () => resumed++, abort: () => undefined };
  const body = new AnswerBody(controller as unknown as Dispatcher.DispatchController);
  for (let i = 0; i < 5000; i++) body.push(Buffer.of(i % 256));
  expect(paused).toBeGreaterThan(0);
  const read: number[] = [];
  for (let i = 0; i < 5000; i++) read.push((await body.next()).value![0]!);
  expect(read).toEqual(Array.from({ length: 5000 }, (_, i) => i % 256));
  expect(resumed).toBeGreaterThan(0);
});

it("pieces of any length come together in their order", () => {
  const pieces = new Pieces();
  const lengths = [0, 1, 3, 16_383, 16_384, 1, 70_000, 2, 65_536, 16_383, 16_383, 16_383, 16_383, 5];
  for (let round = 0; round < 2; round++) {
    const all = lengths.map((length, i) => Buffer.alloc(length, i + round));
    for (const piece of all) pieces.add(piece);
    const whole = Buffer.concat(all);
    expect(pieces.bytes).toBe(whole.byteLength);
    expect(pieces.take().equals(whole)).toBe(true);
    expect(pieces.take().byteLength).toBe(0);
  }
});
