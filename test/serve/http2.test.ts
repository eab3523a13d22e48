// @module-tag slow
import { once } from "node:events";
import http2 from "node:http2";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import type { RunvaultError } from "../../src/model/error.ts";
import type { RowRequest } from "../../src/model/source.ts";
import type { RequestLogEntry } from "../../src/serve/monitoring/request-log.ts";
import { type Served, type ServeOptions, serve } from "../../src/serve/server.ts";
import {
  frame,
  getHead,
  getHealth,
  Http2Session,
  literal,
  ping,
  preface,
  rawConnection,
  reset,
  settings,
} from "../fixtures/served/http2-client.ts";
import { ArraySource, fills } from "../fixtures/served/serve-source.ts";
import { withFaults } from "../fixtures/served/served-faults.ts";

const open: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one[Symbol.asyncDispose]();
});

async function served(options: Partial<ServeOptions> = {}): Promise<Served> {
  const source = options.source ?? new ArraySource({ fills: fills(1000) });
  const server = await serve({ source, host: "127.0.0.1", port: 0, onError: () => {}, ...options });
  open.push({ [Symbol.asyncDispose]: () => server.close() });
  return server;
}

function session(server: Served): Http2Session {
  const made = new Http2Session(server);
  open.push(made);
  return made;
}

const rows = "/api/v1/history/fills?instance=alpha&run_id=r1";
const health = "/api/v1/health";

/** Rows without end, 1 MiB at a time; counts them. */
class EndlessSource extends ArraySource {
  taken = 0;
  readonly left = Promise.withResolvers<void>();

  constructor() {
    super({ fills: fills(1) });
  }

  override async *rows(_request: RowRequest): AsyncGenerator<Uint8Array> {
    const line = `${this.lines("fills")[0]}\n`;
    const chunk = Buffer.from(line.repeat(Math.ceil(2 ** 20 / line.length)));
    try {
      for (;;) {
        this.taken += 1;
        yield chunk;
      }
    } finally {
      this.left.resolve();
    }
  }
}

test("rows and documents are those of HTTP/1.1, on the same port, and are logged alike", async () => {
  const log: RequestLogEntry[] = [];
  const server = await served({ onRequest: (entry) => log.push(entry) });
  const client = session(server);
  const over2 = await client.ask(rows);
  const over1 = await fetch(`${new URL(server.url).origin}${rows}`);
  expect([over2.status, over2.headers["content-type"], over2.code]).toEqual([
    over1.status,
    over1.headers.get("content-type"),
    0,
  ]);
  expect(over2.body).toBe(await over1.text());
  expect(log[0]).toEqual(log[1]);
  expect(await client.ask("/api/v1/history/nope")).toMatchObject({ status: 404, code: 0 });
});

test("what a connection begins with tells the protocol, however few bytes come at a time", async () => {
  const server = await served();
  for (const [bytes, expected] of [
    [Buffer.concat([preface, settings, getHealth(1)]), "SERVING"],
    [Buffer.from(`GET ${health} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`), "SERVING"],
    [Buffer.from(`POST ${health} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`), "HTTP/1.1 404"],
    [Buffer.from("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"), "HTTP/1.1 400"],
    [Buffer.from("PRI"), ""],
  ] as const) {
    const { socket, text, closed } = await rawConnection(server);
    // an answer may come, and the connection end, ahead of the last byte
    socket.on("error", () => {});
    for (const byte of bytes) {
      socket.write(Buffer.of(byte));
      await sleep(1);
    }
    if (expected === "") socket.end();
    await Promise.race([closed, expect.poll(text).toContain(expected)]);
    expect(text()).toContain(expected);
    socket.destroy();
  }
});

test("a reader that pauses holds the rows up, and one that leaves ends them", async () => {
  const source = new EndlessSource();
  const client = session(await served({ source }));
  const stream = client.request(rows);
  stream.pause();
  await once(stream, "response");
  await expect.poll(() => source.taken).toBeGreaterThan(0);
  await sleep(200);
  expect(source.taken).toBeLessThan(20);
  stream.close(http2.constants.NGHTTP2_CANCEL);
  await source.left.promise;
});

test("a reader that takes nothing is dropped", async () => {
  const source = new EndlessSource();
  const told: string[] = [];
  const onError = ({ message }: RunvaultError) => told.push(message);
  const client = session(await served({ source, idleReaderMs: 100, onError }));
  client.request(rows).pause();
  await source.left.promise;
  expect(told).toEqual(["the client read nothing for 1 s"]);
});

test("an answer that is cut is reset, never ended", async () => {
  const server = await served({ wire: withFaults("cut@fills:5*2", "cut-clean@fills:7") });
  const client = session(server);
  for (let ask = 0; ask < 2; ask += 1) {
    const cut = await client.ask(rows);
    expect([cut.status, cut.code]).toEqual([200, http2.constants.NGHTTP2_INTERNAL_ERROR]);
  }
  const clean = await client.ask(rows);
  expect([clean.body.split("\n").length, clean.code]).toEqual([8, 0]);
});

test("the authority is the host, and a token is wanted as over HTTP/1.1", async () => {
  const client = session(await served());
  const instances = "/api/v1/history/instances";
  expect((await client.ask(instances, { ":authority": "evil.example" })).status).toBe(421);
  expect((await client.ask(instances, { ":authority": "localhost:1" })).status).toBe(200);
  const guarded = session(await served({ token: "s3cret" }));
  expect((await guarded.ask(instances)).status).toBe(401);
  expect((await guarded.ask(instances, { authorization: "Bearer s3cret" })).status).toBe(200);
});

test("a session that asks nothing, and a request that does not come whole, are ended in time", async () => {
  const server = await served({ connections: { headMs: 800, requestMs: 800 } });
  const silent = session(server);
  const { closed, text } = await rawConnection(server);
  // pings are no request
  const pinging = setInterval(() => silent.session.destroyed || silent.session.ping(() => {}), 30);
  await once(silent.session, "close");
  clearInterval(pinging);
  await closed;
  expect(text()).toMatch(/^HTTP\/1\.1 408 /);
  const slow = session(server);
  const call = { ":method": "POST", "content-type": "application/grpc+proto" };
  const stream = slow.request("/example.history.v1.HistoryService/ListInstances", call, false);
  stream.write(Buffer.of(0));
  await new Promise((resolve) => stream.once("close", resolve));
  expect(stream.rstCode).toBe(http2.constants.NGHTTP2_CANCEL);
  expect((await slow.ask(health)).status).toBe(200);
});

test.each([
  ["pings", ping],
  ["settings", settings],
  ["windows", frame(8, 0, 0, Buffer.of(0, 0, 0, 1))],
  ["priorities", frame(2, 0, 1, Buffer.alloc(5))],
  ["unknown frames", frame(99, 0, 0)],
])("%s are no request, and keep no session open", async (_name, trickled) => {
  const { socket, closed } = await rawConnection(await served({ connections: { headMs: 200 } }));
  socket.write(Buffer.concat([preface, settings]));
  const trickling = setInterval(() => socket.write(trickled), 20);
  const startedMs = performance.now();
  await closed;
  clearInterval(trickling);
  expect(performance.now() - startedMs).toBeLessThan(10_000);
});

test("a session goes on after an answer that its source was long about", async () => {
  const source = new ArraySource({ fills: fills(1) });
  source.document = async () => {
    await sleep(300);
    return Buffer.from("{}");
  };
  const client = session(await served({ source, connections: { headMs: 100 } }));
  const slow = client.ask("/api/v1/history/summary?instance=alpha&run_id=r1");
  await sleep(200);
  // the time to the first request is over, and it is not told to go
  expect((await client.ask(health)).status).toBe(200);
  expect((await slow).status).toBe(200);
});

test.each(["application/json", "application/grpc"])(
  "a call of %s that is answered before its body came whole is reset, behind its end",
  async (type) => {
    const server = await served();
    const { socket, frames } = await rawConnection(server);
    const ask = [
      Buffer.of(0x83, 0x86),
      literal(":authority", "h"),
      literal(":path", "/example.history.v1.HistoryService/ListInstances"),
      literal("content-type", type),
    ];
    socket.write(Buffer.concat([preface, settings, frame(1, 4, 1, Buffer.concat(ask))]));
    // more than a message may have, of which the half is read
    const part = frame(0, 0, 1, Buffer.alloc(16_000, type.endsWith("json") ? " " : "\xff"));
    for (let sent = 0; sent < 4; sent += 1) socket.write(part);
    await sleep(50);
    socket.write(frame(0, 0, 1, Buffer.alloc(9000, " ")));
    const reset = { type: 3, code: http2.constants.NGHTTP2_NO_ERROR };
    await expect.poll(() => frames().at(-1), { timeout: 5000 }).toMatchObject(reset);
    const isEnd = ({ type, flags }: { type: number; flags: number }) => type <= 1 && (flags & 1) === 1;
    expect(frames().filter(isEnd).length).toBe(1);
    socket.destroy();
    // else a server that stops would wait for this answer as long as it waits at all
    expect(await server.drain(5000)).toBe(0);
  },
);

test("no answer stays open of clients that leave in the middle of their requests", async () => {
  const server = await served();
  const call = { ":method": "POST", "content-type": "application/json" };
  const leave = async (afterMs: number) => {
    const client = session(server);
    client
      .request("/example.history.v1.HistoryService/ListInstances", call, false)
      .end(Buffer.alloc(200_000, " "));
    await sleep(afterMs);
    await client[Symbol.asyncDispose]();
  };
  await Promise.all(Array.from({ length: 40 }, (_, index) => leave(index % 10)));
  // a server that stops would wait for them as long as it waits at all
  expect(await server.drain(5000)).toBe(0);
});

test.each(["GET", "HEAD"])(
  "no answer stays open to a %s that is taken back before it begins",
  async (method) => {
    const source = new ArraySource({ fills: fills(1) });
    const [asked, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    source.document = async () => {
      asked.resolve();
      await gate.promise;
      return Buffer.from("{}");
    };
    const server = await served({ source });
    const client = session(server);
    const summary = "/api/v1/history/summary?instance=alpha&run_id=r1";
    const stream = client.request(summary, { ":method": method });
    await asked.promise;
    stream.close(http2.constants.NGHTTP2_CANCEL);
    await once(stream, "close");
    expect((await client.ask(health)).status).toBe(200);
    // a server that stops would wait for it as long as it waits at all
    expect(await server.drain(5000)).toBe(0);
    gate.resolve();
  },
);

test("a request that is taken back while it waits to be told to go on ends nobody's server", async () => {
  const thrown: unknown[] = [];
  const note = (error: unknown) => thrown.push(error);
  process.on("uncaughtException", note);
  const server = await served();
  const { socket } = await rawConnection(server);
  const head = [
    Buffer.of(0x83, 0x86),
    literal(":authority", "h"),
    literal(":path", health),
    literal("expect", "100-continue"),
  ];
  socket.write(Buffer.concat([preface, settings, frame(1, 4, 1, Buffer.concat(head)), reset(1)]));
  await sleep(200);
  socket.destroy();
  expect((await session(server).ask(health)).status).toBe(200);
  process.off("uncaughtException", note);
  expect(thrown).toEqual([]);
});

test("a method that HTTP has not is refused, and logged, as over HTTP/1.1", async () => {
  const log: RequestLogEntry[] = [];
  const errors: RunvaultError[] = [];
  const server = await served({
    onRequest: (entry) => log.push(entry),
    onError: (error) => errors.push(error),
  });
  const client = session(server);
  for (const path of [health, rows, "/nope"]) {
    const answer = await client.ask(path, { ":method": "FETCH" });
    expect([answer.status, JSON.parse(answer.body).error.message]).toEqual([
      400,
      "the request's method is not an HTTP method",
    ]);
  }
  expect(log.map(({ status }) => status)).toEqual([400, 400, 400]);
  expect(errors).toEqual([]);
});

test("a session ends with the last that its client says, whatever is under way", async () => {
  const server = await served();
  const { socket, closed } = await rawConnection(server);
  const noWindow = Buffer.from([0, 4, 0, 0, 0, 0]);
  socket.write(Buffer.concat([preface, frame(4, 0, 0, noWindow), getHealth(1)]));
  await once(socket, "data");
  socket.end();
  await closed;
});

test("sessions without a whole request give way to new connections, those with one do not", async () => {
  const source = new EndlessSource();
  const server = await served({ source, connections: { most: 3 } });
  const busy = session(server);
  const stream = busy.request(rows);
  await once(stream, "response");
  const idle = session(server);
  expect((await idle.ask(health)).status).toBe(200);
  const trickling = session(server);
  const call = { ":method": "POST", "content-type": "application/grpc+proto" };
  trickling.request("/example.history.v1.HistoryService/ListInstances", call, false).write(Buffer.of(0));
  await once(trickling.session, "remoteSettings");
  const gone = Promise.all([once(idle.session, "close"), once(trickling.session, "close")]);
  for (let more = 0; more < 2; more += 1) expect((await session(server).ask(health)).status).toBe(200);
  await gone;
  expect(busy.session.destroyed).toBe(false);
  stream.close();
});

test("a session has 64 requests at a time, and others are refused", async () => {
  const source = new EndlessSource();
  const server = await served({ source });
  const client = session(server);
  await once(client.session, "remoteSettings");
  expect(client.session.remoteSettings).toMatchObject({ maxConcurrentStreams: 64 });
  const { socket, text } = await rawConnection(server);
  // one that does not wait to be told; each of them stays open, for its body never ends
  const asked = Array.from({ length: 80 }, (_, index) => getHealth(2 * index + 1, 0x04));
  socket.write(Buffer.concat([preface, settings, ...asked]));
  await expect.poll(text).toContain("SERVING");
  socket.destroy();
  expect((await client.ask(health)).status).toBe(200);
});

test("a session has room for answers that nobody reads yet, each of a megabyte or more", async () => {
  const client = session(await served({ source: new EndlessSource() }));
  const unread = Array.from({ length: 30 }, () => client.request(rows).pause());
  for (const stream of unread) await once(stream, "response");
  expect((await client.ask(health)).status).toBe(200);
  for (const stream of unread) stream.close();
});

test("the head of a request is as long as over HTTP/1.1", async () => {
  const client = session(await served());
  const headed = (bytes: number) => client.ask(health, { x: "x".repeat(bytes) });
  expect((await headed(15_000)).status).toBe(200);
  expect((await headed(20_000)).status).not.toBe(200);
});

/** DATA of the session itself, which has none. */
const noFrame = frame(0, 0, 0, Buffer.alloc(4));
test.each([
  ["wanted to be told to go on", getHead(1, "/api/v1/health", { headers: { expect: "100-continue" } })],
  ["has a target that is no URL", getHead(1, "/api/v1/%zz")],
  ["has no route", getHead(1, "/api/v1/nowhere")],
])("a request that %s may be given up at once, and nothing else comes of it", async (_what, head) => {
  const errors: RunvaultError[] = [];
  // the queries are looked at, as a log does
  const onRequest = ({ query }: RequestLogEntry) => void Object.keys(query);
  const server = await served({ onRequest, onError: (error) => errors.push(error) });
  for (const end of [reset(1), noFrame]) {
    const { socket } = await rawConnection(server);
    socket.write(Buffer.concat([preface, settings, head, end]));
    const client = session(server);
    for (let times = 0; times < 3; times++) expect((await client.ask(health)).status).toBe(200);
    socket.destroy();
  }
  expect(errors).toEqual([]);
});

test("nothing is kept of requests that are given up, whenever that is", async () => {
  const server = await served();
  for (const end of [reset(79), noFrame]) {
    const { socket, closed } = await rawConnection(server);
    const heads = Array.from({ length: 40 }, (_, index) => getHead(2 * index + 1, rows));
    socket.write(Buffer.concat([preface, settings, ...heads, end]));
    await sleep(20);
    socket.destroy();
    await closed;
  }
  const client = session(server);
  const method = { ":method": "HEAD" };
  for (const wait of [0, 1, 5, 20]) {
    const streams = [rows, health, "/nope"].map((path) => client.request(path, method));
    await sleep(wait);
    for (const stream of streams) stream.close(http2.constants.NGHTTP2_CANCEL);
  }
  expect((await client.ask(health)).status).toBe(200);
  expect(await server.drain(2000)).toBe(0);
});

const many = <T>(times: number, make: (index: number) => T) =>
  Array.from({ length: times }, (_, i) => make(i));
test.each([
  ["resets", many(20_000, (i) => [getHealth(2 * i + 1), reset(2 * i + 1)]).flat()],
  ["settings", many(50_000, () => settings)],
  ["pings", many(50_000, () => ping)],
  [
    "heads without end",
    [getHealth(1, 0), ...many(5000, () => frame(9, 0, 1, Buffer.from("\x00\x01x\x01y")))],
  ],
  ["frames that are none", many(5000, (i) => frame(8, 0, i, Buffer.alloc(4)))],
])("a flood of %s ends its session, and nobody else's", async (_what, frames) => {
  const server = await served();
  const other = session(server);
  expect((await other.ask(health)).status).toBe(200);
  const { socket, closed } = await rawConnection(server);
  // answers are not read, so that what is to be sent piles up
  socket.pause();
  socket.write(Buffer.concat([preface, settings, ...frames]));
  await sleep(20);
  socket.resume();
  await closed;
  expect((await other.ask(health)).status).toBe(200);
});

test("a server that drains tells its sessions to go, and ends with their answers", async () => {
  const source = new EndlessSource();
  const server = await served({ source });
  const client = session(server);
  const stream = client.request(rows);
  await once(stream, "response");
  const away = once(client.session, "goaway");
  const drained = server.drain(300);
  const late = client.request("/api/v1/history/instances");
  const [head] = await once(late, "response");
  expect([head[":status"], head["retry-after"]]).toEqual([502, "1"]);
  await away;
  expect(await drained).toBe(1);
  const closed = once(client.session, "close");
  await server.close();
  await closed;
});

test.each(["", "PRI * HT"])("a connection that ends after %j is closed at once", async (said) => {
  const server = await served();
  const socket = connect({ port: server.port, allowHalfOpen: true });
  await once(socket, "connect");
  socket.end(said);
  const startedMs = performance.now();
  await once(socket.resume(), "close");
  // a head that never comes is waited for twenty seconds
  expect(performance.now() - startedMs).toBeLessThan(10_000);
});
