import type { RequestListener } from "node:http";
import { describe, expect, test } from "vitest";
import type { GatewayOptions } from "../../src/gateway/options.ts";
import { openRestGateway } from "../../src/gateway/rest/rest-gateway.ts";
import { openRpcGateway } from "../../src/gateway/rpc/rpc-gateway.ts";
import type { HistorySource } from "../../src/model/source.ts";
import { serveHttp } from "../fixtures/source/gateway-scripted-server.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";
import { pageOf, protoType, scriptedRun } from "../fixtures/source/rpc-scripted-pages.ts";

/** The longest wait that is done here. */
const capMs = 20;

const days: readonly (readonly [form: string, header: () => string])[] = [
  ["seconds", () => "86400"],
  ["a date", () => new Date(Date.now() + 86_400_000).toUTCString()],
];

async function readRows(gateway: HistorySource, signal: AbortSignal): Promise<unknown> {
  let bytes = 0;
  for await (const chunk of gateway.rows({ ...scriptedRun, table: "fills", signal }))
    bytes += chunk.byteLength;
  return bytes > 0;
}

/** Each way in which a request can be made: which of the requests are refused, by their paths, and what asks. */
const ways: readonly {
  readonly way: string;
  readonly refused: RegExp;
  /** How many such requests pass ahead of those that are refused. */
  readonly after: number;
  readonly open: (options: GatewayOptions) => HistorySource;
  readonly ask: (gateway: HistorySource, signal: AbortSignal) => Promise<unknown>;
  readonly answer: unknown;
}[] = [
  {
    way: "a document over REST",
    refused: /^\/history\/instances/,
    after: 0,
    open: openRestGateway,
    ask: (gateway, signal) => gateway.instances(signal),
    answer: [],
  },
  {
    way: "rows over REST, ahead of their first byte",
    refused: /^\/history\/fills/,
    after: 0,
    open: openRestGateway,
    ask: readRows,
    answer: true,
  },
  {
    way: "the call that finds RPC",
    refused: /\/GetDatasource$/,
    after: 0,
    open: openRpcGateway,
    ask: (gateway, signal) => gateway.instances(signal),
    answer: [],
  },
  {
    way: "a call over RPC",
    refused: /\/ListInstances$/,
    after: 0,
    open: openRpcGateway,
    ask: (gateway, signal) => gateway.instances(signal),
    answer: [],
  },
  {
    way: "the first page over RPC",
    refused: /\/PreviewTable$/,
    after: 0,
    open: openRpcGateway,
    ask: readRows,
    answer: true,
  },
  {
    way: "a later page over RPC",
    refused: /\/PreviewTable$/,
    after: 1,
    open: openRpcGateway,
    ask: readRows,
    answer: true,
  },
];

/** Answers whatever is asked for with as little as there can be: of rows two pages, one each. */
function answering(): RequestListener {
  let pages = 0;
  return (request, response) => {
    const path = request.url ?? "";
    if (path.startsWith("/history/instances")) {
      response.writeHead(200, { "content-type": "application/json" }).end('{"instances":[]}');
    } else if (path.startsWith("/history/fills")) {
      response.writeHead(200, { "content-type": "application/x-ndjson" }).end("{}\n");
    } else if (path.endsWith("/PreviewTable")) {
      pages += 1;
      response.writeHead(200, protoType).end(pages === 1 ? pageOf([1], "more") : pageOf([2]));
    } else {
      // an empty message
      response.writeHead(200, protoType).end();
    }
  };
}

describe.each(days)("a Retry-After of a day, in %s", (_form, header) => {
  test.each(ways)("is capped for $way", async ({ refused, after, open, ask, answer }) => {
    const answers = answering();
    let asked = 0;
    await using server = await serveHttp((request, response) => {
      const refuses = refused.test(request.url ?? "") && ++asked > after && asked <= after + 2;
      if (refuses) response.writeHead(429, { "retry-after": header() }).end();
      else answers(request, response);
    });
    const abort = new AbortController();
    const told: [code: string, delayMs: number][] = [];
    const retry = quickRetry({
      retryAfterMaxMs: capMs,
      onRetry: ({ delayMs, error }) => {
        told.push([error.code, delayMs]);
        // what is not capped is not waited for: the test fails by what was told
        if (delayMs > capMs) abort.abort();
      },
    });
    await using gateway = open({ baseUrl: server.url, retry });
    const answered = await ask(gateway, abort.signal).catch((error: unknown) => error);
    expect(told).toEqual([
      ["rate_limited", capMs],
      ["rate_limited", capMs],
    ]);
    expect(answered).toEqual(answer);
  });
});
