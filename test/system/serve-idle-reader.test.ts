import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import tls from "node:tls";
import { afterEach, expect, test } from "vitest";
import type { RunvaultError } from "../../src/model/error.ts";
import type { RowRequest } from "../../src/model/source.ts";
import type { RequestLogEntry } from "../../src/serve/monitoring/request-log.ts";
import { type Served, type ServeOptions, serve } from "../../src/serve/server.ts";
import { requires } from "../fixtures/command/requirement.ts";
import { newAuthority, newCertificate } from "../fixtures/command/tls-files.ts";
import { rawGet } from "../fixtures/served/serve-raw-client.ts";
import { ArraySource, fills } from "../fixtures/served/serve-source.ts";

const open: Served[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((served) => served.close()));
});

/** Rows in pieces of `pieceBytes`, `pieces` of them, each only when `pace` lets it go. */
class PiecesSource extends ArraySource {
  readonly piece: Buffer;
  readonly pieces: number;
  pace: (piece: number) => Promise<unknown> = async () => {};

  constructor(pieceBytes: number, pieces: number) {
    super({ fills: fills(1) });
    const line = Buffer.from(`${this.lines("fills")[0]}\n`);
    this.piece = Buffer.concat(Array.from({ length: Math.ceil(pieceBytes / line.length) }, () => line));
    this.pieces = pieces;
  }

  override async *rows(_request: RowRequest): AsyncGenerator<Uint8Array> {
    try {
      for (let piece = 0; piece < this.pieces; piece++) {
        await this.pace(piece);
        yield this.piece;
      }
    } finally {
      this.ended += 1;
    }
  }
}

const mib = 2 ** 20;
const query = "/api/v1/history/fills?instance=alpha&run_id=r1";
const request = `GET ${query} HTTP/1.1\r\nhost: t\r\n\r\n`;

/** A server that tells of the first error, and of the first answer's log entry. */
async function served(source: ArraySource, options: Partial<ServeOptions>) {
  const told = Promise.withResolvers<RunvaultError>();
  const logged = Promise.withResolvers<RequestLogEntry>();
  const server = await serve({
    source,
    host: "127.0.0.1",
    port: 0,
    onError: (error) => told.resolve(error),
    onRequest: (entry) => logged.resolve(entry),
    ...options,
  });
  open.push(server);
  return { server, told: told.promise, logged: logged.promise };
}

test("a reader that takes nothing is dropped, in mid-answer, and the source is let go", async () => {
  const source = new PiecesSource(mib, 1000);
  const { server, told, logged } = await served(source, { idleReaderMs: 300 });
  const socket = net.connect(server.port, "127.0.0.1").on("error", () => {});
  socket.write(request);
  expect(await told).toMatchObject({ code: "timeout" });
  expect(await logged).toMatchObject({ ending: "left", error: expect.stringContaining("read nothing") });
  expect(source.ended).toBe(1);
  socket.resume();
  await once(socket, "close");
});

test("so is one that leaves the end of an answer that is written to its last byte", async () => {
  const source = new PiecesSource(32 * mib, 1);
  const { server, told } = await served(source, { idleReaderMs: 300 });
  const socket = net.connect(server.port, "127.0.0.1").on("error", () => {});
  socket.write(request);
  expect(await told).toMatchObject({ code: "timeout" });
  socket.destroy();
});

test.skipIf(!requires("openssl"))("so is one over TLS", async () => {
  const folder = mkdtempSync(join(tmpdir(), "serve-idle-"));
  try {
    const authority = newAuthority(folder, "authority");
    const { cert, key } = newCertificate(folder, "server", authority);
    const source = new PiecesSource(mib, 1000);
    const { server, told } = await served(source, { idleReaderMs: 300, tls: { cert, key } });
    const socket = tls.connect({ host: "127.0.0.1", port: server.port, ca: authority.cert });
    socket.on("error", () => {});
    socket.write(request);
    expect(await told).toMatchObject({ code: "timeout" });
    socket.destroy();
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("a slow reader is not dropped, however long it takes for what was written at once", async () => {
  const source = new PiecesSource(32 * mib, 1);
  const dropped: RunvaultError[] = [];
  const { server } = await served(source, { idleReaderMs: 1000, onError: (error) => dropped.push(error) });
  const socket = net.connect(server.port, "127.0.0.1");
  socket.write(request);
  let taken = 0;
  const began = Date.now();
  for await (const part of socket as AsyncIterable<Buffer>) {
    taken += part.length;
    // for longer than two looks of the server, a little at a time; the rest at once
    if (Date.now() - began < 3000) await sleep(5);
    if (taken >= source.piece.length) break;
  }
  expect(dropped).toEqual([]);
  expect(taken).toBeGreaterThanOrEqual(source.piece.length);
});

test("a reader that waits for a slow source keeps its answer", async () => {
  const source = new PiecesSource(1000, 3);
  source.pace = (piece) => (piece === 1 ? sleep(1000) : Promise.resolve());
  const { server } = await served(source, { idleReaderMs: 100 });
  const answer = await rawGet(`http://127.0.0.1:${server.port}${query}`);
  expect([answer.isWhole, answer.body.length]).toEqual([true, 3 * source.piece.length]);
});

test("a connection goes on to be used after an answer, for longer than a reader may idle", async () => {
  const source = new PiecesSource(1000, 1);
  const { server } = await served(source, { idleReaderMs: 100 });
  const socket = net.connect(server.port, "127.0.0.1");
  let text = "";
  socket.on("data", (part) => {
    text += String(part);
  });
  const answers = async (count: number) => {
    while (text.split("\r\n0\r\n\r\n").length - 1 < count) await once(socket, "data");
  };
  socket.write(request);
  await answers(1);
  await sleep(400);
  socket.write(request);
  await answers(2);
  expect(text.match(/HTTP\/1\.1 200/g)?.length).toBe(2);
  socket.destroy();
});
