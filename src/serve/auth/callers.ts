import type { FastifyInstance, FastifyRequest } from "fastify";
import { givenQueryOf } from "../http/request-target.ts";
import type { HostNames } from "./host-names.ts";
import { type RequestScope, refuseUnlessAllowed, requestScope, requireCaller } from "./request-scope.ts";
import { anyone, type TokenList } from "./token-list.ts";

declare module "fastify" {
  interface FastifyRequest {
    scope: RequestScope | null;
  }
  interface FastifyContextConfig {
    answersAllHosts?: boolean;
  }
}

/**
 * Identifies the caller of each request and keeps that available while it is answered. Without tokens, anyone is a
 * caller if the request names one of our hosts.
 */
export function scopeRequests(
  app: FastifyInstance,
  tokens: TokenList | undefined,
  hostNames: HostNames,
): void {
  app.decorateRequest("scope", null);
  app.addHook("onRequest", (request, _reply, done) => {
    request.scope = {
      caller: tokens === undefined ? anyone : tokens.caller(request.headers.authorization),
      refusal: tokens === undefined ? hostNames.refusal(request.raw) : undefined,
      client: request.ip,
      startedMs: performance.now(),
    };
    requestScope.run(request.scope, done);
  });
  // a body is read in events of its socket, which have no request context
  app.addHook("preValidation", (request, _reply, done) => {
    if (request.scope === null) done();
    else requestScope.run(request.scope, done);
  });
}

/**
 * Refuses requests for foreign hosts, except for calls, which check that themselves, and routes that answer all hosts.
 */
export function refuseOtherHosts(app: FastifyInstance, isCall: (request: FastifyRequest) => boolean): void {
  app.addHook("onRequest", async (request) => {
    const refusal = request.scope?.refusal;
    if (refusal === undefined || isCall(request) || request.routeOptions.config.answersAllHosts) return;
    throw refusal;
  });
}

/**
 * Refuses requests without a token, and those about instances outside of the token's; except for calls, which check
 * that themselves.
 */
export function refuseOthers(app: FastifyInstance, isCall: (request: FastifyRequest) => boolean): void {
  app.addHook("onRequest", async (request) => {
    if (isCall(request)) return;
    const caller = requireCaller(request.scope?.caller);
    for (const instanceId of namedInstances(request)) refuseUnlessAllowed(caller, instanceId);
  });
}

/** Every instance that a REST request names, in its path or query. */
function namedInstances(request: FastifyRequest): string[] {
  const { id } = request.params as { readonly id?: string };
  const { instance } = givenQueryOf(request);
  const values = [id, ...(Array.isArray(instance) ? instance : [instance])];
  return values.filter((value) => typeof value === "string" && value !== "");
}
