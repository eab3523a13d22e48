import type { AddressInfo } from "node:net";
import { setImmediate } from "node:timers/promises";
import type { FastifyPluginAsync, FastifyRequest } from "fastify";
import type { ControlPlane } from "../model/control.ts";
import { RunvaultError } from "../model/error.ts";
import type { FileSource } from "../model/file-source.ts";
import type { RowForm } from "../model/row-answer.ts";
import type { HistorySource } from "../model/source.ts";
import { allowedControl, allowedSource } from "./auth/allowed-instances.ts";
import { refuseOtherHosts, refuseOthers, scopeRequests } from "./auth/callers.ts";
import { allowOrigins } from "./auth/cross-origin.ts";
import { HostNames } from "./auth/host-names.ts";
import { type RequestScope, requestScope } from "./auth/request-scope.ts";
import { TokenList } from "./auth/token-list.ts";
import { controlRoutes } from "./control/control-routes.ts";
import { lifecycleRoutes } from "./control/lifecycle-routes.ts";
import { logRoutes } from "./control/log-routes.ts";
import { errorAnswer } from "./envelope.ts";
import { filesRoutes } from "./files/files-routes.ts";
import { CursorPool } from "./history/cursor-pool.ts";
import { historyRoutes } from "./history/history-routes.ts";
import { limitedAnswers, limitedChecksums, type ServeLimits, timedSource } from "./history/limited-source.ts";
import { PageTokens } from "./history/page-token.ts";
import { cannotListen } from "./http/cannot-listen.ts";
import {
  type ConnectionLimits,
  Connections,
  tooManyConnections,
  usualConnections,
} from "./http/connections.ts";
import { Drain } from "./http/drain.ts";
import { dropIdleReader } from "./http/idle-reader.ts";
import { givenQueryOf, pathOf } from "./http/request-target.ts";
import type { ServeTls } from "./http/tls-options.ts";
import { acceptWebSockets, liveRoute } from "./live/live-route.ts";
import { atMostEvery } from "./monitoring/at-most-every.ts";
import { type Listening, monitoringRoutes, reachedBy } from "./monitoring/monitoring-routes.ts";
import { QuerySlots } from "./monitoring/query-slots.ts";
import type { RequestLogEntry } from "./monitoring/request-log.ts";
import { serviceMetrics } from "./monitoring/service-metrics.ts";
import { serviceRoutes } from "./monitoring/service-routes.ts";
import { newApp, planeOf, refuseUnknownRoutes } from "./new-app.ts";
import type { DocumentedRoute } from "./openapi.ts";
import { rpcHandlers, rpcRoutes } from "./rpc/rpc-routes.ts";
import { type Transport, transports } from "./transport.ts";
import type { WireHook } from "./wire-hook.ts";

export interface ServeOptions {
  /** Belongs to the caller: closing the server does not dispose it. */
  readonly source: HistorySource;
  /** Without it, the control and live planes consist only of /health and the service's own metrics. */
  readonly control?: ControlPlane;
  /** Parquet files to serve below /files; without it the route does not exist. */
  readonly files?: FileSource;
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  /**
   * Only the history that the interface document has on REST: no /history/runs, /history/resources, /history/storage.
   */
  readonly literal?: boolean;
  /** Changes a source's answers. Without it, they are as in the source. */
  readonly wire?: (source: HistorySource) => WireHook;
  /** If set, every request needs `Authorization: Bearer` with it. */
  readonly token?: string;
  /** If set, every request needs one of these instead, and sees only that token's instances. */
  readonly tokens?: TokenList;
  readonly limits?: ServeLimits;
  /**
   * Without tokens: host names to answer besides the safe ones, such as `archive.example` and `*.svc.cluster.local`.
   * `host` is one of them.
   */
  readonly hostNames?: readonly string[];
  /** Origins whose pages may read the answers, such as `https://desk.example`. */
  readonly origins?: readonly string[];
  /** Most rows of one answer, whatever was requested; the client is not told. */
  readonly maxRowsPerAnswer?: number;
  /** Called for every answer just before it ends; counting its rows reads every byte. */
  readonly onRequest?: (entry: RequestLogEntry, scope: RequestScope | undefined) => void;
  /** Called when an answer failed, because clients learn at most that it did. Default: a process warning. */
  readonly onError?: (error: RunvaultError) => void;
  /** Use Accept-Encoding: gzip and zstd for rows over REST, gzip over RPC. */
  readonly compress?: boolean;
  readonly connections?: ConnectionLimits;
  /** Row formats of the source, for the OpenAPI document. Default: NDJSON alone. */
  readonly forms?: readonly RowForm[];
  /** How long a client may read nothing of an answer before it is dropped. Default: 300,000. */
  readonly idleReaderMs?: number;
  /**
   * Default: both; if literal, `rest`, because RPC has everything that REST then leaves out. Without `rest`, only
   * /health and monitoring remain of it.
   */
  readonly transports?: readonly Transport[];
  /** What clients are told about this service. */
  readonly about?: About;
  /** How long a source's answer is kept open for the next page of an RPC listing. Default: 30,000. */
  readonly cursorIdleMs?: number;
  /** Seals page tokens, at least 32 bytes; servers with the same key accept each other's. Default: a new key. */
  readonly pageKey?: Uint8Array;
  /** Without it, plain HTTP. */
  readonly tls?: ServeTls;
}

export interface About {
  /** Name of the service. */
  readonly name: string;
  readonly version: string;
  /** The kind of store, such as simulator or archive. */
  readonly kind: string;
}

export interface Served {
  /** Ends in /api/v1. */
  readonly url: string;
  readonly port: number;
  /**
   * Refuses further requests as temporarily unavailable, and ends endless answers. Resolves when answers in progress
   * have ended, or after this time; returns how many have not. The port stays taken until `close`.
   */
  drain(withinMs: number): Promise<number>;
  /** Cuts answers in progress, frees the port, and resolves when their ends are logged. */
  close(): Promise<void>;
}

const basePath = "/api/v1";
const mostCursors = 32;
// a source may return a segment of 64 MiB in one piece
const mostCursorBytes = 256 * 1024 * 1024;
const usualCursorIdleMs = 30_000;
const usualIdleReaderMs = 300_000;

/** Interval of warnings that there is no room for more connections. */
const fullToldMs = 60_000;

/** Time for endless answers to end with the server. */
const drainMs = 1000;

/**
 * Serves a source on the gateway's interface, REST and RPC. Throws `invalid_argument` if the address cannot be listened
 * on.
 */
export async function serve(options: ServeOptions): Promise<Served> {
  const { token, literal = false, limits = {} } = options;
  const tokens = options.tokens ?? (token === undefined ? undefined : TokenList.single(token));
  const control = options.control && tokens ? allowedControl(options.control) : options.control;
  const given = tokens === undefined ? options.source : allowedSource(options.source);
  const slots = limits.queries === undefined ? undefined : new QuerySlots(limits.queries);
  const log = options.onRequest;
  const onRequest = log && ((entry: RequestLogEntry) => log(entry, requestScope.getStore()));
  const offered = options.transports ?? (literal ? ["rest"] : transports);
  const onError =
    options.onError ?? ((error: RunvaultError) => process.emitWarning(`${error.code}: ${error.message}`));
  const timed = limits.queryMs === undefined ? given : timedSource(given, limits.queryMs);
  const checked = limitedChecksums(timed, limits);
  const wire = options.wire?.(checked);
  const { rest: source, rpc: messages } = wire?.sources ?? { rest: checked, rpc: checked };
  const { most = usualConnections(), ...patience } = options.connections ?? {};
  const tellFull = atMostEvery(fullToldMs, () => onError(tooManyConnections(most)));
  const connections = new Connections(most, () => {
    metrics.refused.inc();
    tellFull();
  });
  const idleReaderMs = options.idleReaderMs ?? usualIdleReaderMs;
  const onRefused = (entry: RequestLogEntry, client: string) => {
    try {
      log?.(entry, { caller: null, refusal: undefined, client, startedMs: performance.now() });
    } catch (error) {
      // it is refused anyway
      onError(RunvaultError.from(error));
    }
  };
  const about = options.about ?? { name: given.label, version: "", kind: "history" };
  const app = newApp({
    tls: options.tls,
    exposesHead: !literal,
    connections,
    limits: patience,
    onRefused,
    onError,
  });
  const metrics = serviceMetrics(app);
  const isCall = (request: FastifyRequest) => request.routeOptions.config?.doc === "rpc";
  const documented: DocumentedRoute[] = [];
  // before every hook that may refuse a request, because it also closes refused ones
  await acceptWebSockets(app);
  const answers = new Drain();
  let isDraining = false;
  scopeRequests(app, tokens, new HostNames([...(options.hostNames ?? []), options.host]));
  if (options.origins !== undefined) allowOrigins(app, options.origins);
  app.addHook("onRequest", async (request, reply) => {
    if (isDraining) {
      reply.raw.setHeader("connection", "close");
      // calls are refused in their own protocol
      if (isCall(request)) return;
      throw stopping();
    }
    // a WebSocket connection has no answer to end
    if (request.ws) return;
    answers.add(new Promise((resolve) => reply.raw.once("close", resolve)));
    dropIdleReader(reply.raw, idleReaderMs, onError);
  });
  if (tokens === undefined) refuseOtherHosts(app, isCall);
  else refuseOthers(app, isCall);
  refuseUnknownRoutes(app);
  if (onRequest !== undefined) {
    app.addHook("onSend", async (request, reply, payload) => {
      try {
        onRequest({
          method: request.method,
          path: pathOf(request),
          query: givenQueryOf(request),
          status: reply.statusCode,
          ending: reply.raw.destroyed ? "left" : "whole",
          rows: 0,
          bytes:
            request.method === "HEAD"
              ? 0
              : typeof payload === "string" || Buffer.isBuffer(payload)
                ? Buffer.byteLength(payload)
                : 0,
        });
        return payload;
      } catch (error) {
        // if thrown from here, fastify would answer with its own message
        onError(RunvaultError.from(error));
        const failed = new RunvaultError("internal", "the answer could not be logged");
        const { status, headers, body } = errorAnswer(planeOf(request.url), failed);
        reply.code(status).type("application/json; charset=utf-8").headers(headers);
        return JSON.stringify(body);
      }
    });
  }
  const handling = new Drain();
  app.addHook("onRoute", (route) => {
    const { handler, config: { doc } = {} } = route;
    // the document is generated from the routes, so none can be missing
    if (doc === undefined) throw new Error(`the route ${route.url} has no description`);
    const methods = [route.method].flat();
    if (doc !== "rpc") documented.push(...methods.map((method) => ({ method, url: route.url, doc })));
    route.handler = function (request, reply) {
      const answered: unknown = handler.call(this, request, reply);
      // a handler whose answer was cut is still working, and must log its end
      if (answered instanceof Promise) handling.add(answered);
      return answered;
    };
  });
  const drain = new Drain();
  app.addHook("preClose", async () => {
    await drain.end(drainMs);
  });
  const listening = (): Listening => ({
    host: options.host,
    port: (app.server.address() as AddressInfo).port,
    usualPort: options.tls === undefined ? 80 : 443,
  });
  serviceRoutes(app, {
    ...about,
    transports: offered,
    basePath,
    routes: documented,
    hasTokens: tokens !== undefined,
    forms: options.forms ?? ["ndjson"],
  });
  monitoringRoutes(app, { control, listening, metrics });
  const rest: FastifyPluginAsync = async (routes) => {
    const hasRest = offered.includes("rest");
    controlRoutes(routes, { control: hasRest ? control : undefined, source });
    monitoringRoutes(routes, { control, listening, metrics });
    if (!hasRest) return;
    if (control !== undefined) {
      logRoutes(routes, { control, drain, onRequest, onError });
      await routes.register(async (scope) => lifecycleRoutes(scope, control));
      liveRoute(routes, { control, metrics, onError, onRequest });
    }
    const isLimited = limits.rows !== undefined || limits.bytes !== undefined || slots !== undefined;
    historyRoutes(routes, {
      source: isLimited ? limitedAnswers(source, limits, slots) : source,
      wire,
      literal,
      maxRowsPerAnswer: options.maxRowsPerAnswer,
      compress: options.compress ?? false,
      onRequest,
      onError,
    });
    if (options.files !== undefined && !literal) {
      const hasTokens = tokens !== undefined;
      const { files } = options;
      filesRoutes(routes, { files, source, listening, hasTokens, limits, slots, onRequest, onError });
    }
  };
  await app.register(rest, { prefix: basePath });
  const idleMs = options.cursorIdleMs ?? usualCursorIdleMs;
  const cursors = new CursorPool({ most: mostCursors, mostBytes: mostCursorBytes, idleMs, onError });
  app.addHook("onClose", () => cursors[Symbol.asyncDispose]());
  if (offered.includes("rpc")) {
    const handlers = rpcHandlers({
      ...about,
      features: [
        ...offered,
        "history",
        ...(control?.isLive && offered.includes("rest") ? ["websocket"] : []),
        "metrics",
      ],
      source: messages,
      wire,
      cursors,
      pageTokens: new PageTokens(options.pageKey),
      control,
      address: (host) => reachedBy(host, listening()),
      refusal: () => (isDraining ? stopping() : requestScope.getStore()?.refusal),
      hasTokens: tokens !== undefined,
      slots,
      maxRowsPerAnswer: options.maxRowsPerAnswer ?? limits.rows,
      compress: options.compress ?? false,
      onRequest,
      onError,
    });
    const rpc: FastifyPluginAsync = async (routes) =>
      rpcRoutes(routes, handlers, { onRequest, onError, wire });
    for (const prefix of ["", basePath]) await app.register(rpc, { prefix });
  }

  try {
    await app.listen({ host: options.host, port: options.port });
  } catch (error) {
    await app.close();
    throw cannotListen(options.host, options.port, error);
  }
  const { port } = app.server.address() as AddressInfo;
  const host = options.host.includes(":") ? `[${options.host}]` : options.host;
  return {
    url: `${options.tls === undefined ? "http" : "https"}://${host}:${port}${basePath}`,
    port,
    drain: async (withinMs) => {
      isDraining = true;
      await drain.end(drainMs);
      return await answers.end(withinMs);
    },
    close: async () => {
      await app.close();
      await handling.end(drainMs);
      // results of handlers go through the hooks, including the log, in the next turn
      await setImmediate();
    },
  };
}

function stopping(): RunvaultError {
  return new RunvaultError("unreachable", "the server is stopping", { retryAfterMs: 1000 });
}
