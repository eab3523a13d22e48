import type { EventEmitter } from "node:events";
import http from "node:http";
import https from "node:https";
import type { Socket } from "node:net";
import { wantsWebSocket } from "../live/live-route.ts";
import type { ConnectionLimits, Connections } from "./connections.ts";
import { newHttp2Server, takeHttp2 } from "./http2-server.ts";

export interface HttpServerOptions {
  /** For TLS, if wanted. */
  readonly tls: https.ServerOptions | undefined;
  readonly connections: Connections;
  readonly limits: ConnectionLimits;
}

// room for a few chunks on their way to the socket, so that reading and sending overlap
const sendBufferBytes = 4 * 1024 * 1024;
/** A little longer than common load balancers keep a connection. */
const keepAliveMs = 72_000;

/** A server for HTTP/1.1 and HTTP/2 on one port that withstands slow, many, and broken requests. */
export function newHttpServer(
  handler: http.RequestListener,
  { tls, connections, limits }: HttpServerOptions,
): http.Server | https.Server {
  const { headMs = 20_000, requestMs = 60_000 } = limits;
  const options = {
    highWaterMark: sendBufferBytes,
    shouldUpgradeCallback: wantsWebSocket,
    headersTimeout: headMs,
    requestTimeout: Math.max(headMs, requestMs),
    // how often Node looks for late requests
    connectionsCheckingInterval: Math.max(10, Math.min(headMs, requestMs) / 4),
    keepAliveTimeout: keepAliveMs,
  };
  const server =
    tls === undefined
      ? http.createServer(options, handler)
      : https.createServer(
          { ...options, ...tls, handshakeTimeout: headMs, ALPNProtocols: ["h2", "http/1.1"] },
          handler,
        );
  const http2 = newHttp2Server(handler, { headMs, requestMs: options.requestTimeout, keepAliveMs });
  const onSilent = (socket: Socket) =>
    server.emit(
      "clientError",
      Object.assign(new Error("silent"), { code: "ERR_HTTP_REQUEST_TIMEOUT" }),
      socket,
    );
  takeHttp2(server, tls !== undefined, { http2, headMs, onSilent });
  connections.watch(server, http2);
  // Node's own does not know WebSockets, HTTP/2, and connections without a protocol yet
  server.closeAllConnections = () => connections.closeAll();
  for (const one of [server, http2]) {
    one.on("request", (request: EventEmitter) => {
      // readers of a body see its error; once nobody reads, an unhandled error would end the process
      request.on("error", () => {});
    });
  }
  return server;
}
