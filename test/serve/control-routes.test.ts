// @module-tag slow
import { once } from "node:events";
import net from "node:net";
import { fromJson } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  InstanceHealthSchema,
  InstanceSchema,
  ListInstancesResponseSchema,
} from "../../src/gen/example/gateway/v1/instance_service_pb.ts";
import {
  GetStatusResponseSchema,
  ListResourcesResponseSchema,
  QueryResponseSchema,
} from "../../src/gen/example/gateway/v1/runtime_service_pb.ts";
import type { RequestLogEntry } from "../../src/serve/monitoring/request-log.ts";
import { LiveWorld, minute, second } from "../fixtures/served/live-world.ts";

describe("a running instance", () => {
  let world: LiveWorld;
  beforeAll(async () => {
    world = await LiveWorld.open();
  });
  afterAll(async () => world[Symbol.asyncDispose]());

  test.each([
    ["/instances", ListInstancesResponseSchema],
    ["/instances/alpha-1", InstanceSchema],
    ["/instances/alpha-1/health", InstanceHealthSchema],
    ["/runtime/status?instance=alpha-1", GetStatusResponseSchema],
    ["/runtime/resources?instance=alpha-1", ListResourcesResponseSchema],
    ["/runtime/query/resources?instance=alpha-1", QueryResponseSchema],
    ["/runtime/query/accounts?instance=alpha-1", QueryResponseSchema],
    ["/runtime/query/accounts/main?instance=alpha-1", QueryResponseSchema],
    ["/runtime/query/portfolios?instance=alpha-1", QueryResponseSchema],
    ["/runtime/query/portfolios/core?instance=alpha-1", QueryResponseSchema],
    ["/runtime/query/events?instance=alpha-1", QueryResponseSchema],
    ["/runtime/query/factors?instance=alpha-1", QueryResponseSchema],
  ])("%s is its message in lower camel case", async (path, schema) => {
    const answer = await world.ask(path);
    expect([answer.status, answer.headers.get("content-type")]).toEqual([
      200,
      "application/json; charset=utf-8",
    ]);
    expect(fromJson(schema, answer.json()).$typeName).toBe(schema.typeName);
    expect(answer.text).not.toMatch(/[{,]"[a-z]+_[a-z]\w*":/);
  });

  test.each([
    ["/instances/nobody", 404, "INSTANCE_NOT_FOUND"],
    ["/instances/nobody/health", 404, "INSTANCE_NOT_FOUND"],
    ["/instances/nobody/logs", 404, "INSTANCE_NOT_FOUND"],
    ["/instances/nobody/logs?follow=true", 404, "INSTANCE_NOT_FOUND"],
    ["/instances/nobody/ws", 404, "INSTANCE_NOT_FOUND"],
    ["/instances/alpha-1/ws", 400, "INVALID_ARGUMENT"],
    ["/instances/alpha-1/ws?resource=x", 400, "INVALID_ARGUMENT"],
    ["/instances/alpha-1/nothing", 404, "ROUTE_NOT_FOUND"],
    ["/instances/alpha-1/start", 404, "ROUTE_NOT_FOUND"],
    ["/instances/alpha-1/health?deep=1", 400, "INVALID_ARGUMENT"],
    ["/instances/alpha-1/logs?tail=-1", 400, "INVALID_ARGUMENT"],
    ["/instances/alpha-1/logs?tail=1.5", 400, "INVALID_ARGUMENT"],
    ["/instances/alpha-1/logs?tail=ten", 400, "INVALID_ARGUMENT"],
    ["/instances/alpha-1/logs?tail=", 400, "INVALID_ARGUMENT"],
    ["/instances/alpha-1/logs?tail=1&tail=2", 400, "INVALID_ARGUMENT"],
    ["/instances/alpha-1/logs?tail=10001", 413, "LIMIT_EXCEEDED"],
    [`/instances/alpha-1/logs?tail=${"9".repeat(400)}`, 413, "LIMIT_EXCEEDED"],
    ["/instances/alpha-1/logs?follow=yes", 400, "INVALID_ARGUMENT"],
    ["/instances/alpha-1/logs?follow=", 400, "INVALID_ARGUMENT"],
    ["/instances/alpha-1/logs?lines=5", 400, "INVALID_ARGUMENT"],
    ["/runtime/status?instance=", 400, "INVALID_ARGUMENT"],
    ["/runtime/query/accounts", 400, "INVALID_ARGUMENT"],
    ["/runtime/query/accounts?instance=nobody", 404, "INSTANCE_NOT_FOUND"],
    ["/runtime/query/accounts?instance=alpha-1&limit=3", 400, "INVALID_ARGUMENT"],
    ["/runtime/query/account?instance=alpha-1", 404, "RESOURCE_NOT_FOUND"],
    ["/runtime/query/?instance=alpha-1", 404, "RESOURCE_NOT_FOUND"],
    ["/runtime/query/accounts/?instance=alpha-1", 404, "RESOURCE_NOT_FOUND"],
    ["/runtime/query/accounts/other?instance=alpha-1", 404, "RESOURCE_NOT_FOUND"],
    ["/runtime/query/accounts/main/more?instance=alpha-1", 404, "RESOURCE_NOT_FOUND"],
    ["/runtime/query/portfolios/other?instance=alpha-1", 404, "RESOURCE_NOT_FOUND"],
    ["/runtime/query/events/1?instance=alpha-1", 404, "RESOURCE_NOT_FOUND"],
    ["/runtime/query/constructor?instance=alpha-1", 404, "RESOURCE_NOT_FOUND"],
    ["/runtime/query?instance=alpha-1", 404, "ROUTE_NOT_FOUND"],
    ["/runtime?instance=alpha-1", 404, "ROUTE_NOT_FOUND"],
    ["/discovery?x=1", 400, "INVALID_ARGUMENT"],
    ["/metrics?x=1", 400, "INVALID_ARGUMENT"],
    ["/metrics/instances/0", 400, "INVALID_ARGUMENT"],
    ["/metrics/instances/65536", 400, "INVALID_ARGUMENT"],
    ["/metrics/instances/x", 400, "INVALID_ARGUMENT"],
    ["/metrics/instances/9101", 404, "RESOURCE_NOT_FOUND"],
    ["/metrics/instances", 404, "ROUTE_NOT_FOUND"],
  ])("%s is answered %i %s", async (path, status, code) => {
    const answer = await world.ask(path);
    const { error, ...rest } = answer.json();
    expect([answer.status, error.code, rest]).toEqual([status, `ERROR_CODE_${code}`, {}]);
    expect(Object.keys(error).sort()).toEqual(["capability", "code", "hint", "message", "upstreamCode"]);
    expect(answer.text).not.toMatch(/\/work|node_modules|\.ts\b/);
  });

  test.each([
    ["PUT", "/instances/alpha-1"],
    ["DELETE", "/instances"],
    ["POST", "/instances"],
    ["POST", "/doctor"],
    ["PATCH", "/runtime/status?instance=alpha-1"],
    ["POST", "/instances/alpha-1/logs"],
    ["PUT", "/instances/alpha-1/stop"],
    ["POST", "/metrics"],
  ])("%s %s is an unknown route, whatever body comes with it", async (method, path) => {
    for (const init of [
      {},
      { body: "{", headers: { "content-type": "application/json" } },
      { body: "a,b", headers: { "content-type": "text/csv" } },
    ]) {
      const answer = await world.ask(path, { method, ...init });
      expect([answer.status, answer.json().error.code]).toEqual([404, "ERROR_CODE_ROUTE_NOT_FOUND"]);
    }
  });

  test.each([
    ["a JSON body", { body: "{}", headers: { "content-type": "application/json" } }],
    ["a body that is not JSON", { body: "{", headers: { "content-type": "application/json" } }],
    ["a body of any other type", { body: "x", headers: { "content-type": "image/png" } }],
    ["a large body", { body: "x".repeat(100_000) }],
  ])("a lifecycle action with %s is refused and changes nothing", async (_what, init) => {
    const answer = await world.post("/instances/alpha-1/stop", init);
    expect([answer.status, answer.json().error.code]).toEqual([400, "ERROR_CODE_INVALID_ARGUMENT"]);
    expect((await world.ask("/instances/alpha-1")).json().desiredState).toBe("RUNNING");
  });

  test("a lifecycle action on nobody, or with a parameter, is refused", async () => {
    const nobody = await world.post("/instances/nobody/restart");
    expect([nobody.status, nobody.json().error.code]).toEqual([404, "ERROR_CODE_INSTANCE_NOT_FOUND"]);
    const force = await world.post("/instances/alpha-1/stop?force=true");
    expect([force.status, force.json().error.code]).toEqual([400, "ERROR_CODE_INVALID_ARGUMENT"]);
  });

  test("accounts and portfolios add up to the equity that history has", async () => {
    const [account] = (await world.ask("/runtime/query/accounts?instance=alpha-1")).json().accounts.accounts;
    expect(account).toMatchObject({ account: "main", venue: "SIMEX", currency: "USD" });
    const points = (await world.ask("/history/portfolio/equity?instance=alpha-1")).text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(points.map(({ cash, equity }) => [cash, equity])).toContainEqual([account.cash, account.equity]);

    let positions = 0;
    for (let hour = 0; hour < 3; hour += 1) {
      world.pass(7n * minute);
      const { portfolios } = (await world.ask("/runtime/query/portfolios?instance=alpha-1")).json()
        .portfolios;
      const point = points.find(({ equity }) => equity === portfolios[0].equity);
      for (const { quantity, averagePrice, markPrice } of portfolios[0].positions) {
        positions += 1;
        if (point === undefined) continue;
        const close = (Number(averagePrice) - Number(markPrice)) * Number(quantity);
        expect(-close).toBeCloseTo(Number(point.unrealized), 4);
      }
    }
    expect(positions).toBeGreaterThan(0);
  });

  test("events are those of the history, and the project's own read model is JSON", async () => {
    const { events } = (await world.ask("/runtime/query/events?instance=alpha-1")).json();
    const lines = (await world.ask("/history/events?instance=alpha-1")).text.trim().split("\n");
    expect(events.events.map(({ tsEvent, message }: Record<string, string>) => [tsEvent, message])).toEqual(
      lines.map((line) => JSON.parse(line)).map(({ ts_event, message }) => [ts_event, message]),
    );
    const { path, json } = (await world.ask("/runtime/query/factors?instance=alpha-1")).json();
    expect([path, Object.keys(JSON.parse(json)).sort()]).toEqual([
      "factors",
      ["fast_ma", "signal", "slow_ma"],
    ]);
  });
});

test("a run without a first bar has no accounts yet: a reason and a 409, never an empty success", async () => {
  await using world = await LiveWorld.open();
  world.now = world.span.started + 10n * second;
  expect((await world.ask("/runtime/status?instance=alpha-1")).json()).toMatchObject({
    capabilities: { subscriptions: true, accounts: false, portfolios: false, events: true },
    capabilityErrors: [
      { capability: "accounts", reason: "STARTING" },
      { capability: "portfolios", reason: "STARTING" },
    ],
  });
  for (const name of ["accounts", "portfolios"]) {
    const answer = await world.ask(`/runtime/query/${name}?instance=alpha-1`);
    expect([answer.status, answer.json().error]).toMatchObject([
      409,
      { code: "ERROR_CODE_CAPABILITY_UNAVAILABLE", capability: name, hint: expect.stringMatching(/./) },
    ]);
  }
});

test("a stopped instance keeps its catalog; false flags are meant and every other query is a 409", async () => {
  await using world = await LiveWorld.open({ growing: false });
  const status = (await world.ask("/runtime/status?instance=alpha-1")).json();
  expect(status).toMatchObject({
    engine: { state: "STOPPED", runId: world.run.runId },
    capabilities: {
      resources: true,
      history: true,
      lifecycle: true,
      logs: true,
      subscriptions: false,
      accounts: false,
      portfolios: false,
      events: false,
    },
    capabilityErrors: [],
  });
  expect((await world.ask("/runtime/resources?instance=alpha-1")).json().resources.length).toBeGreaterThan(5);
  for (const path of ["accounts", "accounts/main", "portfolios", "events", "factors"]) {
    const answer = await world.ask(`/runtime/query/${path}?instance=alpha-1`);
    expect([path, answer.status, answer.json().error.code]).toEqual([
      path,
      409,
      "ERROR_CODE_CAPABILITY_UNAVAILABLE",
    ]);
  }
  const upgrade = await world.ask("/instances/alpha-1/ws");
  expect([upgrade.status, upgrade.json().error]).toMatchObject([409, { capability: "subscriptions" }]);
});

test("a literal server has the health and the WebSocket of an instance, which the document tells of", async () => {
  await using world = await LiveWorld.open({ serve: { literal: true } });
  for (const path of [
    "/instances/alpha-1/health",
    "/instances/alpha-1/logs",
    "/discovery",
    "/metrics",
    "/runtime/status?instance=alpha-1",
  ]) {
    expect([path, (await world.ask(path)).status]).toEqual([path, 200]);
  }
  using client = await world.connect();
  client.subscribe("fills.SIMEX.BTC-PERP");
  await client.until((frame) => frame.subscribed !== undefined);
});

describe("following a log", () => {
  const lineReader = async (response: Response) => {
    const lines: string[] = [];
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    return {
      reader,
      /** The next line, or undefined when the answer ended whole. */
      next: async (): Promise<string | undefined> => {
        while (lines.length === 0) {
          const { done, value } = await reader.read();
          if (done) return undefined;
          const parts = (rest + value).split("\n");
          rest = parts.pop()!;
          lines.push(...parts);
        }
        return lines.shift();
      },
    };
  };

  test("gives the last lines, then new ones as they come, and ends whole with the server", async () => {
    const log: RequestLogEntry[] = [];
    await using world = await LiveWorld.open({ serve: { onRequest: (entry) => log.push(entry) } });
    const response = await fetch(`${world.server.url}/instances/alpha-1/logs?follow=true&tail=2`);
    expect([response.status, response.headers.get("content-type")]).toEqual([
      200,
      "text/plain; charset=utf-8",
    ]);
    const { next } = await lineReader(response);
    const before = [await next(), await next()];
    expect((await world.ask("/instances/alpha-1/logs?tail=2")).text.trim().split("\n")).toEqual(before);
    await world.post("/instances/alpha-1/stop");
    world.pass(minute);
    const texts = [];
    while (texts.at(-1) !== "process stopped") texts.push((await next())!.slice(36));
    expect(texts.slice(-3)).toEqual(["stop accepted", `run ${world.run.runId} stopped`, "process stopped"]);
    await world.server.close();
    expect(await next()).toBeUndefined();
    expect(log.filter(({ path }) => path.endsWith("/logs")).map(({ ending }) => ending)).toEqual([
      "whole",
      "whole",
    ]);
  });

  test("ends whole with a server that drains, which waits no longer for it", async () => {
    await using world = await LiveWorld.open();
    const response = await fetch(`${world.server.url}/instances/alpha-1/logs?follow=true&tail=1`);
    const { next } = await lineReader(response);
    await next();
    expect(await world.server.drain(20_000)).toBe(0);
    expect(await next()).toBeUndefined();
  });

  test("ends with its client", async () => {
    const log: RequestLogEntry[] = [];
    let noticed: () => void = () => {};
    const left = new Promise<void>((resolve) => {
      noticed = resolve;
    });
    await using world = await LiveWorld.open({
      serve: {
        onRequest: (entry) => {
          log.push(entry);
          noticed();
        },
      },
    });
    const response = await fetch(`${world.server.url}/instances/alpha-1/logs?follow=true&tail=1`);
    const { next, reader } = await lineReader(response);
    await next();
    await reader.cancel();
    await left;
    expect(log.map(({ ending }) => ending)).toEqual(["left"]);
  });

  test("is for sixty-four clients at once; the next is told when to ask again", async () => {
    await using world = await LiveWorld.open({ rows: 1000 });
    const url = `${world.server.url}/instances/alpha-1/logs?follow=true`;
    const followers = await Promise.all(Array.from({ length: 64 }, () => fetch(url)));
    const refused = await fetch(url);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "1"]);
    expect((await world.ask("/instances/alpha-1/logs")).status).toBe(200);
    await Promise.all(followers.map(({ body }) => body!.cancel()));
  });

  test("answers at once where there is no line yet", async () => {
    await using world = await LiveWorld.open();
    world.now = world.span.started - minute;
    const response = await fetch(`${world.server.url}/instances/alpha-1/logs?follow=true`);
    expect(response.status).toBe(200);
    const { next } = await lineReader(response);
    world.pass(2n * minute);
    expect(await next()).toMatch(/^2024-01-01T00:00:00\.\d{9}Z INFO \w+\.\w+ /);
  });
});

test("a token is wanted on every route of these planes, on upgrades too", async () => {
  await using world = await LiveWorld.open({ serve: { token: "s3cret" } });
  const origin = new URL(world.server.url).origin;
  const urls = [
    "/doctor",
    "/instances",
    "/instances/alpha-1",
    "/instances/alpha-1/health",
    "/instances/alpha-1/logs",
    "/instances/alpha-1/ws",
    "/runtime/status?instance=alpha-1",
    "/runtime/resources?instance=alpha-1",
    "/runtime/query/accounts?instance=alpha-1",
    "/discovery",
    "/metrics",
    "/metrics/instances/9100",
  ].map((path) => world.server.url + path);
  for (const url of [
    ...urls,
    `${origin}/metrics`,
    `${origin}/discovery`,
    `${origin}/metrics/instances/9100`,
  ]) {
    const response = await fetch(url);
    expect([
      url,
      response.status,
      ((await response.json()) as { error: { code: string } }).error.code,
    ]).toEqual([url, 401, "ERROR_CODE_UNAUTHENTICATED"]);
  }
  const stop = await world.post("/instances/alpha-1/stop");
  expect(stop.status).toBe(401);
  await expect(world.connect()).rejects.toThrow(/refused/);
  using client = await world.connect(undefined, { authorization: "Bearer s3cret" });
  client.subscribe("nothing");
  expect((await client.next()).error.error.code).toBe("ERROR_CODE_RESOURCE_NOT_FOUND");
});

test("a client that offers another protocol with its request is answered as usual", async () => {
  await using world = await LiveWorld.open({ rows: 500 });
  const answer = await upgrade(world, "/api/v1/health", { protocol: "h2c" });
  expect(answer).toMatch(/^HTTP\/1.1 200 /);
  expect(answer).toContain("SERVING");
});

/** Asks for an upgrade over a bare socket and gives what the server answered before it closed the connection. */
async function upgrade(
  world: LiveWorld,
  path: string,
  { protocol = "websocket", method = "GET" } = {},
): Promise<string> {
  const socket = net.connect(world.server.port, "127.0.0.1");
  socket.write(
    `${method} ${path} HTTP/1.1\r\nhost: test\r\nconnection: upgrade, close\r\nupgrade: ${protocol}\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
  );
  const parts: Buffer[] = [];
  socket.on("data", (part) => parts.push(part));
  await once(socket, "close");
  return Buffer.concat(parts).toString();
}

test.each([
  ["/api/v1/health", 400, "INVALID_ARGUMENT"],
  ["/api/v1/history/fills?instance=alpha-1", 400, "invalid_argument"],
  ["/api/v1/nothing", 404, "ROUTE_NOT_FOUND"],
  ["/api/v1/instances/nobody/ws", 404, "INSTANCE_NOT_FOUND"],
  ["/api/v1/instances/%zz/ws", 400, "INVALID_ARGUMENT"],
])("an upgrade of %s is refused with %i, and the connection closed", async (path, status, code) => {
  await using world = await LiveWorld.open({ rows: 500 });
  const answer = await upgrade(world, path);
  expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  expect(answer).toContain(code);
});

test.each([
  ["HEAD", 400],
  ["POST", 404],
  ["OPTIONS", 404],
])("an upgrade by %s is refused with %i, and the connection closed", async (method, status) => {
  await using world = await LiveWorld.open({ rows: 500 });
  const answer = await upgrade(world, "/api/v1/instances/alpha-1/ws", { method });
  expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
});
