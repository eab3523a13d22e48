// @module-tag slow
import { Code, createClient } from "@connectrpc/connect";
import { compressionGzip, createConnectTransport } from "@connectrpc/connect-node";
import { afterEach, expect, test } from "vitest";
import { GatewayService } from "../../src/gen/example/gateway/v1/gateway_service_pb.ts";
import { InstanceService } from "../../src/gen/example/gateway/v1/instance_service_pb.ts";
import { HistoryService } from "../../src/gen/example/history/v1/history_service_pb.ts";
import { tables } from "../../src/model/profile/table.ts";
import type { RequestLogEntry } from "../../src/serve/monitoring/request-log.ts";
import { type Served, type ServeOptions, serve } from "../../src/serve/server.ts";
import {
  dialects,
  failure,
  historyClient,
  lineOf,
  type Place,
  pagesOf,
  transportTo,
} from "../fixtures/served/rpc-clients.ts";
import { controlOf } from "../fixtures/served/serve-control.ts";
import { ArraySource, fills, rowOf } from "../fixtures/served/serve-source.ts";

const open: Served[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((served) => served.close()));
});

async function served(source: ArraySource, options: Partial<ServeOptions> = {}): Promise<Served> {
  const server = await serve({ source, host: "127.0.0.1", port: 0, ...options });
  open.push(server);
  return server;
}

const everyTable = () =>
  new ArraySource(
    Object.fromEntries(
      tables.map(({ name }) => [name, [1, 2, 3].map((seq) => rowOf(name, { seq, ts_event: `${5 + seq}` }))]),
    ),
  );

const control = controlOf({ instanceId: "alpha", currentRunId: "r1" });

const everywhere = dialects.flatMap((dialect) =>
  (["origin", "base"] as Place[]).map((place) => ({ dialect, place })),
);

test.each(everywhere)("every HistoryService method answers in $dialect at the $place", async (settings) => {
  const source = everyTable();
  source.document = async (_run, kind) =>
    Buffer.from(
      kind === "summary"
        ? '{"run_id":"r1","instance_id":"alpha","status":"FINISHED","orders":"9007199254740993","fees":"1.5"}'
        : '{"resources":[{"resource_key":"k","table":"fills","symbol":"BTC"}]}',
    );
  const client = historyClient(
    await served(source, { about: { name: "n", version: "1", kind: "array" } }),
    settings,
  );
  const run = { instanceId: "alpha", runId: "r1" };
  expect(await client.getDatasource({})).toMatchObject({
    name: "n",
    kind: "array",
    available: true,
    tables: tables.map(({ name }) => name),
  });
  expect((await client.listInstances({})).instances).toMatchObject([
    { instanceId: "alpha", runIds: ["r0", "r1"], latestRunId: "r1" },
  ]);
  expect((await client.listRuns({ instanceId: "alpha" })).runs[1]).toMatchObject({
    runId: "r1",
    tsStarted: 9_007_199_254_740_993n,
    final: true,
    storageVersion: "v7",
  });
  expect((await client.listResources(run)).resources).toMatchObject([{ resourceKey: "k", symbol: "BTC" }]);
  const facts = await client.getStorageFacts({ ...run, from: 7n });
  expect(facts.tables[0]).toMatchObject({ table: "fills", rows: 2n, minTsEvent: 7n, maxTsEvent: 8n });
  expect((await client.getSummary(run)).summary).toMatchObject({
    orders: 9_007_199_254_740_993n,
    fees: "1.5",
  });
  const selection = run;
  const recent = await client.listRecentFills({ selection, limit: 2 });
  expect(recent.fills.map((row) => lineOf("fills", row))).toEqual(source.lines("fills").slice(1));
  const series = await client.listPortfolioSeries({ selection });
  expect(series.rows.map((row) => lineOf("equity", row))).toEqual(source.lines("equity"));
  const metrics = await client.listPortfolioMetrics({ selection });
  expect(metrics.rows.map((row) => lineOf("metrics", row))).toEqual(source.lines("metrics"));
  const bars = await client.listMarketBars({ selection, pageSize: 2 });
  expect(bars.rows.map((row) => lineOf("bars", row))).toEqual(source.lines("bars").slice(0, 2));
  expect((await client.listMarketBars({ selection, pageToken: bars.nextPageToken })).rows).toHaveLength(1);
  for (const { name } of tables) {
    expect((await pagesOf(client, name, { pageSize: 2 })).map((page) => page.length)).toEqual([2, 1]);
    expect((await pagesOf(client, name)).flat()).toEqual(source.lines(name));
  }
});

test("an empty run_id is the latest run, and current is just an unknown run", async () => {
  const log: RequestLogEntry[] = [];
  const client = historyClient(await served(everyTable(), { onRequest: (entry) => log.push(entry) }));
  const { rows } = await client.previewTable({ table: "fills", selection: { instanceId: "alpha" } });
  expect(rows).toHaveLength(3);
  expect(log[0]).toMatchObject({ run: "r1", rows: 3 });
  const current = { instanceId: "alpha", runId: "current" };
  const missing = { code: Code.NotFound, history: "run_not_found" };
  expect(await failure(client.getSummary(current))).toEqual(missing);
  expect(await failure(client.getStorageFacts(current))).toEqual(missing);
  expect(await failure(client.previewTable({ table: "fills", selection: current }))).toEqual(missing);
});

test("a document in a gateway's own words is not answered as a message of zeros", async () => {
  const source = everyTable();
  const client = historyClient(await served(source));
  const run = { instanceId: "alpha", runId: "r1" };
  const own = { code: Code.FailedPrecondition, history: "history_unavailable" };
  source.document = async (_run, kind) =>
    Buffer.from(kind === "summary" ? '{"executionId":"r1","status":"done"}' : '{"feeds":[{"key":"k"}]}');
  expect(await failure(client.getSummary(run))).toEqual(own);
  expect(await failure(client.listResources(run))).toEqual(own);
  source.document = async (_run, kind) => Buffer.from(kind === "summary" ? '{"run_id":"r1"}' : "{}");
  expect((await client.getSummary(run)).summary).toMatchObject({ runId: "r1", fills: 0n });
  expect((await client.listResources(run)).resources).toEqual([]);
  // one of the contract need not name its run
  source.document = async () => Buffer.from('{"fills":"3"}');
  expect((await client.getSummary(run)).summary).toMatchObject({ runId: "", fills: 3n });
});

test("a listing of the latest run stays with its run when a newer one begins", async () => {
  const source = new ArraySource({ fills: fills(4) }, ["r0", "r1"]);
  const server = await served(source);
  const client = historyClient(server);
  const request = { table: "fills", selection: { instanceId: "alpha" }, pageSize: 2 };
  const first = await client.previewTable(request);
  (source as { runIds: readonly string[] }).runIds = ["r0", "r1", "r2"];
  const second = await client.previewTable({ ...request, pageToken: first.nextPageToken });
  expect(second.rows.map(({ row }) => lineOf("fills", row.value))).toEqual(source.lines("fills").slice(2));
});

const invalid = { code: Code.InvalidArgument, history: "invalid_argument" };
const alpha = { instanceId: "alpha", runId: "r1" };

test.each<[string, (client: ReturnType<typeof historyClient>) => Promise<unknown>, object]>([
  ["no instance", (c) => c.previewTable({ table: "fills" }), invalid],
  ["no instance for facts", (c) => c.getStorageFacts({}), invalid],
  ["no table", (c) => c.previewTable({ selection: alpha }), invalid],
  ["unknown table", (c) => c.previewTable({ table: "fillls", selection: alpha }), invalid],
  ["swapped bounds", (c) => c.listMarketBars({ selection: { ...alpha, from: 2n, to: 1n } }), invalid],
  ["foreign filter", (c) => c.listMarketBars({ selection: { ...alpha, account: "a" } }), invalid],
  [
    "foreign filter on equity",
    (c) => c.listPortfolioSeries({ selection: { ...alpha, symbol: "a" } }),
    invalid,
  ],
  ["odd token", (c) => c.listMarketBars({ selection: alpha, pageToken: "??" }), invalid],
  [
    "unknown run",
    (c) => c.listMarketBars({ selection: { ...alpha, runId: "r9" } }),
    { code: Code.NotFound, history: "run_not_found" },
  ],
  [
    "unknown instance",
    (c) => c.listRuns({ instanceId: "beta" }),
    { code: Code.NotFound, history: "instance_not_found" },
  ],
  [
    "absent table",
    (c) => c.previewTable({ table: "orders", selection: alpha }),
    { code: Code.FailedPrecondition, history: "history_unavailable" },
  ],
  ["no resources", (c) => c.listResources(alpha), { code: Code.NotFound, history: "route_not_found" }],
  [
    "too many recent fills",
    (c) => c.listRecentFills({ selection: alpha, limit: 10_001 }),
    { code: Code.OutOfRange, history: "limit_exceeded" },
  ],
])("%s is refused with the nearest Connect code and the history code", async (_name, ask, expected) => {
  const server = await served(new ArraySource({ fills: fills(1), bars: [], equity: [] }));
  for (const dialect of dialects) {
    expect(await failure(ask(historyClient(server, { dialect })))).toEqual(expected);
  }
});

test("a field that no message has is refused, in binary and in JSON", async () => {
  const server = await served(everyTable());
  const url = `${new URL(server.url).origin}/example.history.v1.HistoryService/PreviewTable`;
  const ask = async (type: string, body: string | Uint8Array<ArrayBuffer>) => {
    const response = await fetch(url, { method: "POST", headers: { "content-type": type }, body });
    return [response.status, ((await response.json()) as { code: string }).code];
  };
  const misspelt = JSON.stringify({ table: "fills", selection: { instanceId: "alpha", symbool: "BTC" } });
  expect(await ask("application/json", misspelt)).toEqual([400, "invalid_argument"]);
  // table "fills", selection { instance_id "alpha", field 77 = 1 }
  const selection = Buffer.concat([Buffer.from("\x0a\x05alpha"), Buffer.of(0xe8, 0x04, 0x01)]);
  const bytes = Buffer.concat([Buffer.from("\x0a\x05fills"), Buffer.of(0x12, selection.length), selection]);
  expect(await ask("application/proto", bytes)).toEqual([400, "invalid_argument"]);
});

test("a text that is no JSON is refused wherever it is broken, within a character, too", async () => {
  const errors: string[] = [];
  const server = await served(everyTable(), { onError: ({ message }) => errors.push(message) });
  const origin = new URL(server.url).origin;
  const ask = async (type: string, text: string, head = Buffer.alloc(0)) => {
    const response = await fetch(`${origin}/example.history.v1.HistoryService/PreviewTable`, {
      method: "POST",
      headers: { "content-type": type },
      body: Buffer.concat([head, Buffer.from(text)]),
    });
    return { status: response.status, body: await response.text() };
  };
  for (const text of [
    String.raw`{"pageSize": "\ud83d"}`,
    String.raw`{"\ud83d": 1}`,
    // V8 quotes ten units to either side of what it did not expect
    ...Array.from({ length: 4 }, (_, n) => `{"a": "${"😀".repeat(12)}"${"x".repeat(n)}${"😀".repeat(12)}"}`),
  ]) {
    const connect = await ask("application/json", text);
    expect([connect.status, JSON.parse(connect.body).code]).toEqual([400, "invalid_argument"]);
    expect(JSON.parse(connect.body).message.isWellFormed()).toBe(true);
    const head = Buffer.alloc(5);
    head.writeUInt32BE(Buffer.byteLength(text), 1);
    const web = await ask("application/grpc-web+json", text, head);
    expect([web.status, web.body]).toEqual([
      200,
      expect.stringContaining(`grpc-status: ${Code.InvalidArgument}`),
    ]);
  }
  expect(errors).toEqual([]);
});

test("a bug of the source is internal and told to the owner of the server, a failed query is not", async () => {
  const source = everyTable();
  const errors: string[] = [];
  const server = await served(source, { onError: ({ code }) => errors.push(code) });
  source.instances = async () => {
    throw new TypeError("undefined is not a function");
  };
  const client = historyClient(server);
  expect(await failure(client.listInstances({}))).toEqual({ code: Code.Internal, history: "internal" });
  expect(errors).toEqual(["internal"]);
  expect((await client.getDatasource({})).available).toBe(false);
  source.failAfterChunks = 0;
  expect(await failure(client.listMarketBars({ selection: alpha }))).toEqual({
    code: Code.Internal,
    history: "history_query_failed",
  });
});

test("a token is wanted on every method, and never let through to one", async () => {
  const server = await served(everyTable(), { token: "s3cret", control });
  for (const dialect of dialects) {
    for (const place of ["origin", "base"] as const) {
      const refused = historyClient(server, { dialect, place, headers: { authorization: "Bearer s3cre" } });
      expect(await failure(refused.listInstances({}))).toEqual({
        code: Code.Unauthenticated,
        history: "unauthenticated",
      });
      const granted = historyClient(server, { dialect, place, headers: { authorization: "Bearer s3cret" } });
      expect((await granted.listInstances({})).instances).toHaveLength(1);
    }
  }
  const response = await fetch(`${new URL(server.url).origin}/example.history.v1.HistoryService/Nothing`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: "{}",
  });
  expect(response.status).toBe(401);
});

test("control services answer what REST answers, and refuse as REST does", async () => {
  const server = await served(everyTable(), {
    control,
    about: { name: "vault", version: "1.2", kind: "array" },
  });
  const gateway = createClient(GatewayService, transportTo(server));
  const instances = createClient(InstanceService, transportTo(server, { place: "base" }));
  expect(await gateway.getInfo({})).toMatchObject({
    name: "vault",
    version: "1.2",
    features: ["rest", "rpc", "history", "websocket", "metrics"],
  });
  expect((await gateway.getHealth({})).status).toBe("SERVING");
  expect(await gateway.runDoctor({})).toMatchObject({ ok: true, checks: [{ ok: true }, { ok: true }] });
  expect((await instances.listInstances({})).instances).toMatchObject([{ instanceId: "alpha" }]);
  expect((await instances.getInstance({ instanceId: "alpha" })).instance).toMatchObject({
    currentRunId: "r1",
  });
  await expect(instances.getInstance({ instanceId: "beta" })).rejects.toMatchObject({ code: Code.NotFound });
  await expect(instances.startInstance({ instanceId: "alpha" })).rejects.toMatchObject({
    code: Code.FailedPrecondition,
  });
});

test("the request log has the selection of paged methods, and each call once before its answer is over", async () => {
  const log: RequestLogEntry[] = [];
  const server = await served(everyTable(), { onRequest: (entry) => log.push(entry) });
  const client = historyClient(server);
  await pagesOf(client, "fills", { pageSize: 2, from: 6n, to: 9n });
  await failure(client.listRuns({ instanceId: "beta" }));
  const common = {
    method: "POST",
    path: "/example.history.v1.HistoryService/PreviewTable",
    status: 200,
    ending: "whole",
    table: "fills",
    instance: "alpha",
    run: "r1",
    from: "6",
    to: "9",
    limit: 2,
  };
  expect(log).toMatchObject([
    { ...common, rows: 2, continued: false },
    { ...common, rows: 1, continued: true },
    { status: 404, path: "/example.history.v1.HistoryService/ListRuns", rows: 0 },
  ]);
  expect(log.every(({ bytes }) => bytes > 0)).toBe(true);
});

test("with rpc alone REST is not there but for health and metrics, with rest alone RPC is not", async () => {
  const rpc = await served(everyTable(), { transports: ["rpc"], control });
  const statusOf = async (server: Served, path: string) => (await fetch(`${server.url}${path}`)).status;
  expect(await statusOf(rpc, "/health")).toBe(200);
  expect(await statusOf(rpc, "/metrics")).toBe(200);
  for (const path of ["/history/instances", "/instances", "/doctor", "/instances/alpha/ws"]) {
    expect(await statusOf(rpc, path)).toBe(404);
  }
  expect((await historyClient(rpc).listInstances({})).instances).toHaveLength(1);
  const rest = await served(everyTable(), { transports: ["rest"] });
  expect(await statusOf(rest, "/history/instances")).toBe(200);
  for (const prefix of [new URL(rest.url).origin, rest.url]) {
    const path = `${prefix}/example.history.v1.HistoryService/ListInstances`;
    const asked = { method: "POST", headers: { "content-type": "application/json" }, body: "{}" };
    expect((await fetch(path, asked)).status).toBe(404);
  }
});

test("a literal server that is to offer RPC offers all of HistoryService", async () => {
  const server = await served(everyTable(), { literal: true, transports: ["rest", "rpc"] });
  expect((await historyClient(server).getStorageFacts(alpha)).tables).toHaveLength(tables.length);
});

test("answers are compressed only where the server was told to and the client accepts it", async () => {
  const ask = async (server: Served, accept: string) => {
    const response = await fetch(
      `${new URL(server.url).origin}/example.history.v1.HistoryService/PreviewTable`,
      {
        method: "POST",
        headers: { "content-type": "application/json", "accept-encoding": accept },
        body: JSON.stringify({ table: "fills", selection: { instanceId: "alpha" } }),
      },
    );
    const { rows } = (await response.json()) as { rows: unknown[] };
    return [response.headers.get("content-encoding"), rows.length];
  };
  const source = new ArraySource({ fills: fills(100) });
  const plain = await served(source);
  const compressing = await served(source, { compress: true });
  expect(await ask(plain, "gzip, br, zstd")).toEqual([null, 100]);
  expect(await ask(compressing, "br, zstd, gzip")).toEqual(["gzip", 100]);
  expect(await ask(compressing, "identity")).toEqual([null, 100]);
  const zipped = createClient(
    HistoryService,
    createConnectTransport({
      baseUrl: plain.url,
      httpVersion: "1.1",
      sendCompression: compressionGzip,
      compressMinBytes: 0,
    }),
  );
  expect((await zipped.listInstances({})).instances).toHaveLength(1);
});
