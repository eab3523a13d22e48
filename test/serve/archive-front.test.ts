// @module-tag slow
import { connect } from "node:net";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { archiveControl } from "../../src/archive/read/archive-control.ts";
import { openArchiveSource } from "../../src/archive/read/archive-source.ts";
import type { HistorySource } from "../../src/model/source.ts";
import { type Served, type ServeOptions, serve } from "../../src/serve/server.ts";
import { ArchiveUnderTest, worldRun } from "../fixtures/archive/archived-world.ts";
import { historyClient } from "../fixtures/served/rpc-clients.ts";

const { instanceId, runId } = worldRun;
const fills = `/history/fills?instance=${instanceId}&run_id=${runId}`;
let made: ArchiveUnderTest;
let source: HistorySource;
const open: Served[] = [];
beforeAll(async () => {
  made = await ArchiveUnderTest.create(["fills", "bars"]);
  await made.renew();
  source = openArchiveSource(made.archive);
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});
afterAll(async () => {
  await source[Symbol.asyncDispose]();
  await made[Symbol.asyncDispose]();
});

async function served(more: Partial<ServeOptions> = {}): Promise<Served> {
  const control = archiveControl(made.archive, { source, version: "1" });
  const server = await serve({ source, control, host: "127.0.0.1", port: 0, onError: () => {}, ...more });
  open.push(server);
  return server;
}

async function ask(server: Served, path: string, init?: RequestInit) {
  const answer = await fetch(`${server.url}${path}`, init);
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, text, rows: text.trimEnd().split("\n").length };
}

/** The archive, but that rows wait for the gate. */
function gated(): { source: HistorySource; begun: Promise<void>; openGate: () => void } {
  const gate = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const slow: HistorySource = {
    label: source.label,
    instances: () => source.instances(),
    runs: (id) => source.runs(id),
    facts: (run, bounds, signal) => source.facts(run, bounds, signal),
    document: (run, kind) => source.document(run, kind),
    async *rows(request) {
      begun.resolve();
      const stopped = new Promise((_, reject) => {
        request.signal?.addEventListener("abort", () => reject(request.signal?.reason), { once: true });
      });
      await Promise.race([gate.promise, stopped]);
      yield* source.rows(request);
    },
    [Symbol.asyncDispose]: async () => {},
  };
  return { source: slow, begun: begun.promise, openGate: gate.resolve };
}

test("more rows than allowed are refused over REST, whole or by filter, and paged over RPC", async () => {
  const server = await served({ limits: { rows: 10 } });
  for (const path of [fills, `${fills}&limit=11`, `${fills}&symbol=A`]) {
    const { status, text } = await ask(server, path);
    expect([path, status, JSON.parse(text).error.code]).toEqual([path, 413, "limit_exceeded"]);
  }
  expect(await ask(server, `${fills}&limit=10`)).toMatchObject({ status: 200, rows: 10 });
  // as many as there are is not more than allowed, whatever was asked for
  const exact = await served({ limits: { rows: 25 } });
  expect(await ask(exact, `${fills}&limit=1000`)).toMatchObject({ status: 200, rows: 25 });
  const selection = { instanceId, runId };
  expect((await historyClient(server).listRecentFills({ selection })).fills.length).toBe(10);
  const page = await historyClient(server).previewTable({ table: "fills", selection });
  expect([page.rows.length, page.nextPageToken === ""]).toEqual([10, false]);
});

test("more bytes than allowed are refused, or cut where the answer has begun", async () => {
  const server = await served({ limits: { bytes: 100 } });
  expect(await ask(server, fills)).toMatchObject({ status: 413 });
  const ahead = await served({ limits: { bytes: 5000 } });
  expect(await ask(ahead, fills)).toMatchObject({ status: 413 });
  // how much is left behind a bound within a segment, only reading tells
  const all = (await ask(await served(), fills)).text.split("\n");
  const { ts_event: second } = JSON.parse(all[1]!) as { ts_event: string };
  await expect(ask(ahead, `${fills}&from=${second}`)).rejects.toThrow();
  expect(await ask(ahead, `${fills}&limit=5`)).toMatchObject({ status: 200, rows: 5 });
});

test("rows do not go out over HTTP/1.0, where a cut answer is one that has ended", async () => {
  const { port } = await served();
  const socket = connect(port, "127.0.0.1");
  socket.end(`GET /api/v1${fills} HTTP/1.0\r\nhost: localhost\r\n\r\n`);
  const answer = await new Response(socket).text();
  expect(answer).toMatch(/^HTTP\/1\.1 400 /);
  expect(JSON.parse(answer.split("\r\n\r\n")[1]!).error).toMatchObject({
    code: "invalid_argument",
    message: expect.stringContaining("HTTP/1.0"),
  });
});

test("queries beyond those that may run at a time are told to come again", async () => {
  const { source: slow, begun, openGate } = gated();
  const server = await served({ source: slow, limits: { queries: 1 } });
  const first = ask(server, fills);
  await begun;
  const second = await ask(server, fills);
  expect([second.status, second.headers.get("retry-after")]).toEqual([429, "1"]);
  const paged = historyClient(server).previewTable({ table: "fills", selection: { instanceId, runId } });
  expect(await paged.catch((thrown) => ConnectError.from(thrown).code)).toBe(Code.ResourceExhausted);
  expect((await ask(server, "/health")).status).toBe(200);
  openGate();
  expect((await first).rows).toBe(25);
  expect((await ask(server, fills)).rows).toBe(25);
});

test("a query that computes for too long is given up", async () => {
  const server = await served({ source: gated().source, limits: { queryMs: 20 } });
  const { status, text } = await ask(server, fills);
  expect([status, JSON.parse(text).error]).toEqual([
    413,
    { code: "limit_exceeded", message: expect.stringContaining("20 ms") },
  ]);
});

test("pages of the origins named may read answers, refusals among them, and no others", async () => {
  const origin = "https://desk.example";
  const server = await served({ origins: [origin], token: "secret" });
  const preflight = {
    "access-control-request-method": "GET",
    "access-control-request-headers": "authorization",
  };
  const asked = await ask(server, fills, { method: "OPTIONS", headers: { origin, ...preflight } });
  expect([asked.status, asked.headers.get("access-control-allow-origin")]).toEqual([204, origin]);
  expect(asked.headers.get("access-control-allow-headers")).toContain("authorization");
  const refused = await ask(server, fills, { headers: { origin } });
  expect([refused.status, refused.headers.get("access-control-allow-origin")]).toEqual([401, origin]);
  const headers = { origin, authorization: "Bearer secret" };
  const given = await ask(server, fills, { headers });
  expect([given.status, given.headers.get("access-control-allow-origin"), given.rows]).toEqual([
    200,
    origin,
    25,
  ]);
  // rows depend on the coding that is accepted too, where the server compresses, and say how many they are
  const compressing = await served({ origins: [origin], compress: true });
  const rows = await ask(compressing, fills, { headers: { origin } });
  expect(rows.headers.get("vary")).toBe("origin, accept-encoding");
  expect(rows.headers.get("access-control-expose-headers")).toContain("runvault-rows");
  for (const stranger of ["https://desk.example.evil", "null", "http://desk.example"]) {
    const answer = await ask(server, fills, {
      method: "OPTIONS",
      headers: { origin: stranger, ...preflight },
    });
    expect([answer.status, answer.headers.get("access-control-allow-origin")]).toEqual([401, null]);
  }
});

test("caches are told that rows differ by origin and by coding", async () => {
  const origin = "https://desk.example";
  const server = await served({ origins: [origin], compress: true });
  for (const coding of ["identity", "gzip", "zstd"]) {
    const given = await ask(server, fills, { headers: { origin, "accept-encoding": coding } });
    const vary = given.headers.get("vary")?.split(", ");
    expect([given.status, vary]).toEqual([200, expect.arrayContaining(["origin", "accept-encoding"])]);
  }
  const { headers } = await ask(server, fills, { headers: { origin } });
  const count = [...headers.keys()].find((name) => name.startsWith("runvault-"));
  expect(headers.get("access-control-expose-headers")?.split(", ")).toContain(count);
});

test("a server that stops lets answers end, and refuses new ones as out of reach for the moment", async () => {
  const { source: slow, begun, openGate } = gated();
  const server = await served({ source: slow });
  const first = ask(server, fills);
  await begun;
  const drained = server.drain(60_000);
  const refused = await ask(server, fills);
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([502, "1"]);
  const call = await historyClient(server)
    .listInstances({})
    .catch((thrown: unknown) => ConnectError.from(thrown));
  expect(call).toMatchObject({ code: Code.Unavailable, rawMessage: "the server is stopping" });
  openGate();
  expect((await first).rows).toBe(25);
  expect(await drained).toBe(0);
});

test("answers that do not end in time are counted and then cut", async () => {
  const { source: slow, begun } = gated();
  const server = await served({ source: slow });
  const cut = expect(ask(server, fills)).rejects.toThrow();
  await begun;
  expect(await server.drain(10)).toBe(1);
  await server.close();
  await cut;
});

const hostile = [
  "../../../../etc/passwd",
  "..%2f..%2farchive.json",
  "'; DROP TABLE fills; --",
  "' OR 1=1 --",
  "-1",
  "0",
  "1e309",
  "9223372036854775808",
  "99999999999999999999999999",
  "NaN",
  "\u0000",
  "\ud83d\ude00",
  "current",
  "x".repeat(5000),
  "2022-13-45T99:99:99Z",
];
const names = [
  "instance",
  "run_id",
  "from",
  "to",
  "limit",
  "symbol",
  "venue",
  "resource_key",
  "account",
  "nothing",
];

test.each(names)("hostile values of %s change nothing and show nothing", async (name) => {
  const server = await served();
  for (const value of hostile) {
    for (const route of ["/history/fills", "/history/storage", "/history/summary", "/runtime/resources"]) {
      const query = new URLSearchParams({ instance: instanceId, run_id: runId, [name]: value });
      const { status, text } = await ask(server, `${route}?${query}`);
      expect([route, name, value, status < 500]).toEqual([route, name, value, true]);
      expect(text).not.toMatch(/\n\s+at |node_modules|\.ts:\d/);
      expect(text).not.toContain(made.folder);
    }
  }
});

test("hostile ids in paths, and windows the wrong way round, are refused", async () => {
  const server = await served();
  for (const value of hostile) {
    const { status, text } = await ask(server, `/instances/${encodeURIComponent(value)}`);
    expect([value, status >= 400 && status < 500]).toEqual([value, true]);
    expect(text).not.toContain(made.folder);
  }
  expect((await ask(server, `${fills}&from=2&to=1`)).status).toBe(400);
});
