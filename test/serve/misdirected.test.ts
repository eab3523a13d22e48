import { once } from "node:events";
import net from "node:net";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { openGateway } from "../../src/gateway/open-gateway.ts";
import { ErrorCode, GatewayErrorSchema } from "../../src/gen/example/gateway/v1/error_pb.ts";
import { GatewayService } from "../../src/gen/example/gateway/v1/gateway_service_pb.ts";
import { TokenList, tokenLine } from "../../src/serve/auth/token-list.ts";
import { LiveWorld } from "../fixtures/served/live-world.ts";
import { dialects, failure, historyClient, transportTo } from "../fixtures/served/rpc-clients.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";

/** Sends a head as it is, and gives status and body of the answer. */
async function send(
  world: LiveWorld,
  target: string,
  lines: readonly string[],
  version = "1.1",
  method = "GET",
  sent = "",
) {
  const socket = net.connect(world.server.port, "127.0.0.1");
  const parts: Buffer[] = [];
  socket.on("data", (part) => parts.push(part));
  const head = [`${method} ${target} HTTP/${version}`, ...lines, "connection: close"].join("\r\n");
  socket.write(`${head}\r\n\r\n${sent}`);
  await once(socket, "close");
  const answer = Buffer.concat(parts).toString();
  const bodyAt = answer.indexOf("\r\n\r\n") + 4;
  return { status: Number(answer.slice(9, 12)), head: answer.slice(0, bodyAt), body: answer.slice(bodyAt) };
}

const evil = "host: evil.example:8080";

test("without tokens a request to another host gets 421, in the words of its plane", async () => {
  await using world = await LiveWorld.open();
  const history = await send(world, "/api/v1/history/instances", [evil]);
  expect(history.status).toBe(421);
  expect(JSON.parse(history.body)).toEqual({
    ok: false,
    error: {
      code: "misdirected",
      message:
        'this server has no tokens and does not answer to the host "evil.example:8080": use its IP address, or start ' +
        "it with --host-name NAME or --tokens FILE",
    },
  });
  for (const target of ["/api/v1/instances", "/api/v1/doctor", "/metrics", "/discovery", "/no/such/route"]) {
    const control = await send(world, target, [evil]);
    expect([target, control.status]).toEqual([target, 421]);
    expect(JSON.parse(control.body).error).toMatchObject({
      code: "ERROR_CODE_MISDIRECTED",
      message: expect.stringContaining("--host-name"),
    });
  }
  const absolute = await send(world, "http://evil.example/api/v1/history/instances", ["host: localhost"]);
  expect([absolute.status, JSON.parse(absolute.body).ok]).toEqual([421, false]);
});

test("what proxies say of the host changes nothing, nor do two Host headers, an empty one, or none", async () => {
  await using world = await LiveWorld.open();
  const status = async (lines: string[], version?: string) =>
    (await send(world, "/api/v1/instances", lines, version)).status;
  const forwarded = ["x-forwarded-host: localhost", "forwarded: host=localhost", "x-host: localhost"];
  expect(await status([evil, ...forwarded])).toBe(421);
  expect(await status(["host: localhost", "x-forwarded-host: evil.example"])).toBe(200);
  expect(await status(["host: localhost", evil])).toBe(400);
  expect(await status([evil, "host: localhost"])).toBe(400);
  expect(await status(["host:"])).toBe(421);
  expect(await status([])).toBe(400);
  expect(await status([], "1.0")).toBe(421);
  expect(await status(["HOST: LOCALHOST.:1"])).toBe(200);
  expect(await status(["host: [::1]:1"])).toBe(200);
  expect(await status(["host: user@localhost"])).toBe(421);
});

test("/health answers all, over whichever name", async () => {
  await using world = await LiveWorld.open();
  for (const lines of [[evil], ["host:"], ["host: localhost", evil]]) {
    expect((await send(world, "/api/v1/health", lines)).status).toBe(200);
  }
  expect((await send(world, "/api/v1/health/", [evil])).status).toBe(421);
});

test.each(dialects)("a call over %s is refused in its own words", async (dialect) => {
  await using world = await LiveWorld.open();
  const settings = { dialect, headers: { host: "evil.example" } };
  expect(await failure(historyClient(world.server, settings).listInstances({}))).toEqual({
    code: Code.PermissionDenied,
    history: "misdirected",
  });
  const gateway = createClient(GatewayService, transportTo(world.server, { ...settings, place: "base" }));
  const error = ConnectError.from(await gateway.getHealth({}).catch((thrown: unknown) => thrown));
  expect(error.rawMessage).toContain("--host-name");
  expect(error.findDetails(GatewayErrorSchema)[0]?.code).toBe(ErrorCode.MISDIRECTED);
});

test("a call over Connect has the status that HTTP has for it", async () => {
  await using world = await LiveWorld.open();
  const path = "/example.history.v1.HistoryService/ListInstances";
  const call = ["content-type: application/json", "connect-protocol-version: 1", "content-length: 2"];
  const { status, body } = await send(world, path, [evil, ...call], "1.1", "POST", "{}");
  expect([status, JSON.parse(body)]).toEqual([421, expect.objectContaining({ code: "permission_denied" })]);
});

test("a WebSocket is not opened for a page of another host", async () => {
  await using world = await LiveWorld.open();
  const upgrade = [
    "upgrade: websocket",
    "connection: upgrade",
    "sec-websocket-version: 13",
    "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
  ];
  const refused = await send(world, "/api/v1/instances/alpha-1/ws", [evil, ...upgrade]);
  expect([refused.status, refused.head.toLowerCase().includes("sec-websocket-accept")]).toEqual([421, false]);
  using client = await world.connect();
  expect(client).toBeDefined();
});

test("names that were given are answered, and with tokens the token alone counts", async () => {
  await using named = await LiveWorld.open({ serve: { hostNames: ["*.example"] } });
  expect((await send(named, "/api/v1/instances", [evil])).status).toBe(200);
  expect((await send(named, "/api/v1/instances", ["host: example"])).status).toBe(200);
  expect((await send(named, "/api/v1/instances", ["host: evil.test"])).status).toBe(421);
  const token = "0123456789abcdef-every";
  const tokens = TokenList.parse(tokenLine(token, "desk", ["*"]), "tokens");
  await using guarded = await LiveWorld.open({ serve: { tokens } });
  expect((await send(guarded, "/api/v1/instances", [evil])).status).toBe(401);
  const bearer = `authorization: Bearer ${token}`;
  expect((await send(guarded, "/api/v1/instances", [evil, bearer])).status).toBe(200);
});

test.each(["rest", "rpc"] as const)("our own client over %s says what to do", async (transport) => {
  await using world = await LiveWorld.open();
  // the address is an IP address; the header is what a name that resolves to it would send
  const proxy = net.createServer((client) => {
    const upstream = net.connect(world.server.port, "127.0.0.1");
    client.on("data", (data) =>
      upstream.write(data.toString("latin1").replace(/host: [^\r]*/i, evil), "latin1"),
    );
    upstream.pipe(client);
    for (const socket of [client, upstream]) socket.on("error", () => {});
    client.on("close", () => upstream.destroy());
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const { port } = proxy.address() as net.AddressInfo;
  try {
    await using gateway = openGateway(
      { baseUrl: `http://127.0.0.1:${port}/api/v1`, retry: quickRetry({ retries: 0 }) },
      transport,
    );
    const error = await gateway.instances(AbortSignal.timeout(5000)).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: "misdirected",
      exit: 9,
      hint: expect.stringContaining("IP address"),
    });
  } finally {
    proxy.close();
  }
});
