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
  /** Stays the caller's: closing the server does not dispose of it. */
  readonly source: HistorySource;
  /** Without it, /health and the service's own metrics are all there is of the control and live planes. */
  readonly control?: ControlPlane;
  /** Parquet to be read in place, below /files; without it there is no such route. */
  readonly files?: FileSource;
  readonly host: string;
  /** 0 is any free port. */
  readonly port: number;
  /**
   * Of history only what the interface document itself shows on REST: no /history/runs, /history/resources,
   * /history/storage.
   */
  readonly literal?: boolean;
  /** Changes what goes out of a source. Without it, answers are what the source holds. */
  readonly wire?: (source: HistorySource) => WireHook;
  /** When set, every request needs `Authorization: Bearer` with it. */
  readonly token?: string;
  /** When set, every request needs one of these instead, and sees no more than the instances that are the token's. */
  readonly tokens?: TokenList;
  readonly limits?: ServeLimits;
  /**
   * Without tokens: host names to answer to beside those that no page can take, such as `archive.example` and
   * `*.svc.cluster.local`. `host` is one of them.
   */
  readonly hostNames?: readonly string[];
  /** Origins whose pages may read the answers, such as `https://desk.example`. */
  readonly origins?: readonly string[];
  /** Most rows of one answer, whatever was asked for; nothing tells the client. */
  readonly maxRowsPerAnswer?: number;
  /** Told of every answer just before it ends; counting rows for it costs a look at every byte. */
  readonly onRequest?: (entry: RequestLogEntry, scope: RequestScope | undefined) => void;
  /** Told why an answer failed where the client is at most told that it did. Default: a warning of the process. */
  readonly onError?: (error: RunvaultError) => void;
  /** Honour Accept-Encoding: gzip and zstd on rows over REST, gzip over RPC. */
  readonly compress?: boolean;
  readonly connections?: ConnectionLimits;
  /** Forms of rows that the source has, for the document of the interface. Default: NDJSON alone. */
  readonly forms?: readonly RowForm[];
  /** How long a client may take nothing of an answer before it is dropped. Default: 300,000. */
  readonly idleReaderMs?: number;
  /**
   * Default: both; when literal `rest`, since RPC has what REST then leaves out. Without `rest`, /health and what is
   * for monitoring are all that is left of it.
   */
  readonly transports?: readonly Transport[];
  /** What clients are told that this is. */
  readonly about?: About;
  /** How long an answer of the source is kept open for the next page of an RPC listing. Default: 30,000. */
  readonly cursorIdleMs?: number;
  /** Seals page tokens, 32 bytes at least; servers with the same key take each other's. Default: one of its own. */
  readonly pageKey?: Uint8Array;
  /** Without it, plain HTTP. */
  readonly tls?: ServeTls;
}

export interface About {
  /** Name of the service. */
  readonly name: string;
  readonly version: string;
  /** What the store is built on, such as simulator or archive. */
  readonly kind: string;
}

export interface Served {
  /** Ends in /api/v1. */
  readonly url: string;
  readonly port: number;
  /**
   * Refuses requests from now on, as out of reach for the moment, and ends what has no end of its own. Resolves when
   * the answers under way have ended, or after that long; gives how many have not. The port stays taken until `close`.
   */
  drain(withinMs: number): Promise<number>;
  /** Cuts the answers under way, frees the port, and resolves when the ends of those answers are logged. */
  close(): Promise<void>;
}

const basePath = "/api/v1";
const mostCursors = 32;
// a source may give a segment of 64 MiB in one piece
const mostCursorBytes = 256 * 1024 * 1024;
const usualCursorIdleMs = 30_000;
const usualIdleReaderMs = 300_000;

/** How often it is told that there is no room for more connections. */
const fullToldMs = 60_000;

/** How long answers without an end of their own have to end with the server. */
const drainMs = 1000;

/**
 * Serves a source on the gateway's interface, REST and RPC. Throws `invalid_argument` when the address cannot be
 * listened on.
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
      // it is a refusal anyway
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
  // ahead of every hook that may refuse a request, for it also closes what is refused
  await acceptWebSockets(app);
  const answers = new Drain();
  let isDraining = false;
  scopeRequests(app, tokens, new HostNames([...(options.hostNames ?? []), options.host]));
  if (options.origins !== undefined) allowOrigins(app, options.origins);
  app.addHook("onRequest", async (request, reply) => {
    if (isDraining) {
      reply.raw.setHeader("connection", "close");
      // calls are refused in the words of their protocol
      if (isCall(request)) return;
      throw stopping();
    }
    // a connection that is a WebSocket has no answer to end
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
        // thrown from here it would be answered in fastify's own words
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
    // the document is made of the routes, so that none can be missing from it
    if (doc === undefined) throw new Error(`the route ${route.url} has no description`);
    const methods = [route.method].flat();
    if (doc !== "rpc") documented.push(...methods.map((method) => ({ method, url: route.url, doc })));
    route.handler = function (request, reply) {
      const answered: unknown = handler.call(this, request, reply);
      // one whose answer is cut is still at work, and has its end to log
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
      // what a handler gave or threw goes through the hooks, the log among them, in the turn after it
      await setImmediate();
    },
  };
}

function stopping(): RunvaultError {
  return new RunvaultError("unreachable", "the server is stopping", { retryAfterMs: 1000 });
}
