// @module-tag slow
import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import type { GatewayOptions } from "../../src/gateway/options.ts";
import { openRpcGateway } from "../../src/gateway/rpc/rpc-gateway.ts";
import type { RunvaultError } from "../../src/model/error.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";
import {
  fail,
  pageOf,
  protoType,
  scriptedRun,
  send,
  servePages,
} from "../fixtures/source/rpc-scripted-pages.ts";

type Script = Parameters<typeof servePages>[0];
type Gateway = ReturnType<typeof openRpcGateway>;

const request = { ...scriptedRun, table: "fills" } as const;

/** The page asked for, of a table of so many rows, whose tokens are places in it. */
function pageAt({ pageSize, pageToken }: Parameters<Script>[0], tableRows: number, padding = 0): Uint8Array {
  const from = Number(pageToken || "0");
  const to = Math.min(from + pageSize, tableRows);
  const times = Array.from({ length: to - from }, (_, i) => from + i + 1);
  return pageOf(times, to < tableRows ? `${to}` : "", padding);
}

async function countRows(gateway: Gateway, limit?: number): Promise<number> {
  let lines = 0;
  for await (const chunk of gateway.rows({ ...request, limit })) {
    for (const byte of chunk) if (byte === 10) lines += 1;
  }
  return lines;
}

/** Reads the table from a gateway by script twice, so that what it learnt shows. */
async function readTwice(script: Script, options: Partial<GatewayOptions> = {}) {
  await using server = await servePages(script);
  await using gateway = openRpcGateway({
    baseUrl: server.url,
    retry: quickRetry({ retries: 0 }),
    ...options,
  });
  const first = await countRows(gateway);
  const between = server.asked.length;
  const second = await countRows(gateway);
  const sizes = server.asked.map(({ pageSize }) => pageSize);
  return { rows: [first, second], first: sizes.slice(0, between), second: sizes.slice(between) };
}

describe.each([
  [Code.InvalidArgument, "invalid_argument"],
  [Code.InvalidArgument, undefined],
  [Code.OutOfRange, undefined],
])("a gateway that refuses larger pages with code %i and %s", (code, history) => {
  test.each([1000, 1500, 3999])("is read with pages of up to %i rows", async (most) => {
    const read = await readTwice((asked, response) =>
      asked.pageSize > most ? fail(response, code, history) : send(response, pageAt(asked, 8000)),
    );
    expect(read.rows).toEqual([8000, 8000]);
    // some requests find out how much is taken, and from then on none is refused
    const refused = read.first.filter((size) => size > most);
    expect(refused.length).toBeLessThan(8);
    expect(read.second.filter((size) => size > most)).toEqual([]);
    expect(read.second.length).toBeLessThanOrEqual(Math.ceil(8000 / (most / 1.25)) + 1);
  });
});

test("a token that is refused at every size is a cut, and teaches nothing about sizes", async () => {
  let expired = true;
  await using server = await servePages((asked, response) => {
    if (expired && asked.pageToken !== "") fail(response, Code.InvalidArgument, "invalid_argument");
    else send(response, pageAt(asked, 8000));
  });
  await using gateway = openRpcGateway({ baseUrl: server.url, retry: quickRetry({ retries: 3 }) });
  const error = await countRows(gateway).catch((thrown: RunvaultError) => thrown.code);
  expect([error, gateway.stats.retries]).toEqual(["stream_cut", 1]);
  expect(server.asked.map(({ pageSize }) => pageSize)).toEqual([1000, 4000, 1000]);
  expired = false;
  expect(await countRows(gateway)).toBe(8000);
  expect(server.asked.slice(3).map(({ pageSize }) => pageSize)).toEqual([1000, 4000, 16_000]);
});

test("a request that is refused at every size is refused by name, at once", async () => {
  await using server = await servePages((_asked, response) => fail(response, Code.InvalidArgument));
  await using gateway = openRpcGateway({ baseUrl: server.url, retry: quickRetry({ retries: 3 }) });
  const error = await countRows(gateway).catch((thrown: RunvaultError) => thrown.code);
  expect([error, server.asked.length]).toEqual(["refused", 1]);
});

test("a few rows that were asked for alone do not make pages small", async () => {
  await using server = await servePages((asked, response) =>
    asked.pageSize > 800 ? fail(response, Code.InvalidArgument) : send(response, pageAt(asked, 8000)),
  );
  await using gateway = openRpcGateway({ baseUrl: server.url, retry: quickRetry({ retries: 0 }) });
  expect(await countRows(gateway, 2)).toBe(2);
  expect(await countRows(gateway)).toBe(8000);
  expect(server.asked.at(-2)?.pageSize).toBeGreaterThan(600);
});

test("pages that are too slow are asked for by half, and the next ones are hardly larger", async () => {
  // a page of more than 800 rows never ends
  const read = await readTwice(
    (asked, response) => {
      const page = pageAt(asked, 2000);
      if (asked.pageSize <= 800) return send(response, page);
      response.writeHead(200, { ...protoType, "content-length": page.length });
      response.write(page.subarray(0, page.length - 1));
    },
    { retry: quickRetry({ retries: 2 }), documentTimeoutMs: 2000 },
  );
  expect(read.rows).toEqual([2000, 2000]);
  expect(read.first).toEqual([1000, 500, 516, 533, 550]);
  expect(read.second[0]).toBe(568);
});

test("a page that never comes is a timeout after as many attempts as any other", async () => {
  await using server = await servePages((_asked, response) => {
    response.writeHead(200, protoType);
    response.write(pageOf([1]));
  });
  await using gateway = openRpcGateway({
    baseUrl: server.url,
    retry: quickRetry({ retries: 2 }),
    documentTimeoutMs: 300,
  });
  const error = await countRows(gateway).catch((thrown: RunvaultError) => thrown.code);
  expect(error).toBe("timeout");
  expect(server.asked.map(({ pageSize }) => pageSize)).toEqual([1000, 500, 250]);
});
