import type { FastifyInstance } from "fastify";

const methods = "GET, POST";
const headers =
  "authorization, content-type, accept, connect-protocol-version, connect-timeout-ms, x-grpc-web, x-user-agent";
const exposed = "retry-after, www-authenticate, content-encoding, grpc-status, grpc-message, runvault-rows";
const keptSeconds = "3600";

/**
 * Lets pages of the origins named read the answers, and answers their preflight requests, which carry no token. Other
 * origins get no header, which is how a browser is told no. To be added ahead of what refuses requests, so that such a
 * page sees refusals too.
 */
export function allowOrigins(app: FastifyInstance, origins: readonly string[]): void {
  const allowed = new Set(origins);
  app.addHook("onRequest", async (request, reply) => {
    const { origin } = request.headers;
    // on the response itself: answers that are written past fastify have them too
    const set = (name: string, value: string) => reply.raw.setHeader(name, value);
    set("vary", "origin");
    if (origin === undefined || !allowed.has(origin)) return;
    set("access-control-allow-origin", origin);
    set("access-control-expose-headers", exposed);
    if (request.method !== "OPTIONS" || !("access-control-request-method" in request.headers)) return;
    set("access-control-allow-methods", methods);
    set("access-control-allow-headers", headers);
    set("access-control-max-age", keptSeconds);
    return reply.code(204).send();
  });
}
