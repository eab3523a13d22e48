import type { Socket } from "node:net";
import { expect, test } from "vitest";
import { openGateway } from "../../src/gateway/open-gateway.ts";
import { serveHttp } from "../fixtures/source/gateway-scripted-server.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";

// a look that goes over the old connection meets the same node behind a balancer; a cache may answer where it is let
test("what is asked after reconnecting goes over another connection, and no request lets a cache answer", async () => {
  const sockets: Socket[] = [];
  const caching = new Set<string | undefined>();
  await using server = await serveHttp((request, response) => {
    sockets.push(request.socket);
    caching.add(request.headers["cache-control"]);
    response.writeHead(200, { "content-type": "application/json" });
    response.end('{"instances":[]}');
  });
  await using gateway = openGateway({ baseUrl: `${server.url}/api/v1`, retry: quickRetry() }, "rest");
  // the connection that was made first may still be given back while the second request begins
  for (let i = 0; i < 5; i++) await gateway.instances();
  const before = new Set(sockets);
  expect(before.size).toBeLessThan(5);
  gateway.reconnect?.();
  await gateway.instances();
  expect(before.has(sockets.at(-1)!)).toBe(false);
  expect([...caching]).toEqual(["no-cache"]);
});

test("what is under way when it reconnects comes to its end", async () => {
  const begun = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  await using server = await serveHttp(async (_, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    begun.resolve();
    await release.promise;
    response.end('{"instances":[]}');
  });
  await using gateway = openGateway(
    { baseUrl: `${server.url}/api/v1`, retry: quickRetry({ retries: 0 }) },
    "rest",
  );
  const answer = gateway.instances();
  await begun.promise;
  gateway.reconnect?.();
  release.resolve();
  expect(await answer).toEqual([]);
});
