import { METHODS, type RequestListener } from "node:http";
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from "fastify";
import { RunvaultError } from "../model/error.ts";
import { errorAnswer, isForOwner, requestError } from "./envelope.ts";
import { answerBrokenRequest } from "./http/broken-request.ts";
import { type HttpServerOptions, newHttpServer } from "./http/http-server.ts";
import { pathOf } from "./http/request-target.ts";
import { type ServeTls, tlsOptions } from "./http/tls-options.ts";
import { closeRefusedUpgrade } from "./live/live-route.ts";
import type { RequestLogEntry } from "./monitoring/request-log.ts";

export interface AppOptions extends Omit<HttpServerOptions, "tls"> {
  readonly tls: ServeTls | undefined;
  /** Whether GET routes also answer HEAD. */
  readonly exposesHead: boolean;
  /** Called for every answer that runs no hooks, with the client's address. */
  readonly onRefused: (entry: RequestLogEntry, client: string) => void;
  /** Called for errors that concern the server's owner. */
  readonly onError: (error: RunvaultError) => void;
}

/** A server without routes, whose errors use their plane's envelope. Throws errors of `tlsOptions`. */
export function newApp({ tls, exposesHead, onRefused, onError, ...http }: AppOptions): FastifyInstance {
  const secure = tls && tlsOptions(tls);
  /** Answers and reports a request that runs no hooks. */
  const refusal = (
    asked: { readonly method: string; readonly url: string; readonly ip: string },
    error: RunvaultError,
  ) => {
    const { status, headers, body } = errorAnswer(planeOf(asked.url), error);
    const text = JSON.stringify(body);
    const bytes = Buffer.byteLength(text);
    const answered = { status, ending: "whole", rows: 0, bytes } as const;
    onRefused({ method: asked.method, path: pathOf(asked), query: {}, ...answered }, asked.ip);
    return { status, headers: { ...headers, "content-type": "application/json; charset=utf-8" }, text };
  };
  /** HTTP/2 allows any word as a method; fastify answers unknown ones without its hooks, which also authenticate. */
  const knownAlone =
    (handler: RequestListener): RequestListener =>
    (request, response) => {
      const { method = "", url = "", socket } = request;
      if (METHODS.includes(method)) return handler(request, response);
      const error = new RunvaultError("invalid_argument", "the request's method is not an HTTP method");
      const { status, headers, text } = refusal({ method: "", url, ip: socket.remoteAddress ?? "" }, error);
      response.writeHead(status, headers).end(text);
    };
  const app = fastify({
    serverFactory: (handler) => newHttpServer(knownAlone(handler), { tls: secure, ...http }),
    clientErrorHandler: (error, socket) => {
      // undefined once the socket is closed
      const { remoteAddress = "" } = socket;
      const answered = answerBrokenRequest(error, socket, http.connections.isAnswering(socket));
      if (answered === undefined) return;
      onRefused({ method: "", path: "", query: {}, ending: "whole", rows: 0, ...answered }, remoteAddress);
    },
    exposeHeadRoutes: exposesHead,
    forceCloseConnections: true,
    routerOptions: { maxParamLength: 4096 },
    frameworkErrors: (thrown: Error, request: FastifyRequest, reply: FastifyReply) => {
      closeRefusedUpgrade(request, reply);
      const { status, headers, text } = refusal(request, frameworkError(thrown));
      void reply.code(status).headers(headers).send(text);
    },
    // routes work on either kind of server, but fastify's types differ
  }) as unknown as FastifyInstance;
  app.setErrorHandler((thrown, request, reply) => {
    // the client left, so the error only says that its work was cancelled
    if (reply.raw.destroyed) return reply.code(200).send();
    const error = requestError(thrown);
    if (isForOwner(error)) onError(error);
    const { status, headers, body } = errorAnswer(planeOf(request.url), error);
    return reply.code(status).headers(headers).send(body);
  });
  app.setNotFoundHandler((request) => {
    throw noRoute(request);
  });
  return app;
}

/** Replaces fastify's messages, which repeat the whole target: its query may hold a secret. */
const refusedPaths: Readonly<Record<string, string>> = {
  FST_ERR_BAD_URL: "the request's target is not a valid URL",
  FST_ERR_MAX_PARAM_LENGTH: "part of the request's path is too long",
};

function frameworkError(thrown: Error & { readonly code?: string }): RunvaultError {
  const message = refusedPaths[thrown.code ?? ""];
  return message === undefined
    ? requestError(thrown)
    : new RunvaultError("invalid_argument", message, { cause: thrown });
}

/** Refuses unknown routes before a body is read. */
export function refuseUnknownRoutes(app: FastifyInstance): void {
  app.addHook("onRequest", async (request) => {
    if (request.is404) throw noRoute(request);
  });
}

function noRoute(request: FastifyRequest): RunvaultError {
  return new RunvaultError("route_not_found", `there is no route ${request.method} ${pathOf(request)}`);
}

/** The plane that answers a URL or request target. */
export function planeOf(url: string): "history" | "control" {
  return /^(?:https?:\/\/[^/]*)?\/api\/v1\/(?:history|files)(?:[/?]|$)/.test(url) ? "history" : "control";
}
