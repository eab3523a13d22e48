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
 * Finds out whose each request is, and keeps that at hand while it is answered. Without tokens anyone's is, if it names
 * one of our hosts.
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
  // a body is read in the events of its socket, which know of no request
  app.addHook("preValidation", (request, _reply, done) => {
    if (request.scope === null) done();
    else requestScope.run(request.scope, done);
  });
}

/** Refuses requests that name no host of ours, but for calls, which do so themselves, and routes that answer all hosts. */
export function refuseOtherHosts(app: FastifyInstance, isCall: (request: FastifyRequest) => boolean): void {
  app.addHook("onRequest", async (request) => {
    const refusal = request.scope?.refusal;
    if (refusal === undefined || isCall(request) || request.routeOptions.config.answersAllHosts) return;
    throw refusal;
  });
}

/** Refuses requests without a token, and those about instances that are not the token's; but for calls, which do so themselves. */
export function refuseOthers(app: FastifyInstance, isCall: (request: FastifyRequest) => boolean): void {
  app.addHook("onRequest", async (request) => {
    if (isCall(request)) return;
    const caller = requireCaller(request.scope?.caller);
    for (const instanceId of namedInstances(request)) refuseUnlessAllowed(caller, instanceId);
  });
}

/** Every instance that a request over REST names, in its path or its query. */
function namedInstances(request: FastifyRequest): string[] {
  const { id } = request.params as { readonly id?: string };
  const { instance } = givenQueryOf(request);
  const values = [id, ...(Array.isArray(instance) ? instance : [instance])];
  return values.filter((value) => typeof value === "string" && value !== "");
}
