import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import net from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { HistoryService } from "../../src/gen/example/history/v1/history_service_pb.ts";
import { tables } from "../../src/model/profile/table.ts";
import { TokenList, tokenLine } from "../../src/serve/auth/token-list.ts";
import { start } from "../fixtures/command/command-process.ts";
import { envelopeFault, HostileTarget, targetRun } from "../fixtures/served/hostile-target.ts";
import { LiveWorld } from "../fixtures/served/live-world.ts";
import { services } from "../fixtures/served/rpc-services.ts";

const own = "0123456789abcdef-alpha";
const every = "0123456789abcdef-every";
const late = "0123456789abcdef-later";
const origin = "https://desk.example";
const { instanceId, runId } = targetRun;

let target: HostileTarget;
let file: string;
beforeAll(async () => {
  target = await HostileTarget.open({
    args: ["--cors", origin],
    prepare: async (folder) => {
      file = join(folder, "tokens");
      await writeFile(file, tokenLine(own, "desk", ["alpha"]) + tokenLine(every, "operator", ["*"]));
      return ["--tokens", file];
    },
  });
  target.headers = { authorization: `Bearer ${every}` };
});
afterAll(async () => {
  await target[Symbol.asyncDispose]();
});

/** Headers that carry no token of the list. */
const wrong: readonly Record<string, string>[] = [
  {},
  { authorization: "" },
  { authorization: "Bearer" },
  { authorization: "Bearer " },
  { authorization: `Bearer ${own}x` },
  { authorization: `Bearer ${own.slice(0, -1)}` },
  { authorization: `Bearer ${own.toUpperCase()}` },
  { authorization: `Bearer ${own} ${own}` },
  { authorization: `Bearer ${own},Bearer ${own}` },
  { authorization: own },
  { authorization: `Basic ${Buffer.from(`desk:${own}`).toString("base64")}` },
  { authorization: "Bearer *" },
  { authorization: "Bearer desk" },
  { authorization: `Bearer ${"x".repeat(8000)}` },
  { authorization: "Bearer ' OR 1=1 --" },
  { "x-authorization": `Bearer ${own}`, "x-forwarded-for": "127.0.0.1" },
  { cookie: `token=${own}` },
];

const run = `instance=${instanceId}&run_id=${runId}`;
const restPaths = [
  "/health",
  "/doctor",
  "/instances",
  `/instances/${instanceId}`,
  `/instances/${instanceId}/health`,
  `/instances/${instanceId}/logs?follow=true`,
  `/instances/${instanceId}/ws`,
  `/runtime/status?instance=${instanceId}`,
  `/runtime/resources?instance=${instanceId}`,
  `/runtime/query/resources?instance=${instanceId}`,
  "/history/instances",
  ...["runs", "summary", "resources", "storage"].map((name) => `/history/${name}?${run}`),
  ...tables.map(({ path }) => `${path}?${run}`),
  "/discovery",
  "/metrics",
  "/metrics/instances/9100",
  "/nothing",
  "/history/nothing",
  "/history/fills?token=1&access_token=1",
];
const callPaths = services.flatMap(({ typeName, methods }) =>
  methods.map(({ name }) => `/${typeName}/${name}`),
);

async function refusal(url: string, init: RequestInit): Promise<string[]> {
  const answer = await fetch(url, init);
  const text = await answer.text();
  const told = [answer.status === 401 ? "" : `status ${answer.status}`, ...target.leaks(text)];
  if (text.includes("beta") || text.includes(runId)) told.push("tells of what is there");
  if (answer.headers.get("www-authenticate") !== "Bearer") told.push("does not say what is wanted");
  const path = new URL(url).pathname.replace("/api/v1", "");
  if (init.method !== "HEAD" && !path.includes(".v1.")) told.push(envelopeFault(path, text));
  return told.filter((fault) => fault !== "").map((fault) => `${init.method} ${url}: ${fault}`);
}

test.each(wrong)("%j opens no route by any method", async (headers) => {
  const faults: string[] = [];
  for (const path of restPaths) {
    // what opens a route by one method would by the others
    const others = headers === wrong[0] || headers === wrong[4] ? ["HEAD", "OPTIONS", "DELETE"] : [];
    for (const method of ["GET", ...others]) {
      faults.push(...(await refusal(`${target.url}${path}`, { method, headers })));
    }
  }
  for (const action of ["start", "stop", "restart", "delete"]) {
    const url = `${target.url}/instances/${instanceId}/${action}`;
    faults.push(...(await refusal(url, { method: "POST", headers, body: "x" })));
  }
  const bare = new URL(target.url).origin;
  for (const path of ["/metrics", "/discovery", "/metrics/instances/1", "/", "/favicon.ico"]) {
    faults.push(...(await refusal(`${bare}${path}`, { method: "GET", headers })));
  }
  expect(faults).toEqual([]);
});

test.each(["", "/api/v1"])(
  "no call at %j is answered without a token, nor is its body read",
  async (prefix) => {
    const faults: string[] = [];
    for (const path of callPaths) {
      for (const [type, body] of [
        ["application/proto", "\xff\xff"],
        ["application/json", "{"],
      ] as const) {
        for (const headers of [wrong[0]!, wrong[4]!]) {
          const url = `${new URL(target.url).origin}${prefix}${path}`;
          const answer = await fetch(url, {
            method: "POST",
            headers: { ...headers, "content-type": type },
            body,
          });
          const { code } = (await answer.json()) as { code: string };
          if (answer.status !== 401 || code !== "unauthenticated")
            faults.push(`${path}: ${answer.status} ${code}`);
        }
      }
    }
    expect(faults).toEqual([]);
  },
);

test("a WebSocket is refused before its upgrade, with a wrong token and with that of another instance", async () => {
  for (const [token, id, status] of [
    [undefined, "alpha", 401],
    [`${own}x`, "alpha", 401],
    [own, "beta", 403],
    [own, "nobody", 403],
    [own, "alpha", 409],
  ] as const) {
    const socket = net.connect(target.port, "127.0.0.1");
    let text = "";
    socket.on("data", (part) => {
      text += part;
    });
    const auth = token === undefined ? "" : `authorization: Bearer ${token}\r\n`;
    socket.write(
      `GET /api/v1/instances/${id}/ws HTTP/1.1\r\nhost: t\r\nconnection: upgrade\r\nupgrade: websocket\r\n` +
        `sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n${auth}\r\n`,
    );
    await once(socket, "close");
    expect([id, token, text.slice(9, 12)]).toEqual([id, token, String(status)]);
  }
});

test("a preflight of an origin that is not listed tells nothing, and one that is opens no other request", async () => {
  const asks = { "access-control-request-method": "GET" };
  const path = `${target.url}/history/fills?${run}`;
  const stranger = await fetch(path, {
    method: "OPTIONS",
    headers: { ...asks, origin: "https://evil.example" },
  });
  expect([stranger.status, stranger.headers.get("access-control-allow-origin")]).toEqual([401, null]);
  const listed = await fetch(path, { method: "OPTIONS", headers: { ...asks, origin } });
  expect([listed.status, await listed.text()]).toEqual([204, ""]);
  // without the header that makes it a preflight it is a request like any other
  expect((await fetch(path, { method: "OPTIONS", headers: { origin } })).status).toBe(401);
  expect((await fetch(path, { headers: { origin } })).status).toBe(401);
});

test("SIGHUP reads the tokens again; a file that is not valid changes nothing", async () => {
  const ask = async (token: string) =>
    (await fetch(`${target.url}/health`, { headers: { authorization: `Bearer ${token}` } })).status;
  const before = await readFile(file, "utf8");
  expect([await ask(own), await ask(late)]).toEqual([200, 401]);
  await writeFile(file, `${before}this is no token\n`);
  target.running.child.kill("SIGHUP");
  await target.running.seen("the tokens file is not valid");
  expect([await ask(own), await ask(late)]).toEqual([200, 401]);
  await writeFile(file, tokenLine(late, "late", ["*"]) + tokenLine(every, "operator", ["*"]));
  target.running.child.kill("SIGHUP");
  await target.running.seen("the tokens were read again");
  expect([await ask(own), await ask(late), await ask(every)]).toEqual([401, 200, 200]);
});

test("a second signal while answers end stops at once", async () => {
  // a call whose body does not come is an answer under way
  const socket = net.connect(target.port, "127.0.0.1").on("error", () => {});
  socket.write(
    `POST /${HistoryService.typeName}/ListRuns HTTP/1.1\r\nhost: t\r\nauthorization: Bearer ${every}\r\n` +
      "content-type: application/proto\r\ncontent-length: 9\r\nexpect: 100-continue\r\n\r\n",
  );
  // told to go on, its head was read
  await once(socket, "data");
  expect(await target.trouble()).toBe("");
  target.running.child.kill("SIGTERM");
  await target.running.seen("another signal stops at once");
  // signals within a second count as one
  await sleep(1_200);
  expect(target.running.child.exitCode).toBe(null);
  const { status, stderr } = await target.stop("SIGTERM");
  // by the system's own hand, which shells show as 143
  expect([status, target.running.child.signalCode]).toEqual([null, "SIGTERM"]);
  for (const secret of [own, every, late]) expect(stderr).not.toContain(secret);
  socket.destroy();
});

test("a token opens the live values of its own instances alone", async () => {
  const text = tokenLine(own, "desk", ["no-such-instance"]) + tokenLine(every, "operator", ["*"]);
  await using world = await LiveWorld.open({
    instances: 2,
    serve: { tokens: TokenList.parse(text, "tokens") },
  });
  const as = (token: string) => ({ authorization: `Bearer ${token}` });
  for (const headers of [{}, as(`${own}x`), as(own)]) {
    await expect(world.connect(undefined, headers)).rejects.toThrow("refused");
  }
  const { instances } = (await world.ask("/instances", { headers: as(every) })).json();
  const [first, second] = instances.map(({ instanceId }: { instanceId: string }) => instanceId);
  const keyOf = async (id: string) =>
    (await world.ask(`/runtime/resources?instance=${id}`, { headers: as(every) })).json().resources[0]
      .resourceKey;
  using client = await world.connect(`/instances/${first}/ws`, as(every));
  client.subscribe(await keyOf(first));
  expect(await client.next()).toHaveProperty("subscribed");
  // a connection is of one instance: the key of another is none of its
  const foreign = await keyOf(second);
  if (foreign !== (await keyOf(first))) {
    client.subscribe(foreign);
    expect((await client.until((frame) => "error" in frame)).at(-1)).toHaveProperty("error");
  }
});

test("simulate takes a tokens file, and either that or a token", async () => {
  const cache = join(target.folder, "cache");
  const args = ["simulate", "--json", "--rows", "200", "--runs", "1", "--cache", cache, "--tokens", file];
  const { child, firstLine, finished } = start(args);
  const { url } = JSON.parse(await firstLine()) as { url: string };
  const ask = async (token: string) =>
    (await fetch(`${url}/instances`, { headers: { authorization: `Bearer ${token}` } })).status;
  expect([await ask(every), await ask(own)]).toEqual([200, 401]);
  child.kill("SIGTERM");
  expect((await finished).status).toBe(0);
  const both = await start([...args, "--token-file", file]).finished;
  expect([both.status, both.stderr]).toEqual([2, expect.stringContaining("cannot be combined")]);
});
