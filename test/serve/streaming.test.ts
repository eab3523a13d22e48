import { once } from "node:events";
import net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { RunvaultError } from "../../src/model/error.ts";
import type { DocumentKind, RowRequest, RunRef } from "../../src/model/source.ts";
import type { RequestLogEntry } from "../../src/serve/monitoring/request-log.ts";
import { type Served, serve } from "../../src/serve/server.ts";
import { rawGet } from "../fixtures/served/serve-raw-client.ts";
import { ArraySource, fills } from "../fixtures/served/serve-source.ts";

const open: Served[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((served) => served.close()));
});

/** Endless rows in chunks of 1 MiB; counts what was taken and whether the iteration was ended. */
class EndlessSource extends ArraySource {
  taken = 0;
  aborted = false;

  constructor() {
    super({ fills: fills(1) });
  }

  override async *rows(request: RowRequest): AsyncGenerator<Uint8Array> {
    const line = Buffer.from(`${this.lines("fills")[0]}\n`);
    const chunk = Buffer.concat(Array.from({ length: Math.ceil(2 ** 20 / line.length) }, () => line));
    request.signal?.addEventListener("abort", () => {
      this.aborted = true;
    });
    try {
      for (;;) {
        this.taken += 1;
        yield chunk;
      }
    } finally {
      this.ended += 1;
    }
  }
}

/** Computes until it is interrupted, and then fails in words that tell nothing of why. */
class ComputingSource extends ArraySource {
  readonly asked = Promise.withResolvers<void>();

  constructor() {
    super({ fills: fills(1) });
  }

  override async *rows({ signal }: RowRequest): AsyncGenerator<Uint8Array> {
    yield await this.#compute(signal);
  }

  override document(_run: RunRef, _kind: DocumentKind, signal?: AbortSignal): Promise<Uint8Array | null> {
    return this.#compute(signal);
  }

  async #compute(signal: AbortSignal | undefined): Promise<never> {
    this.asked.resolve();
    await once(signal!, "abort");
    throw new RunvaultError("internal", "INTERRUPT Error: interrupted");
  }
}

async function served(
  source: ArraySource,
  log: RequestLogEntry[] = [],
  errors: string[] = [],
): Promise<Served> {
  const server = await serve({
    source,
    host: "127.0.0.1",
    port: 0,
    onRequest: (entry) => log.push(entry),
    onError: ({ code }) => errors.push(code),
  });
  open.push(server);
  return server;
}

/** What `fetch` needs for a call over Connect. */
function callOf(message: object): RequestInit {
  return {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(message),
  };
}

test("an error of the source in mid-answer cuts the connection, and the owner is told", async () => {
  const source = new ArraySource({ fills: fills(100) });
  source.failAfterChunks = 3;
  const [log, errors]: [RequestLogEntry[], string[]] = [[], []];
  const server = await served(source, log, errors);
  const answer = await rawGet(`${server.url}/history/fills?instance=alpha&run_id=r1`);
  expect([answer.status, answer.isWhole, answer.body.length]).toEqual([200, false, 3000]);
  expect(errors).toEqual(["history_query_failed"]);
  expect(log).toMatchObject([{ ending: "cut", error: "history_query_failed: the store broke", bytes: 3000 }]);
});

test("an error before the first row is a status, not a cut", async () => {
  const source = new ArraySource({ fills: fills(100) });
  source.failAfterChunks = 0;
  const response = await fetch(`${(await served(source)).url}/history/fills?instance=alpha&run_id=r1`);
  expect([response.status, await response.json()]).toMatchObject([
    502,
    { error: { code: "history_query_failed" } },
  ]);
});

test("a table without rows is an empty answer with its end", async () => {
  const answer = await rawGet(
    `${(await served(new ArraySource({ fills: [] }))).url}/history/fills?instance=alpha`,
  );
  expect([answer.status, answer.isWhole, answer.body.length]).toEqual([200, true, 0]);
});

test("a slow client holds the source back, and leaving ends its iteration", async () => {
  const source = new EndlessSource();
  const log: RequestLogEntry[] = [];
  const server = await served(source, log);
  const socket = net.connect(server.port, "127.0.0.1");
  socket.write("GET /api/v1/history/fills?instance=alpha&run_id=r1 HTTP/1.1\r\nhost: t\r\n\r\n");
  await once(socket, "readable");
  // until nothing more is taken for a while
  for (let before = 0; before !== source.taken; await sleep(200)) before = source.taken;
  expect(source.taken).toBeLessThan(40);
  expect(source.ended).toBe(0);
  socket.destroy();
  await expect.poll(() => [source.ended, log.length]).toEqual([1, 1]);
  expect(source.aborted).toBe(true);
  expect(log[0]?.ending).toBe("left");
});

test.each(["fills", "summary"])(
  "a client that leaves before its %s begin has left, and nothing failed",
  async (what) => {
    const log: RequestLogEntry[] = [];
    const told: RunvaultError[] = [];
    const logged = Promise.withResolvers<void>();
    const source = new ComputingSource();
    const server = await serve({
      source,
      host: "127.0.0.1",
      port: 0,
      onRequest: (entry) => {
        log.push(entry);
        logged.resolve();
      },
      onError: (error) => told.push(error),
    });
    open.push(server);
    const leaving = new AbortController();
    const answer = fetch(`${server.url}/history/${what}?instance=alpha&run_id=r1`, leaving);
    await source.asked.promise;
    leaving.abort();
    await expect(answer).rejects.toThrow();
    await logged.promise;
    expect(log).toMatchObject([{ path: `/api/v1/history/${what}`, ending: "left", status: 200, bytes: 0 }]);
    expect(told).toEqual([]);
  },
);

test("closing the server ends the answers under way, and logs them", async () => {
  const source = new EndlessSource();
  const log: RequestLogEntry[] = [];
  const server = await served(source, log);
  const answer = rawGet(`${server.url}/history/fills?instance=alpha&run_id=r1`);
  await expect.poll(() => source.taken).toBeGreaterThan(5);
  await server.close();
  expect(log).toMatchObject([{ table: "fills", ending: "left" }]);
  expect(source.ended).toBe(1);
  expect((await answer).isWhole).toBe(false);
});

test.each([
  ["/history/fills?instance=alpha&run_id=r1", {}],
  ["/history/summary?instance=alpha&run_id=r1", {}],
  ["/example.history.v1.HistoryService/GetSummary", callOf({ instanceId: "alpha", runId: "r1" })],
])("closing the server logs that it cut %s before the answer began", async (path, init) => {
  const source = new ComputingSource();
  const log: RequestLogEntry[] = [];
  const server = await served(source, log);
  const cut = expect(fetch(`${server.url}${path}`, init)).rejects.toThrow();
  await source.asked.promise;
  await server.close();
  const logged = [...log];
  await cut;
  expect(logged).toMatchObject([{ path: `/api/v1${path.split("?")[0]}`, ending: "left" }]);
});

test("closing the server does not wait for long for what does not end", async () => {
  const asked = Promise.withResolvers<void>();
  const source = new ArraySource({ fills: fills(1) });
  source.document = async () => {
    asked.resolve();
    return await new Promise(() => {});
  };
  const server = await served(source);
  const cut = expect(fetch(`${server.url}/history/summary?instance=alpha&run_id=r1`)).rejects.toThrow();
  await asked.promise;
  await server.close();
  await cut;
});

test("an answer whose log can't be written is cut, not left open", async () => {
  const errors: string[] = [];
  const server = await serve({
    source: new ArraySource({ fills: fills(2) }),
    host: "127.0.0.1",
    port: 0,
    onRequest: () => {
      throw new Error("no space left");
    },
    onError: ({ message }) => errors.push(message),
  });
  open.push(server);
  expect((await rawGet(`${server.url}/history/fills?instance=alpha&run_id=r1`)).isWhole).toBe(false);
  expect(errors).toEqual(["no space left"]);
});

test("a document or refusal whose log can't be written is a failure in the envelope, which says nothing of the log", async () => {
  const errors: string[] = [];
  const server = await serve({
    source: new ArraySource({ fills: fills(2) }),
    host: "127.0.0.1",
    port: 0,
    onRequest: () => {
      throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
    },
    onError: ({ message }) => errors.push(message),
  });
  open.push(server);
  const answers = [
    "/health",
    "/history/instances",
    "/history/fills?instance=nobody&run_id=r1",
    "/nothing",
  ].map(async (path) => {
    const answer = await fetch(`${server.url}${path}`);
    return [path, answer.status, answer.headers.get("content-type"), await answer.json()];
  });
  const type = "application/json; charset=utf-8";
  const history = { ok: false, error: { code: "internal", message: "internal error of the service" } };
  const control = { error: { code: "ERROR_CODE_INTERNAL", message: "internal error of the service" } };
  expect(await Promise.all(answers)).toMatchObject([
    ["/health", 500, type, control],
    ["/history/instances", 500, type, history],
    ["/history/fills?instance=nobody&run_id=r1", 500, type, history],
    ["/nothing", 500, type, control],
  ]);
  expect(errors).toEqual(Array(4).fill(expect.stringContaining("ENOSPC")));
});
