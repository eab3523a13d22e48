// @module-tag slow
import type { Socket } from "node:net";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { expect, test } from "vitest";
import { openRestGateway } from "../../src/gateway/rest/rest-gateway.ts";
import { RunvaultError } from "../../src/model/error.ts";
import { longestTimerMs } from "../../src/model/retry/deadline.ts";
import { rowsHead, type ScriptedServer, serveRaw } from "../fixtures/source/gateway-scripted-server.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";

const request = { instanceId: "i", runId: "r", table: "fills" } as const;
const text = '{"seq":"1"}\n{"seq":"2"}\n{"seq":"3"}\n';

/** Reads the rows, telling of each piece; gives what came, and the error that ended it if one did. */
async function read(
  server: ScriptedServer,
  options: object = {},
  onPiece: () => void = () => {},
): Promise<{ text: string; error?: RunvaultError }> {
  await using gateway = openRestGateway({
    baseUrl: server.url,
    retry: quickRetry({ retries: 0 }),
    ...options,
  });
  const parts: Uint8Array[] = [];
  const got = () => Buffer.concat(parts).toString();
  try {
    for await (const chunk of gateway.rows(request)) {
      parts.push(chunk);
      onPiece();
    }
  } catch (thrown) {
    if (!(thrown instanceof RunvaultError)) throw thrown;
    return { text: got(), error: thrown };
  }
  return { text: got() };
}

function chunked(...bodies: (string | Buffer)[]): Buffer {
  return Buffer.concat([
    ...bodies.map((body) =>
      Buffer.concat([
        Buffer.from(`${Buffer.byteLength(body).toString(16)}\r\n`),
        Buffer.from(body),
        Buffer.from("\r\n"),
      ]),
    ),
    Buffer.from("0\r\n\r\n"),
  ]);
}

const gzip = gzipSync(text);
const zstd = zstdCompressSync(text);
const whole: Record<string, Buffer> = {
  chunked: Buffer.concat([
    Buffer.from(rowsHead("Transfer-Encoding: chunked")),
    chunked(text.slice(0, 15), text.slice(15)),
  ]),
  "with Content-Length": Buffer.from(rowsHead(`Content-Length: ${text.length}`) + text),
  "chunked gzip": Buffer.concat([
    Buffer.from(rowsHead("Transfer-Encoding: chunked", "Content-Encoding: gzip")),
    chunked(gzip),
  ]),
  "zstd with Content-Length": Buffer.concat([
    Buffer.from(rowsHead(`Content-Length: ${zstd.length}`, "Content-Encoding: zstd")),
    zstd,
  ]),
  "unframed gzip": Buffer.concat([
    Buffer.from(rowsHead("Content-Encoding: gzip", "Connection: close")),
    gzip,
  ]),
  "unframed zstd": Buffer.concat([
    Buffer.from(rowsHead("Content-Encoding: zstd", "Connection: close")),
    zstd,
  ]),
};

for (const [name, answer] of Object.entries(whole)) {
  test(`an answer ${name} that is cut after any byte is an error, and whole it is not`, async () => {
    let cutAt = 0;
    await using server = await serveRaw((socket) => socket.end(answer.subarray(0, cutAt)));
    for (cutAt = 0; cutAt < answer.length; cutAt += 1) {
      const { text: got, error } = await read(server);
      const inHead = cutAt < answer.indexOf("\r\n\r\n") + 4;
      expect(error?.code, `cut at ${cutAt}`).toBe(inHead ? "unreachable" : "stream_cut");
      expect(text.startsWith(got)).toBe(true);
    }
    expect(await read(server)).toEqual({ text });
  });
}

test("an answer that neither frames its body nor compresses it is refused unless that is allowed", async () => {
  await using server = await serveRaw((socket) => socket.end(rowsHead("Connection: close") + text));
  expect((await read(server)).error?.code).toBe("refused");
  expect(await read(server, { acceptUnframed: true })).toEqual({ text });
});

const framings: [string, string[], string][] = [
  ["identity", ["Transfer-Encoding: identity"], "refused"],
  ["an unknown word", ["Transfer-Encoding: foo"], "refused"],
  ["chunked, identity", ["Transfer-Encoding: chunked, identity"], "refused"],
  ["gzip", ["Transfer-Encoding: gzip"], "refused"],
  ["gzip, chunked", ["Transfer-Encoding: gzip, chunked"], "refused"],
  ["an empty one", ["Transfer-Encoding:"], "refused"],
  ["one beside a length", ["Content-Length: 36", "Transfer-Encoding: identity"], "not_a_gateway"],
  ["two lengths", ["Content-Length: 36", "Content-Length: 24"], "not_a_gateway"],
];
test.each(framings)(
  "%s is no framing of rows, even where unframed rows are taken",
  async (_, heads, code) => {
    await using server = await serveRaw((socket) => socket.end(rowsHead(...heads) + text.slice(0, 24)));
    expect(await read(server, { acceptUnframed: true })).toMatchObject({ text: "", error: { code } });
  },
);

test("chunks are chunks however the word is written", async () => {
  await using server = await serveRaw((socket) => {
    socket.write(rowsHead("Transfer-Encoding:  Chunked "));
    socket.write(chunked(text));
  });
  expect(await read(server)).toEqual({ text });
});

test("a reset connection in mid-body is a stream cut that tells how many bytes came", async () => {
  let answering: Socket | undefined;
  await using server = await serveRaw((socket) => {
    answering = socket;
    socket.write(rowsHead("Content-Length: 1000") + text);
  });
  const { text: got, error } = await read(server, {}, () => answering?.resetAndDestroy());
  expect(got).toBe(text);
  expect(error?.code).toBe("stream_cut");
  expect(error?.message).toContain(`after ${text.length} bytes`);
  expect(error?.place).toMatchObject({ instance: "i", run: "r", table: "fills" });
});

const frames: Record<string, [coding: string, body: Buffer, code: string | undefined]> = {
  "two zstd frames": ["zstd", Buffer.concat([zstd, zstd]), "malformed_row"],
  "garbage after a zstd frame": ["zstd", Buffer.concat([zstd, Buffer.from("rest")]), "malformed_row"],
  "garbage after a gzip member": ["gzip", Buffer.concat([gzip, Buffer.from("rest")]), "malformed_row"],
  "zeros after a gzip member": ["gzip", Buffer.concat([gzip, Buffer.alloc(3)]), "malformed_row"],
  "a gzip body with a wrong checksum": ["gzip", flipped(gzip, -6), "malformed_row"],
  "text that is called zstd": ["zstd", Buffer.from(text), "malformed_row"],
  "an empty body that is called gzip": ["gzip", Buffer.alloc(0), "stream_cut"],
  "an unknown coding": ["br", Buffer.from(text), "not_a_gateway"],
  "a whole zstd frame": ["zstd", zstd, undefined],
};
for (const [name, [coding, body, code]] of Object.entries(frames)) {
  test(`${name}: ${code ?? "is read"}`, async () => {
    await using server = await serveRaw((socket) => {
      socket.write(rowsHead(`Content-Length: ${body.length}`, `Content-Encoding: ${coding}`));
      socket.write(body);
    });
    expect((await read(server)).error?.code).toBe(code);
  });
}

test("trailing bytes in a later packet than the end of the zstd frame are noticed too", async () => {
  let answering: Socket | undefined;
  await using server = await serveRaw((socket) => {
    answering = socket;
    socket.write(rowsHead(`Content-Length: ${zstd.length + 4}`, "Content-Encoding: zstd"));
    socket.write(zstd);
  });
  const { text: got, error } = await read(server, {}, () => answering?.write("rest"));
  expect(got).toBe(text);
  expect(error?.code).toBe("malformed_row");
});

test("a body that stalls is a timeout, and so is an answer that never starts", async () => {
  await using stalling = await serveRaw((socket) => socket.write(rowsHead("Content-Length: 1000") + text));
  const { text: got, error } = await read(stalling, { bodyIdleTimeoutMs: 200 });
  expect(got).toBe(text);
  expect(error?.code).toBe("timeout");
  await using silent = await serveRaw(() => undefined);
  expect((await read(silent, { headersTimeoutMs: 200 })).error?.code).toBe("timeout");
});

test("an answer that never starts is a timeout however many 1xx come ahead of it", async () => {
  await using server = await serveRaw((socket) => {
    const timer = setInterval(() => socket.write("HTTP/1.1 102 Processing\r\n\r\n"), 20);
    socket.on("close", () => clearInterval(timer));
  });
  const beganMs = performance.now();
  const { error } = await read(server, { headersTimeoutMs: 300 });
  expect(error).toMatchObject({ code: "timeout", message: expect.stringContaining("before answering") });
  expect(performance.now() - beganMs).toBeLessThan(5_000);
  // and 1xx ahead of an answer that does start are no harm
  await using honest = await serveRaw((socket) =>
    socket.write(`HTTP/1.1 103 Early Hints\r\n\r\n${rowsHead(`Content-Length: ${text.length}`)}${text}`),
  );
  expect(await read(honest, { headersTimeoutMs: 5_000 })).toEqual({ text });
});

test("deadlines as long as a timer can wait do not end an answer before it begins", async () => {
  await using server = await serveRaw((socket) =>
    socket.write(`${rowsHead(`Content-Length: ${text.length}`)}${text}`),
  );
  const forEver = { connectTimeoutMs: longestTimerMs, headersTimeoutMs: longestTimerMs };
  expect(await read(server, forEver)).toEqual({ text });
});

test("a failure before the first byte of the body is retried, one after it is not", async () => {
  await using server = await serveRaw((socket, count) => {
    if (count === 1) socket.destroy();
    else if (count === 2) socket.end(rowsHead("Content-Length: 100"));
    else socket.end(rowsHead("Content-Length: 100") + text);
  });
  const { text: got, error } = await read(server, { retry: quickRetry({ retries: 5 }) });
  expect(server.requests.length).toBe(3);
  expect(got).toBe(text);
  expect(error?.code).toBe("stream_cut");
});

function flipped(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes);
  const index = copy.length + at;
  copy[index] = (copy[index] ?? 0) ^ 0xff;
  return copy;
}
