import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { GatewayOptions } from "../../src/gateway/options.ts";
import { openRestGateway } from "../../src/gateway/rest/rest-gateway.ts";
import { openRpcGateway } from "../../src/gateway/rpc/rpc-gateway.ts";
import { RunvaultError } from "../../src/model/error.ts";
import type { HistorySource } from "../../src/model/source.ts";
import { rowsHead, serveRaw } from "../fixtures/source/gateway-scripted-server.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";
import { pageOf, protoType, scriptedRun, servePages } from "../fixtures/source/rpc-scripted-pages.ts";

const leastRate = { bytesPerSecond: 1000, windowMs: 400 };
const line = `{"seq":"1","note":"${"x".repeat(40)}"}\n`;

/** Bytes and error of an answer to which a reader, that may be slow itself, listens. */
async function read(source: HistorySource, readerMs = 0): Promise<{ bytes: number; error?: RunvaultError }> {
  let bytes = 0;
  try {
    for await (const chunk of source.rows({ ...scriptedRun, table: "fills" })) {
      bytes += chunk.byteLength;
      if (readerMs > 0) await sleep(readerMs);
    }
  } catch (thrown) {
    if (!(thrown instanceof RunvaultError)) throw thrown;
    return { bytes, error: thrown };
  }
  return { bytes };
}

/** A server of which so many lines come, one each few milliseconds. */
function dripping(lines: number, everyMs: number) {
  return serveRaw((socket) => {
    socket.write(rowsHead(`Content-Length: ${lines * line.length}`));
    let left = lines;
    const timer = setInterval(() => {
      if (left-- > 0 && !socket.destroyed) socket.write(line);
      else clearInterval(timer);
    }, everyMs);
  });
}

const optionsOf = (baseUrl: string, more: Partial<GatewayOptions> = {}): GatewayOptions => ({
  baseUrl,
  retry: quickRetry({ retries: 3 }),
  ...more,
});

test("rows that come slower than the least rate end with what came, and are not asked for again", async () => {
  await using server = await dripping(1000, 100);
  await using gateway = openRestGateway(optionsOf(server.url, { leastRate }));
  const { bytes, error } = await read(gateway);
  expect(error).toMatchObject({ code: "too_slow", exit: 3, scope: "table" });
  expect(error!.message).toMatch(
    /^rows arrived at \d+ B a second over .* below the 1\.0 kB a second of --min-rate$/,
  );
  expect(bytes).toBeGreaterThan(0);
  expect(server.requests).toHaveLength(1);
});

test("without a least rate a slow answer is an honest one", async () => {
  await using server = await dripping(12, 100);
  await using gateway = openRestGateway(optionsOf(server.url));
  expect(await read(gateway)).toEqual({ bytes: 12 * line.length });
});

test("time in which rows wait for their reader does not count", async () => {
  // soon all of it is there, and the reader takes five windows for it
  const chunks = 20;
  await using server = await dripping(chunks, 2);
  await using gateway = openRestGateway(optionsOf(server.url, { leastRate }));
  expect(await read(gateway, 100)).toEqual({ bytes: chunks * line.length });
});

test("pages are held to it together: each may be over before a window is", async () => {
  const page = (call: number) => Buffer.from(pageOf([call], `t${call}`));
  await using server = await servePages((_request, response, call) => {
    const bytes = page(call);
    response.writeHead(200, { ...protoType, "content-length": bytes.length });
    response.write(bytes.subarray(0, 1));
    setTimeout(() => response.end(bytes.subarray(1)), 100);
  });
  await using gateway = openRpcGateway(
    optionsOf(server.url, { leastRate: { bytesPerSecond: 100_000, windowMs: 400 } }),
  );
  const { bytes, error } = await read(gateway);
  expect(error?.code).toBe("too_slow");
  expect(bytes).toBeGreaterThan(0);
});
