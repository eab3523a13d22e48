import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { Agent, fetch, WebSocket } from "undici";
import { afterAll, afterEach, expect, test } from "vitest";
import { HistoryService } from "../../src/gen/example/history/v1/history_service_pb.ts";
import type { ServeTls } from "../../src/serve/http/tls-options.ts";
import { type Served, serve } from "../../src/serve/server.ts";
import { start } from "../fixtures/command/command-process.ts";
import { requires } from "../fixtures/command/requirement.ts";
import { newAuthority, newCertificate } from "../fixtures/command/tls-files.ts";
import { Http2Session } from "../fixtures/served/http2-client.ts";
import { controlOf } from "../fixtures/served/serve-control.ts";
import { ArraySource, fills } from "../fixtures/served/serve-source.ts";

const folder = mkdtempSync(join(tmpdir(), "runvault-tls-"));
const open: Served[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((served) => served.close()));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const hasOpenssl = requires("openssl");
const made = hasOpenssl ? certificates() : undefined;

function certificates() {
  const authority = newAuthority(folder, "authority");
  return {
    authority,
    server: newCertificate(folder, "server", authority),
    client: newCertificate(folder, "client", authority),
    stranger: newCertificate(folder, "stranger", newAuthority(folder, "elsewhere")),
  };
}

interface ClientTls {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

async function got(url: string, tls: ClientTls): Promise<{ status: number; text: string }> {
  const agent = new Agent({ connect: tls });
  try {
    const response = await fetch(url, { dispatcher: agent });
    return { status: response.status, text: await response.text() };
  } finally {
    await agent.destroy();
  }
}

/** Rows over REST and over RPC, from a client with these certificates. */
async function counted(server: Pick<Served, "url">, tls: ClientTls): Promise<[rest: number, rpc: number]> {
  const { text } = await got(`${server.url}/history/fills?instance=alpha&run_id=r1`, tls);
  const transport = createConnectTransport({ baseUrl: server.url, httpVersion: "1.1", nodeOptions: tls });
  const { rows } = await createClient(HistoryService, transport).listMarketBars({
    selection: { instanceId: "alpha", runId: "r1" },
  });
  return [text.trimEnd().split("\n").length, rows.length];
}

async function served(tls: ServeTls): Promise<Served> {
  const source = new ArraySource({ fills: fills(3), bars: [] });
  const server = await serve({ source, host: "127.0.0.1", port: 0, tls });
  open.push(server);
  return server;
}

test.skipIf(!hasOpenssl)("REST and RPC are served over TLS to whoever trusts the authority", async () => {
  const { authority, server: pair, stranger } = made!;
  const server = await served(pair);
  expect(server.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+\/api\/v1$/);
  expect(await counted(server, { ca: authority.cert })).toEqual([3, 0]);
  await expect(counted(server, {})).rejects.toThrow();
  await expect(counted(server, { ca: stranger.cert })).rejects.toThrow();
});

test.skipIf(!hasOpenssl)("HTTP/2 is offered over TLS, for gRPC and for rows", async () => {
  const { authority, server: pair } = made!;
  const server = await served(pair);
  const ca = authority.cert;
  const transport = createGrpcTransport({ baseUrl: new URL(server.url).origin, nodeOptions: { ca } });
  const { rows } = await createClient(HistoryService, transport).previewTable({
    table: "fills",
    selection: { instanceId: "alpha", runId: "r1" },
  });
  expect(rows).toHaveLength(3);
  await using client = new Http2Session(server, { ca });
  const answer = await client.ask("/api/v1/history/fills?instance=alpha&run_id=r1");
  expect([answer.status, answer.body.trimEnd().split("\n").length]).toEqual([200, 3]);
  expect((client.session.socket as TLSSocket).alpnProtocol).toBe("h2");
});

test.skipIf(!hasOpenssl)(
  "a client certificate of the right authority is wanted where that is asked for",
  async () => {
    const { authority, server: pair, client, stranger } = made!;
    const server = await served({ ...pair, clientCa: authority.cert });
    const ca = authority.cert;
    expect(await counted(server, { ca, cert: client.cert, key: client.key })).toEqual([3, 0]);
    await expect(counted(server, { ca })).rejects.toThrow();
    await expect(counted(server, { ca, cert: stranger.cert, key: stranger.key })).rejects.toThrow();
  },
);

test.skipIf(!hasOpenssl)("a key of another certificate, and texts that are none, are refused", async () => {
  const { server: pair, client } = made!;
  for (const tls of [
    { cert: pair.cert, key: client.key },
    { cert: "none", key: pair.key },
    { cert: pair.cert, key: "" },
    { ...pair, clientCa: "" },
    { ...pair, clientCa: pair.key },
  ]) {
    await expect(served(tls)).rejects.toMatchObject({
      code: "invalid_argument",
      hint: expect.stringContaining("PEM"),
    });
  }
});

test.skipIf(!hasOpenssl)(
  "simulate serves over TLS with client certificates, the transports asked for",
  async () => {
    const { authority, server: pair, client } = made!;
    const world = ["--rows", "300", "--runs", "1", "--cache", join(folder, "worlds"), "--transports", "rpc"];
    const tls = [
      "--tls-cert",
      pair.certFile,
      "--tls-key",
      pair.keyFile,
      "--tls-client-ca",
      authority.certFile,
    ];
    const simulator = start(["simulate", ...world, ...tls]);
    try {
      const url = await simulator.firstLine();
      expect(url).toMatch(/^https:/);
      const nodeOptions = { ca: authority.cert, cert: client.cert, key: client.key };
      const transport = createConnectTransport({ baseUrl: url, httpVersion: "1.1", nodeOptions });
      const history = createClient(HistoryService, transport);
      expect(await history.getDatasource({})).toMatchObject({ kind: "simulator", available: true });
      expect((await got(`${url}/history/instances`, nodeOptions)).status).toBe(404);
      expect((await got(`${url}/health`, nodeOptions)).status).toBe(200);
    } finally {
      simulator.child.kill("SIGTERM");
      await simulator.finished;
    }
  },
);

test.each([
  [["--transports", "rcp"], "did you mean rpc?"],
  [["--tls-cert", "/nothing/x.pem", "--tls-key", "/nothing/x.key"], "cannot be read"],
])("simulate %j is wrong usage", async (args, says) => {
  const { status, stderr } = await start(["simulate", ...args]).finished;
  expect([status, stderr]).toEqual([2, expect.stringContaining(says)]);
});

test.skipIf(!hasOpenssl)("WebSockets and discovery go over TLS as everything else does", async () => {
  const { authority, server } = made!;
  const served = await serve({
    source: new ArraySource({ fills: fills(1) }),
    control: {
      ...controlOf({ instanceId: "alpha", currentRunId: "r1" }),
      status: async () => ({ transport: { connected: true }, capabilities: { subscriptions: true } }),
    },
    host: "127.0.0.1",
    port: 0,
    tls: { cert: server.cert, key: server.key },
  });
  open.push(served);
  const ca = authority.cert;
  const { text } = await got(`${served.url}/discovery`, { ca });
  expect(JSON.parse(text)).toEqual([
    {
      targets: [`127.0.0.1:${served.port}`],
      labels: { __scheme__: "https", __metrics_path__: "/metrics" },
    },
  ]);
  const agent = new Agent({ connect: { ca } });
  const socket = new WebSocket(`${served.url.replace("https", "wss")}/instances/alpha/ws`, {
    dispatcher: agent,
  });
  const message = new Promise<string>((resolve, reject) => {
    socket.addEventListener("message", ({ data }) => resolve(String(data)));
    socket.addEventListener("error", () => reject(new Error("refused")));
  });
  socket.addEventListener("open", () => socket.send('{"subscribe":{"resourceKey":"k"}}'));
  expect(JSON.parse(await message).error.error).toMatchObject({
    code: "ERROR_CODE_CAPABILITY_UNAVAILABLE",
    capability: "subscriptions",
  });
  socket.close();
  await agent.destroy();
});
