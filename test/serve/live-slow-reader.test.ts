// @module-tag slow
import { once } from "node:events";
import net from "node:net";
import { expect, test } from "vitest";
import type { LiveFeed, LiveValue } from "../../src/model/control.ts";
import { type DropPolicy, LiveOutbox, mostWaiting } from "../../src/serve/live/live-outbox.ts";
import { type Served, serve } from "../../src/serve/server.ts";
import { LiveClient } from "../fixtures/served/live-world.ts";
import { controlOf } from "../fixtures/served/serve-control.ts";
import { ArraySource } from "../fixtures/served/serve-source.ts";

const rowBytes = 10_000;
/** 100 MB of them: much more than the kernel takes in for a client. */
const values = 10_000;

/** A source of many values, live or replayed, as fast as they are taken. */
class Torrent {
  server!: Served;
  put = 0;
  finished: Promise<void>;
  readonly #most: number;
  #onFinish!: () => void;

  private constructor(most: number) {
    this.#most = most;
    this.finished = new Promise((resolve) => {
      this.#onFinish = resolve;
    });
  }

  static async open(dropPolicy: DropPolicy, replayed = false, most = values): Promise<Torrent> {
    const torrent = new Torrent(most);
    const feed: LiveFeed = {
      resourceKey: "key",
      contract: { model: "events", dropPolicy },
      identity: [],
      values: (signal) => torrent.#values(signal, replayed),
    };
    torrent.server = await serve({
      source: new ArraySource({}),
      control: {
        ...controlOf({ instanceId: "alpha", currentRunId: "r1" }),
        status: async () => ({ transport: { connected: true }, capabilities: { subscriptions: true } }),
        feeds: async () => [feed],
      },
      host: "127.0.0.1",
      port: 0,
    });
    return torrent;
  }

  async *#values(signal: AbortSignal, replayed: boolean): AsyncGenerator<LiveValue> {
    try {
      for (; this.put < this.#most && !signal.aborted; this.put += 1) {
        const row = `{"seq":"${this.put}","message":"${"x".repeat(rowBytes)}"}`;
        yield { table: "events", rows: [row], replayed };
        if (this.put % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
    } finally {
      this.#onFinish();
    }
  }
}

/** A client over a bare socket that subscribes and then reads nothing until it is told to. */
class LazyClient {
  readonly #socket: net.Socket;

  private constructor(socket: net.Socket) {
    this.#socket = socket;
  }

  static async open(port: number): Promise<LazyClient> {
    const socket = net.connect(port, "127.0.0.1");
    socket.pause();
    await once(socket, "connect");
    socket.write(
      "GET /api/v1/instances/alpha/ws HTTP/1.1\r\nhost: test\r\nconnection: upgrade\r\nupgrade: websocket\r\n" +
        "sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    );
    const text = Buffer.from('{"subscribe":{"resourceKey":"key"}}');
    // a text frame with a mask of zeros
    socket.write(Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), text]));
    return new LazyClient(socket);
  }

  /** Reads everything up to and with the first text that `isLast` holds of, or to the close frame. */
  async readAll(
    isLast: (text: string) => boolean,
  ): Promise<{ texts: string[]; closeCode: number | undefined }> {
    let bytes = Buffer.alloc(0);
    let isUpgraded = false;
    const texts: string[] = [];
    for await (const chunk of this.#socket) {
      bytes = Buffer.concat([bytes, chunk as Buffer]);
      if (!isUpgraded) {
        const end = bytes.indexOf("\r\n\r\n");
        if (end < 0) continue;
        isUpgraded = true;
        bytes = bytes.subarray(end + 4);
      }
      for (let frame = frameOf(bytes); frame !== undefined; frame = frameOf(bytes)) {
        bytes = bytes.subarray(frame.end);
        if (frame.opcode === 8) return { texts, closeCode: frame.payload.readUInt16BE(0) };
        texts.push(frame.payload.toString());
        if (isLast(texts.at(-1)!)) {
          this.#socket.destroy();
          return { texts, closeCode: undefined };
        }
      }
    }
    return { texts, closeCode: undefined };
  }
}

/** The first frame of a server in some bytes. */
function frameOf(bytes: Buffer): { opcode: number; payload: Buffer; end: number } | undefined {
  if (bytes.length < 10) return bytes.length >= 4 && bytes[0]! === 0x88 ? shortFrame(bytes) : undefined;
  return shortFrame(bytes);
}

function shortFrame(bytes: Buffer): { opcode: number; payload: Buffer; end: number } | undefined {
  const short = bytes[1]! & 0x7f;
  const [head, length] =
    short < 126
      ? [2, short]
      : short === 126
        ? [4, bytes.readUInt16BE(2)]
        : [10, Number(bytes.readBigUInt64BE(2))];
  if (bytes.length < head + length) return undefined;
  return { opcode: bytes[0]! & 0x0f, payload: bytes.subarray(head, head + length), end: head + length };
}

const isEnd = (text: string) => text.startsWith('{"ended"');

test.each([
  ["OLDEST", mostWaiting],
  ["CONFLATE", 1],
] as const)(
  "%s: a client that does not read costs what the kernel holds and the queue; it is told how many it missed",
  async (policy, queue) => {
    const torrent = await Torrent.open(policy);
    try {
      const client = await LazyClient.open(torrent.server.port);
      await torrent.finished;
      expect(torrent.put).toBe(values);
      const { texts } = await client.readAll(isEnd);
      const frames = texts.map((text) => JSON.parse(text)).filter((frame) => frame.values !== undefined);
      // 100 MB were put; what came had all been waiting in the sockets' buffers or the queue
      expect(frames.length * rowBytes).toBeLessThan(30_000_000);
      const dropped = frames.reduce((sum, frame) => sum + Number(frame.values.dropped), 0);
      expect(frames.length + dropped).toBe(values);
      let number = 0;
      for (const frame of frames) {
        number += 1 + Number(frame.values.dropped);
        expect(frame.values.number).toBe(String(number));
      }
      // what was put last is never what is dropped
      expect(number).toBe(values);
      const gap = frames.findLastIndex((frame) => frame.values.dropped !== "0");
      expect(frames.length - gap).toBeLessThanOrEqual(queue);
      const metrics = await (await fetch(`${torrent.server.url}/metrics`)).text();
      expect(metrics).toMatch(new RegExp(`^runvault_live_dropped_total ${dropped}$`, "m"));
    } finally {
      await torrent.server.close();
    }
  },
);

test("NEVER: the connection of a client that does not read is closed, with nothing missing before that", async () => {
  const torrent = await Torrent.open("NEVER");
  try {
    const client = await LazyClient.open(torrent.server.port);
    await torrent.finished;
    expect(torrent.put).toBeLessThan(values);
    const { texts, closeCode } = await client.readAll(isEnd);
    expect(closeCode).toBe(1008);
    const numbers = texts.slice(1).map((text) => Number(JSON.parse(text).values.number));
    expect(numbers).toEqual(numbers.map((_number, index) => index + 1));
    expect(texts.join("")).not.toContain('"dropped":"1"');
  } finally {
    await torrent.server.close();
  }
});

test("a replay goes at the client's pace: it waits, drops nothing and closes nothing", async () => {
  // all of it is read in the end
  const most = values / 2;
  const torrent = await Torrent.open("NEVER", true, most);
  try {
    const client = await LazyClient.open(torrent.server.port);
    // the replay stands still: nothing is put for as long as it takes to serve others
    const { url } = torrent.server;
    for (let before = -1; before !== torrent.put; ) {
      before = torrent.put;
      for (let n = 0; n < 50; n += 1) await (await fetch(`${url}/health`)).text();
    }
    expect(torrent.put).toBeLessThan(most / 2);
    const { texts } = await client.readAll(isEnd);
    const numbers = texts.slice(1, -1).map((text) => Number(JSON.parse(text).values.number));
    expect(numbers).toEqual(Array.from({ length: most }, (_, index) => index + 1));
  } finally {
    await torrent.server.close();
  }
});

test("a server ends although a client does not read", async () => {
  const torrent = await Torrent.open("OLDEST");
  await LazyClient.open(torrent.server.port);
  await torrent.finished;
  await torrent.server.close();
});

test("a client that floods with nonsense and does not read is closed", async () => {
  const torrent = await Torrent.open("NEVER");
  try {
    const socket = net.connect(torrent.server.port, "127.0.0.1");
    socket.pause();
    // the server may be gone while this one still writes
    socket.on("error", () => undefined);
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.write(
      "GET /api/v1/instances/alpha/ws HTTP/1.1\r\nhost: test\r\nconnection: upgrade\r\nupgrade: websocket\r\n" +
        "sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    );
    // refused with an error that repeats the key
    const text = Buffer.from(`{"unsubscribe":{"resourceKey":"${"x".repeat(3_000)}"}}`);
    const head = Buffer.from([0x81, 0x80 | 126, text.length >> 8, text.length & 0xff, 0, 0, 0, 0]);
    const flood = Buffer.concat(Array.from({ length: 300 }, () => [head, text]).flat());
    const metric = async () =>
      /^runvault_live_connections (\d+)$/m.exec(
        await (await fetch(`${torrent.server.url}/metrics`)).text(),
      )![1];
    await expect.poll(metric).toBe("1");
    // the answers come to twice that, more than the kernel takes in for a client
    for (let sent = 0; sent < 25_000_000; sent += flood.length) socket.write(flood);
    await expect.poll(metric).toBe("0");
    socket.resume();
    socket.end();
    await closed;
    // others are served
    using other = await LiveClient.open(`${torrent.server.url.replace("http", "ws")}/instances/alpha/ws`);
    other.sendText("nonsense");
    expect((await other.next()).error).toBeDefined();
  } finally {
    await torrent.server.close();
  }
});

test("an outbox sends one message at a time, in the order in which they came", async () => {
  const sent: string[] = [];
  const gates: (() => void)[] = [];
  const outbox = new LiveOutbox(
    (text) =>
      new Promise((resolve) => {
        sent.push(text);
        gates.push(resolve);
      }),
    () => sent.push("overflow"),
  );
  const one = outbox.stream("OLDEST");
  const other = outbox.stream("CONFLATE");
  one.put(1, () => "a");
  other.put(1, (dropped) => `b${dropped}`);
  one.put(1, () => "c");
  other.put(1, (dropped) => `d${dropped}`);
  expect(sent).toEqual(["a"]);
  for (let n = 0; n < 3; n += 1) {
    gates.shift()!();
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(sent).toEqual(["a", "c", "d1"]);
  const never = outbox.stream("NEVER");
  for (let n = 0; n <= mostWaiting + 1; n += 1) never.put(1, () => "e");
  expect(sent.at(-1)).toBe("overflow");
  expect(await never.putInTurn(1, () => "f")).toBe(false);
  never.put(1, () => "g");
  expect(sent.filter((text) => text === "overflow")).toHaveLength(1);
});
