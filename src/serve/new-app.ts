import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from "fastify";
import { RunvaultError } from "../model/error.ts";
import { errorAnswer, isForOwner, requestError } from "./envelope.ts";
import { type HttpServerOptions, newHttpServer } from "./http-server.ts";
import { closeRefusedUpgrade } from "./live-route.ts";
import { pathOf } from "./request-target.ts";
import { type ServeTls, tlsOptions } from "./tls-options.ts";

export interface AppOptions extends Omit<HttpServerOptions, "tls"> {
  readonly tls: ServeTls | undefined;
  /** HEAD wherever GET is. */
  readonly exposesHead: boolean;
  /** Told of what is the owner's to mend. */
  readonly onError: (error: RunvaultError) => void;
}

/** A server without routes, whose errors are in the envelope of their plane. Throws what `tlsOptions` throws. */
export function newApp({ tls, exposesHead, onError, ...http }: AppOptions): FastifyInstance {
  const secure = tls && tlsOptions(tls);
  const app = fastify({
    serverFactory: (handler) => newHttpServer(handler, { tls: secure, ...http }),
    // the server has its own, which also knows what is on its way
    clientErrorHandler: () => {},
    exposeHeadRoutes: exposesHead,
    forceCloseConnections: true,
    routerOptions: { maxParamLength: 4096 },
    frameworkErrors: (thrown: Error, request: FastifyRequest, reply: FastifyReply) => {
      const { status, headers, body } = errorAnswer(planeOf(request.url), frameworkError(thrown));
      closeRefusedUpgrade(request, reply);
      const text = JSON.stringify(body);
      // no hook is run for these
      http.onRefused(
        {
          method: request.method,
          path: pathOf(request),
          query: {},
          status,
          ending: "whole",
          rows: 0,
          bytes: Buffer.byteLength(text),
        },
        request.ip,
      );
      void reply.code(status).headers(headers).type("application/json; charset=utf-8").send(text);
    },
    // routes do not care which of the two servers they hang on, but fastify's types do
  }) as unknown as FastifyInstance;
  app.setErrorHandler((thrown, request, reply) => {
    // of a client that left nothing failed: what was computed for it was given up
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

/** In place of fastify's words, which repeat the whole target: the query may hold a secret. */
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

/** Refuses what no route takes before a body is read that nobody asked for. */
export function refuseUnknownRoutes(app: FastifyInstance): void {
  app.addHook("onRequest", async (request) => {
    if (request.is404) throw noRoute(request);
  });
}

function noRoute(request: FastifyRequest): RunvaultError {
  return new RunvaultError("route_not_found", `there is no route ${request.method} ${pathOf(request)}`);
}

/** The plane whose envelope a URL, or the target of a request with its origin, is answered in. */
export function planeOf(url: string): "history" | "control" {
  return /^(?:https?:\/\/[^/]*)?\/api\/v1\/(?:history|files)(?:[/?]|$)/.test(url) ? "history" : "control";
}
