import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import tls from "node:tls";
import { afterEach, expect, test } from "vitest";
import type { RunvaultError } from "../../src/model/error.ts";
import type { RowRequest } from "../../src/model/source.ts";
import type { RequestScope } from "../../src/serve/auth/request-scope.ts";
import type { RequestLogEntry } from "../../src/serve/monitoring/request-log.ts";
import { type Served, type ServeOptions, serve } from "../../src/serve/server.ts";
import { requires } from "../fixtures/command/requirement.ts";
import { newAuthority, newCertificate } from "../fixtures/command/tls-files.ts";
import { controlOf } from "../fixtures/served/serve-control.ts";
import { ArraySource, fills } from "../fixtures/served/serve-source.ts";

const open: Served[] = [];
const sockets: net.Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await Promise.all(open.splice(0).map((server) => server.close()));
});

/** Rows that wait for a gate before they come. */
class GatedSource extends ArraySource {
  readonly gate = Promise.withResolvers<void>();
  readonly #asked: (() => void)[] = [];
  requests = 0;

  constructor() {
    super({ fills: fills(3) });
  }

  override async *rows(request: RowRequest): AsyncGenerator<Uint8Array> {
    this.requests += 1;
    for (const told of this.#asked.splice(0)) told();
    await this.gate.promise;
    yield* super.rows(request);
  }

  async begun(requests: number): Promise<void> {
    while (this.requests < requests) await new Promise<void>((told) => this.#asked.push(told));
  }
}

async function served(options: Partial<ServeOptions> = {}): Promise<Served> {
  const source = options.source ?? new ArraySource({ fills: fills(3) });
  const server = await serve({ source, host: "127.0.0.1", port: 0, onError: () => {}, ...options });
  open.push(server);
  return server;
}

/** A client's end of a connection: all that came over it, and whether it is closed. */
class Client {
  readonly socket: net.Socket;
  text = "";
  isClosed = false;
  readonly closed: Promise<unknown>;

  constructor(socket: net.Socket) {
    this.socket = socket;
    sockets.push(socket);
    socket.on("error", () => {});
    socket.on("data", (part) => {
      this.text += part;
    });
    this.closed = new Promise<void>((resolve) => socket.once("close", () => resolve())).then(() => {
      this.isClosed = true;
    });
  }

  static async connect({ port }: Served): Promise<Client> {
    const client = new Client(net.connect(port, "127.0.0.1"));
    await once(client.socket, "connect");
    return client;
  }

  async until(text: string): Promise<void> {
    while (!this.text.includes(text)) {
      if (this.isClosed) throw new Error(`closed before ${text}: ${this.text}`);
      const more = new Promise((resolve) => this.socket.once("data", resolve));
      await Promise.race([more, this.closed]);
    }
  }

  /** Asks, and waits until the answer has begun. */
  async ask(path: string): Promise<void> {
    this.socket.write(`GET /api/v1${path} HTTP/1.1\r\nhost: t\r\n\r\n`);
    await this.until("HTTP/1.1 ");
  }
}

const rows = "/history/fills?instance=alpha&run_id=r1";
const call = "POST /example.history.v1.HistoryService/ListInstances HTTP/1.1\r\nhost: t\r\n";

test("a head that does not come in time is a 408, in the envelope, and the end of the connection", async () => {
  const server = await served({ connections: { headMs: 100 } });
  const silent = await Client.connect(server);
  const slow = await Client.connect(server);
  slow.socket.write("GET /api/v1/health HTTP/1.1\r\nx: ");
  await Promise.all([silent.closed, slow.closed]);
  expect(slow.text).toMatch(/^HTTP\/1\.1 408 /);
  expect(JSON.parse(slow.text.split("\r\n\r\n")[1]!).error.code).toBe("ERROR_CODE_INVALID_ARGUMENT");
});

test("a body that does not come in time ends the connection", async () => {
  const server = await served({ connections: { headMs: 200, requestMs: 100 } });
  const slow = await Client.connect(server);
  slow.socket.write(`${call}content-type: application/proto\r\ncontent-length: 9\r\n\r\nx`);
  await slow.closed;
  expect((await fetch(`${server.url}/health`)).status).toBe(200);
});

test("the connection that asked for nothing for longest gives way to a new one", async () => {
  const told: RunvaultError[] = [];
  const server = await served({ connections: { most: 3 }, onError: (error) => told.push(error) });
  const [first, second, third] = [
    await Client.connect(server),
    await Client.connect(server),
    await Client.connect(server),
  ];
  // a request makes it the one that asked last
  await first.ask("/health");
  const fourth = await Client.connect(server);
  await second.closed;
  await fourth.ask("/health");
  expect([first.isClosed, third.isClosed]).toEqual([false, false]);
  await first.ask("/metrics");
  await first.until("runvault_connections_refused_total 1");
  await Client.connect(server);
  await third.closed;
  // two of them within a minute are told once
  expect(told).toMatchObject([{ code: "rate_limited", message: expect.stringContaining("3 connections") }]);
});

test("a body under way does not keep others out", async () => {
  const server = await served({ connections: { most: 1 } });
  const slow = await Client.connect(server);
  const body = "content-type: application/proto\r\ncontent-length: 9\r\nexpect: 100-continue\r\n\r\nx";
  slow.socket.write(`${call}${body}`);
  // the server has the head
  await slow.until("HTTP/1.1 100 ");
  const other = await Client.connect(server);
  await slow.closed;
  await other.ask("/health");
});

test("a body that ends after its answer leaves the connection among those that give way", async () => {
  const server = await served({ token: "secret", connections: { most: 2 } });
  const early = await Client.connect(server);
  early.socket.write("POST /api/v1/instances/x/start HTTP/1.1\r\nhost: t\r\ncontent-length: 5\r\n\r\n");
  await early.until("HTTP/1.1 401 ");
  // the server has the body by the time it answers what is sent after it
  const next = early.text.length;
  early.socket.write("helloGET /api/v1/health HTTP/1.1\r\nhost: t\r\n\r\n");
  while (!early.text.includes("HTTP/1.1 ", next)) await once(early.socket, "data");
  const second = await Client.connect(server);
  await second.ask("/health");
  await Client.connect(server);
  await Promise.race([early.closed, second.closed]);
  expect([early.isClosed, second.isClosed]).toEqual([true, false]);
});

test("an answer under way is not given up for a new connection, which is closed instead", async () => {
  const source = new GatedSource();
  const server = await served({ source, connections: { most: 2 } });
  const [first, second] = [await Client.connect(server), await Client.connect(server)];
  for (const client of [first, second]) {
    client.socket.write(`GET /api/v1${rows} HTTP/1.1\r\nhost: t\r\n\r\n`);
  }
  await source.begun(2);
  const third = await Client.connect(server);
  await third.closed;
  source.gate.resolve();
  await Promise.all([first.until("\r\n0\r\n\r\n"), second.until("\r\n0\r\n\r\n")]);
  // and then there is room
  await (await Client.connect(server)).ask("/health");
});

test("a WebSocket is not given up for a new connection", async () => {
  const control = {
    ...controlOf({ instanceId: "alpha", currentRunId: "r1" }),
    status: async () => ({ transport: { connected: true }, capabilities: { subscriptions: true } }),
  };
  const server = await served({ control, connections: { most: 2 } });
  const live = await Client.connect(server);
  const upgrade = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n";
  const key = `sec-websocket-key: ${"A".repeat(22)}==\r\n`;
  live.socket.write(`GET /api/v1/instances/alpha/ws HTTP/1.1\r\nhost: t\r\n${upgrade}${key}\r\n`);
  await live.until("HTTP/1.1 101 ");
  const second = await Client.connect(server);
  await second.ask("/health");
  await Client.connect(server);
  await Promise.race([live.closed, second.closed]);
  expect([live.isClosed, second.isClosed]).toEqual([false, true]);
});

test("a connection is kept for as long as load balancers keep theirs", async () => {
  const client = await Client.connect(await served());
  await client.ask("/health");
  expect(client.text).toMatch(/\r\nkeep-alive: timeout=72\r\n/i);
});

test("a connection with more requests at a time than anybody needs is closed", async () => {
  const source = new GatedSource();
  const server = await served({ source });
  const client = await Client.connect(server);
  client.socket.write(`GET /api/v1${rows} HTTP/1.1\r\nhost: t\r\n\r\n`.repeat(65));
  await client.closed;
  source.gate.resolve();
  expect(client.text).toBe("");
});

test("a client that reads no documents is dropped as one that reads no rows", async () => {
  const told = Promise.withResolvers<RunvaultError>();
  const source = new ArraySource({ fills: fills(3) });
  source.document = async () => Buffer.alloc(32 * 2 ** 20, " ");
  const server = await served({ source, idleReaderMs: 100, onError: told.resolve });
  const client = await Client.connect(server);
  client.socket.pause();
  client.socket.write("GET /api/v1/history/summary?instance=alpha&run_id=r1 HTTP/1.1\r\nhost: t\r\n\r\n");
  expect(await told.promise).toMatchObject({ code: "timeout" });
});

test("what is no HTTP is answered in the envelope, but never in the middle of an answer", async () => {
  const source = new GatedSource();
  const server = await served({ source });
  const plain = await Client.connect(server);
  plain.socket.write("EHLO mail.example\r\n\r\n");
  await plain.closed;
  expect(plain.text).toMatch(/^HTTP\/1\.1 400 Bad Request\r\nconnection: close\r\n/);
  expect(JSON.parse(plain.text.split("\r\n\r\n")[1]!).error.code).toBe("ERROR_CODE_INVALID_ARGUMENT");
  const mixed = await Client.connect(server);
  mixed.socket.write(`GET /api/v1${rows} HTTP/1.1\r\nhost: t\r\n\r\n`);
  await source.begun(1);
  mixed.socket.write("EHLO mail.example\r\n\r\n");
  await mixed.closed;
  expect(mixed.text).toBe("");
  // of the last request not all has come, and the one before it is not answered
  const piped = await Client.connect(server);
  const broken = "content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nno number\r\n";
  piped.socket.write(`GET /api/v1${rows} HTTP/1.1\r\nhost: t\r\n\r\n${call}${broken}`);
  await piped.closed;
  source.gate.resolve();
  expect(piped.text).toBe("");
});

test("nor in the middle of an answer to a request of which not all has come", async () => {
  const source = new ArraySource({ fills: fills(3) });
  const gate = Promise.withResolvers<void>();
  source.rows = async function* () {
    yield Buffer.from("{}\n");
    await gate.promise;
  };
  const client = await Client.connect(await served({ source }));
  const chunked = `GET /api/v1${rows} HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n`;
  client.socket.write(chunked);
  await client.until("{}\n");
  client.socket.write("no number\r\n");
  await client.closed;
  gate.resolve();
  expect(client.text).toMatch(/^HTTP\/1\.1 200 [\s\S]*\{\}\n\r\n$/);
  expect(client.text).not.toContain(" 400 ");
});

test("requests that no route ever sees are logged too, and a log that fails is not in their way", async () => {
  const log: (readonly [RequestLogEntry, RequestScope | undefined])[] = [];
  const told: RunvaultError[] = [];
  const server = await served({
    onRequest: (entry, scope) => {
      log.push([entry, scope]);
      throw new Error("no space left");
    },
    onError: (error) => told.push(error),
  });
  const asked = [
    "EHLO mail.example\r\n\r\n",
    "GET /%zz?token=secret HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n",
  ];
  for (const text of asked) {
    const client = await Client.connect(server);
    client.socket.write(text);
    await client.closed;
    expect(client.text).toMatch(/^HTTP\/1\.1 400 /);
    const body = client.text.split("\r\n\r\n")[1]!;
    expect(JSON.parse(body).error.code).toBe("ERROR_CODE_INVALID_ARGUMENT");
    expect(log.at(-1)).toMatchObject([
      { status: 400, ending: "whole", bytes: body.length },
      { client: "127.0.0.1" },
    ]);
  }
  expect(log.map(([{ method, path, query }]) => [method, path, query])).toEqual([
    ["", "", {}],
    ["GET", "/%zz", {}],
  ]);
  expect(told).toMatchObject([{ message: "no space left" }, { message: "no space left" }]);
});

test("a client that leaves within a head is answered nothing, and nothing is logged of it", async () => {
  const log: RequestLogEntry[] = [];
  const server = await served({ onRequest: (entry) => log.push(entry) });
  const leaving = await Client.connect(server);
  leaving.socket.write("GET /api/v1/health HTTP/1.1\r\nhost");
  await (await Client.connect(server)).ask("/health");
  leaving.socket.resetAndDestroy();
  await leaving.closed;
  await (await Client.connect(server)).ask("/health");
  expect(log.map(({ path }) => path)).toEqual(["/api/v1/health", "/api/v1/health"]);
});

test.skipIf(!requires("openssl"))("all this holds over TLS", async () => {
  const folder = mkdtempSync(join(tmpdir(), "serve-connections-"));
  try {
    const authority = newAuthority(folder, "authority");
    const { cert, key } = newCertificate(folder, "server", authority);
    const server = await served({ connections: { most: 2 }, tls: { cert, key } });
    const secure = async () => {
      const client = new Client(tls.connect({ host: "127.0.0.1", port: server.port, ca: authority.cert }));
      await once(client.socket, "secureConnect");
      return client;
    };
    const first = await secure();
    await first.ask("/health");
    // one that never shakes hands is the one without a request for longest after the first has asked again
    const bare = await Client.connect(server);
    first.text = "";
    await first.ask("/health");
    const third = await secure();
    await bare.closed;
    await third.ask("/health");
    expect(first.isClosed).toBe(false);
    const hasty = await served({ connections: { headMs: 200 }, tls: { cert, key } });
    await (await Client.connect(hasty)).closed;
  } finally {
    rmSync(folder, { recursive: true });
  }
});
