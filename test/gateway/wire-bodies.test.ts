// @module-tag slow
import { expect, test } from "vitest";
import type { Gateway } from "../../src/gateway/gateway.ts";
import { openGateway } from "../../src/gateway/open-gateway.ts";
import { loadProfile } from "../../src/gateway/profile/load-profile.ts";
import type { RowRequest, WireBody } from "../../src/model/source.ts";
import { serve } from "../../src/serve/server.ts";
import { Corvid, corvidProfile } from "../fixtures/foreign/corvid/corvid.ts";
import { judged } from "../fixtures/foreign/foreign-truth.ts";
import { ArraySource, rowsAt } from "../fixtures/source/array-source.ts";
import { serveHttp } from "../fixtures/source/gateway-scripted-server.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";
import { fillsRoute, itemsText, profileOf, rowsOf, run, serveJson } from "../fixtures/source/rest-profile.ts";

/** The bodies that a source of rows told of, beside what came off the wire meanwhile. */
async function heard(gateway: Gateway, request: RowRequest) {
  const bodies: WireBody[] = [];
  const before = gateway.stats.bytes;
  let text = 0;
  for await (const chunk of gateway.rows({ ...request, onBody: (body) => bodies.push(body) }))
    text += chunk.byteLength;
  const bytes = bodies.reduce((sum, body) => sum + body.bytes, 0);
  return { bodies, bytes, text, received: gateway.stats.bytes - before };
}

// a transport that tells of none leaves its rows' text to stand for the wire: a cap of compressed bytes goes unseen
test.each(["rest", "rpc"] as const)(
  "over %s each body of rows is told of as it was on the wire",
  async (transport) => {
    const rows = rowsAt(
      run,
      "fills",
      Array.from({ length: 2500 }, (_, i) => BigInt(i + 1)),
    );
    const source = new ArraySource(run, new Map([["fills", rows]]));
    const server = await serve({ source, host: "127.0.0.1", port: 0, compress: true });
    try {
      await using gateway = openGateway(
        { baseUrl: server.url, compressed: true, retry: quickRetry() },
        transport,
      );
      // where it answers is asked once
      await heard(gateway, { ...run, table: "fills", limit: 1 });
      const { bodies, bytes, text, received } = await heard(gateway, { ...run, table: "fills" });
      expect(bytes).toBe(received);
      expect(bytes).toBeLessThan(text / 2);
      expect(bodies.length === 1).toBe(transport === "rest");
      const small = await heard(gateway, { ...run, table: "fills", pageRows: 300 });
      expect(small.bodies).toHaveLength(transport === "rest" ? 1 : 9);
    } finally {
      await server.close();
    }
  },
);

test("a profile's pages are told of, each of them", async () => {
  const pages = [rowsOf(5), rowsOf(3, 5)].map((rows, i) => itemsText(rows, i === 0 ? { next: "more" } : {}));
  await using server = await serveJson((_, query) => ({ body: pages[query.has("cursor") ? 1 : 0] }));
  const route = fillsRoute({ pages: { by: "cursor", send: "cursor", next: { body: ["next"] } } });
  const profile = profileOf({ tables: { fills: route } });
  await using gateway = openGateway({ baseUrl: server.url, profile, retry: quickRetry() }, "rest");
  const { bodies } = await heard(gateway, { ...run, final: true, table: "fills" });
  const told = bodies.map(({ bytes }) => bytes);
  expect(pages.map((page) => page.length).every((length) => told.includes(length))).toBe(true);
});

test("pages of gRPC are told of as a profile describes them", async () => {
  await using corvid = await Corvid.open();
  await using gateway = openGateway(
    { baseUrl: corvid.url, profile: await loadProfile(corvidProfile), retry: quickRetry() },
    "auto",
  );
  const { bytes, received } = await heard(gateway, { ...judged, table: "fills" });
  expect(bytes).toBeGreaterThan(0);
  expect(bytes).toBeLessThanOrEqual(received);
});

// a reader's own pause must not make an answer look slow, nor a body that is given up look whole
test("a body's time is from its first byte to its last, and one that was not read to its end is not told of", async () => {
  const line = `${rowsOf(1)[0]}\n`;
  await using server = await serveHttp((_, response) => {
    response.writeHead(200, { "content-type": "application/x-ndjson" });
    setTimeout(() => {
      response.write(line);
      setTimeout(() => response.end(line), 40);
    }, 60);
  });
  await using gateway = openGateway({ baseUrl: server.url, retry: quickRetry() }, "rest");
  const begin = performance.now();
  const { bodies } = await heard(gateway, { ...run, table: "fills" });
  const aheadMs = performance.now() - begin - bodies[0]!.ms;
  expect(bodies).toHaveLength(1);
  expect(bodies[0]!.ms).toBeGreaterThan(20);
  expect(aheadMs).toBeGreaterThan(50);
  const left: WireBody[] = [];
  for await (const _ of gateway.rows({ ...run, table: "fills", onBody: (body) => left.push(body) })) break;
  expect(left).toEqual([]);
});
