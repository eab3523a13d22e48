import { cors } from "@connectrpc/connect";
import type { FastifyInstance } from "fastify";
import { rangeHeaders } from "../files/byte-range.ts";
import { withheldHeader } from "../files/files-routes.ts";
import { rowCountHeader, setAsideHeader } from "../history/history-routes.ts";

const methods = "GET, HEAD, POST";
// its own headers, and those that Connect and gRPC-Web clients in a page send and read
const asked = ["authorization", "accept", ...rangeHeaders.asked];
const headers = [...asked, ...cors.allowedHeaders].join(", ");
const counts = [rowCountHeader, setAsideHeader, withheldHeader];
const own = ["retry-after", "www-authenticate", ...counts, ...rangeHeaders.answered];
const exposed = [...own, ...cors.exposedHeaders].join(", ");
const keptSeconds = "3600";

/**
 * Lets pages of the named origins read answers, and answers their preflight requests, which carry no token. Other
 * origins get no header, which makes a browser refuse. Add it before anything that refuses requests, so that pages see
 * refusals too.
 */
export function allowOrigins(app: FastifyInstance, origins: readonly string[]): void {
  const allowed = new Set(origins);
  app.addHook("onRequest", async (request, reply) => {
    const { origin } = request.headers;
    // on the response itself, so that answers written past fastify have them too
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
