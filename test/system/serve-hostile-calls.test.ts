import { once } from "node:events";
import net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { HostileTarget } from "../fixtures/served/hostile-target.ts";

let target: HostileTarget;
beforeAll(async () => {
  target = await HostileTarget.open();
});
afterAll(async () => {
  await target[Symbol.asyncDispose]();
});

const path = "/example.history.v1.HistoryService/ListInstances";

/** A call over the wire. */
function call(type: string, body: Buffer, { host = "t", more = "" } = {}): Buffer {
  const head = `POST ${path} HTTP/1.1\r\nhost: ${host}\r\ncontent-type: ${type}\r\n${more}`;
  return Buffer.concat([Buffer.from(`${head}content-length: ${body.length}\r\n\r\n`), body]);
}

/** All that comes of some bytes until the server closes the connection, or for some seconds. */
async function exchange(bytes: Buffer): Promise<string> {
  const socket = net.connect(target.port, "127.0.0.1").on("error", () => {});
  let text = "";
  socket.on("data", (part) => {
    text += part;
  });
  // `once` of events would fail where the server closes ahead of the last byte, and the answer would go unread
  const closed = new Promise((resolve) => socket.once("close", resolve));
  socket.write(bytes);
  await Promise.race([closed, sleep(5000)]);
  const isOpen = !socket.destroyed;
  socket.destroy();
  return isOpen ? `still open: ${text}` : text;
}

test("refused calls, one behind the other, whose client resets the connection do not end the server", async () => {
  const calls = Buffer.concat(Array.from({ length: 10 }, () => call("application/x", Buffer.alloc(60_000))));
  for (let times = 20; times > 0; times--) {
    const socket = net.connect(target.port, "127.0.0.1").on("error", () => {});
    socket.write(calls);
    await once(socket, "connect");
    await sleep(times % 10);
    socket.resetAndDestroy();
  }
  expect((await fetch(`${target.url}/health`)).status).toBe(200);
});

test("a call whose body is given up in the middle closes its connection: nothing waits behind it", async () => {
  const body = Buffer.concat([Buffer.from([0, 0, 0, 0, 1]), Buffer.alloc(2_000_000, "[")]);
  const given = call("application/grpc+json", body);
  expect(await exchange(Buffer.concat([given, given]))).toMatch(
    /^HTTP\/1\.1 200 .*\r\nconnection: close\r\n/is,
  );
});

test.each([
  ["a host", 200, { host: "[::1%25lo]:99999" }],
  ["another host", 421, { host: "a b" }],
])("a call to %s that is none gets an answer, %i", async (_what, status, to) => {
  const more = "connection: close\r\n";
  const answer = await exchange(call("application/json", Buffer.from("{}"), { ...to, more }));
  expect(answer.slice(0, 13)).toBe(`HTTP/1.1 ${status} `);
  expect(answer).toContain(status === 200 ? '"instances":' : '"code":"permission_denied"');
});

test("a path that cannot be decoded is refused without repeating the query", async () => {
  for (const bad of ["%ff", "%zz"]) {
    const answer = await fetch(`${target.url}/${bad}?access_token=s3cret`);
    const text = await answer.text();
    expect([bad, answer.status, text.includes("s3cret")]).toEqual([bad, 400, false]);
  }
});

test("after all that nothing is changed, and nothing was logged as a fault of ours", async () => {
  expect(await target.trouble()).toBe("");
  const { status, stderr } = await target.stop();
  expect(status).toBe(0);
  expect(stderr).not.toMatch(/warn|error|internal|Exception/i);
});
