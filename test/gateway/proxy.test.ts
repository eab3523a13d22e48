import { createServer } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import { openRestGateway } from "../../src/gateway/rest/rest-gateway.ts";
import { serveHttp } from "../fixtures/source/gateway-scripted-server.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";

const before = { ...process.env };
afterEach(() => {
  for (const name of ["http_proxy", "https_proxy", "no_proxy"]) {
    if (before[name] === undefined) delete process.env[name];
    else process.env[name] = before[name];
  }
});

/** A proxy that tunnels to wherever it is asked, or refuses. */
async function openProxy(allow: boolean) {
  const asked: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer();
  server.on("connect", (request, socket: Socket) => {
    asked.push(request.url ?? "");
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    if (!allow) {
      socket.end("HTTP/1.1 403 Forbidden\r\n\r\n");
      return;
    }
    const [host = "", port = ""] = (request.url ?? "").split(":");
    const onward = connect(Number(port), host, () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      onward.pipe(socket).pipe(onward);
    });
    sockets.add(onward);
    onward.on("error", () => socket.destroy());
  });
  server.on("request", (request, response) => {
    asked.push(request.url ?? "");
    response.writeHead(allow ? 200 : 403, { "content-type": "application/json" }).end('{"instances":[]}');
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    asked,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

test("a loopback gateway is reached past the proxy unless asked otherwise", async () => {
  await using proxy = await openProxy(true);
  await using server = await serveHttp((_request, response) =>
    response.writeHead(200, { "content-type": "application/json" }).end('{"instances":[]}'),
  );
  process.env.http_proxy = proxy.url;
  process.env.no_proxy = "";
  await using direct = openRestGateway({ baseUrl: server.url, retry: quickRetry({ retries: 0 }) });
  expect(await direct.instances()).toEqual([]);
  expect(proxy.asked).toEqual([]);
  await using proxied = openRestGateway({
    baseUrl: server.url,
    retry: quickRetry({ retries: 0 }),
    proxyLoopback: true,
  });
  expect(await proxied.instances()).toEqual([]);
  expect(proxy.asked.length).toBe(1);
});

test("a gateway elsewhere is reached by the proxy, and a proxy that refuses is an error of its own", async () => {
  await using proxy = await openProxy(false);
  process.env.https_proxy = proxy.url;
  process.env.no_proxy = "";
  await using gateway = openRestGateway({
    baseUrl: "https://gateway.invalid/api/v1",
    retry: quickRetry({ retries: 0 }),
  });
  await expect(gateway.instances()).rejects.toMatchObject({ code: "unreachable" });
  expect(proxy.asked).toEqual(["gateway.invalid:443"]);
});
