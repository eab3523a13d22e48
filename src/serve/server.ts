import { createHash, timingSafeEqual } from "node:crypto";
import type { AddressInfo } from "node:net";
import { type FastifyReply, type FastifyRequest, fastify } from "fastify";
import type { ControlPlane } from "../model/control.ts";
import { RunvaultError } from "../model/error.ts";
import type { HistorySource } from "../model/source.ts";
import { ArmedFaults } from "./armed-faults.ts";
import { controlRoutes } from "./control-routes.ts";
import { Drain } from "./drain.ts";
import { errorAnswer, requestError } from "./envelope.ts";
import type { Fault } from "./fault.ts";
import { FaultySource } from "./faulty-source.ts";
import { historyRoutes, pathOf } from "./history-routes.ts";
import { lifecycleRoutes } from "./lifecycle-routes.ts";
import { acceptWebSockets, closeRefusedUpgrade, liveRoute, wantsWebSocket } from "./live-route.ts";
import { logRoutes } from "./log-routes.ts";
import { monitoringRoutes } from "./monitoring-routes.ts";
import type { RequestLogEntry } from "./request-log.ts";
import type { RawQuery } from "./row-query.ts";
import { serviceMetrics } from "./service-metrics.ts";

export interface ServeOptions {
  /** Stays the caller's: closing the server does not dispose of it. */
  readonly source: HistorySource;
  /** Without it, /health and the service's own metrics are all there is of the control and live planes. */
  readonly control?: ControlPlane;
  readonly host: string;
  /** 0 is any free port. */
  readonly port: number;
  /**
   * Only what the interface document itself shows on REST: no /history/runs, /history/resources, /history/storage, no
   * health of an instance, no WebSocket.
   */
  readonly literal?: boolean;
  readonly faults?: readonly Fault[];
  /** When set, every request needs `Authorization: Bearer` with it. */
  readonly token?: string;
  /** Most rows of one answer, whatever was asked for; nothing tells the client. */
  readonly maxRowsPerAnswer?: number;
  /** Told of every answer just before it ends; counting rows for it costs a look at every byte. */
  readonly onRequest?: (entry: RequestLogEntry) => void;
  /** Told why an answer failed where the client is at most told that it did. Default: a warning of the process. */
  readonly onError?: (error: RunvaultError) => void;
  /** Honour Accept-Encoding gzip and zstd on rows. */
  readonly compress?: boolean;
}

export interface Served {
  /** Ends in /api/v1. */
  readonly url: string;
  readonly port: number;
  /** Lets the rows that `late` faults hold back appear. */
  releaseLate(): void;
  /** Cuts the answers under way and frees the port. */
  close(): Promise<void>;
}

const basePath = "/api/v1";
// room for a few of a source's chunks on their way to the socket, so that reading and sending overlap
const sendBufferBytes = 4 * 1024 * 1024;

/** How long answers without an end of their own have to end with the server. */
const drainMs = 1000;

/** Serves a source on the gateway's REST interface. Throws `invalid_argument` when the address cannot be listened on. */
export async function serve(options: ServeOptions): Promise<Served> {
  const { onRequest, token } = options;
  const onError =
    options.onError ?? ((error: RunvaultError) => process.emitWarning(`${error.code}: ${error.message}`));
  const faults = new ArmedFaults(options.faults ?? []);
  const source = new FaultySource(options.source, faults);
  const app = fastify({
    exposeHeadRoutes: false,
    forceCloseConnections: true,
    routerOptions: { maxParamLength: 4096 },
    http: { highWaterMark: sendBufferBytes, shouldUpgradeCallback: wantsWebSocket },
    frameworkErrors: (error, request, reply) => {
      const { status, headers, body } = errorAnswer(planeOf(request.url), requestError(error));
      closeRefusedUpgrade(request as FastifyRequest, reply as FastifyReply);
      void (reply as FastifyReply).code(status).headers(headers).send(body);
    },
  });

  // ahead of every hook that may refuse a request, for it also closes what is refused
  await acceptWebSockets(app);
  app.addHook("onRequest", async (request) => {
    if (token !== undefined && !isBearer(request.headers.authorization, token)) {
      throw new RunvaultError("unauthenticated", "this server wants Authorization: Bearer with its token");
    }
  });
  if (onRequest !== undefined) {
    app.addHook("onSend", async (request, reply, payload) => {
      onRequest({
        method: request.method,
        path: pathOf(request),
        query: request.query as RawQuery,
        status: reply.statusCode,
        ending: "whole",
        rows: 0,
        bytes: typeof payload === "string" || Buffer.isBuffer(payload) ? Buffer.byteLength(payload) : 0,
      });
    });
  }
  app.setErrorHandler((thrown, request, reply) => {
    const error = requestError(thrown);
    if (error.code === "internal" && error.status === undefined) onError(error);
    const { status, headers, body } = errorAnswer(planeOf(request.url), error);
    return reply.code(status).headers(headers).send(body);
  });
  app.setNotFoundHandler((request) => {
    throw new RunvaultError("route_not_found", `there is no route ${request.method} ${pathOf(request)}`);
  });
  const { control, literal = false } = options;
  const drain = new Drain();
  app.addHook("preClose", () => drain.end(drainMs));
  const metrics = serviceMetrics(app);
  monitoringRoutes(app, { control, metrics });
  await app.register(
    async (routes) => {
      controlRoutes(routes, { control, source, literal });
      monitoringRoutes(routes, { control, metrics });
      if (control !== undefined) {
        logRoutes(routes, { control, drain, onRequest, onError });
        await routes.register(async (scope) => lifecycleRoutes(scope, control));
        if (!literal) liveRoute(routes, { control, metrics, onError });
      }
      historyRoutes(routes, {
        source,
        faults,
        literal,
        maxRowsPerAnswer: options.maxRowsPerAnswer,
        compress: options.compress ?? false,
        onRequest,
        onError,
      });
    },
    { prefix: basePath },
  );

  try {
    await app.listen({ host: options.host, port: options.port });
  } catch (error) {
    await app.close();
    throw new RunvaultError("invalid_argument", `cannot listen on ${options.host}:${options.port}`, {
      cause: error,
      hint: "Choose another --port, or 0 for any free one.",
    });
  }
  const { port } = app.server.address() as AddressInfo;
  const host = options.host.includes(":") ? `[${options.host}]` : options.host;
  return {
    url: `http://${host}:${port}${basePath}`,
    port,
    releaseLate: () => source.release(),
    close: () => app.close(),
  };
}

function planeOf(url: string): "history" | "control" {
  return /^\/api\/v1\/history(?:[/?]|$)/.test(url) ? "history" : "control";
}

/** Compared by digest, so that the time it takes says nothing of the token. */
function isBearer(header: string | undefined, token: string): boolean {
  const given = /^bearer (.+)$/i.exec(header ?? "")?.[1] ?? "";
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(token));
}
