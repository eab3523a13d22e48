import type { FastifyInstance } from "fastify";
import type { OpenApiOptions } from "../openapi.ts";
import { queryOf } from "../route-doc.ts";
import type { Transport } from "../transport.ts";

export interface ServiceRoutesOptions extends OpenApiOptions {
  /** The kind of store, such as simulator or archive. */
  readonly kind: string;
  readonly transports: readonly Transport[];
  readonly basePath: string;
}

const text = { type: "string" };
const overview = {
  type: "object",
  properties: {
    name: text,
    version: text,
    kind: text,
    about: text,
    transports: { type: "array", items: text },
    links: { type: "object", additionalProperties: text },
  },
  required: ["name", "version", "kind", "about", "transports", "links"],
};

/** Starting points; only those served are listed. */
const beginnings = ["health", "doctor", "instances", "history/instances", "files", "metrics", "discovery"];

/** Describes the service at the origin and at the base address, and serves the OpenAPI document. */
export function serviceRoutes(app: FastifyInstance, options: ServiceRoutesOptions): void {
  const { name, version, kind, transports, basePath, routes } = options;
  const isServed = (path: string) => routes.some(({ method, url }) => method === "GET" && url === path);
  const about = {
    summary: "What this service is and where to start.",
    query: [],
    answer: { type: "application/json", schema: overview },
  } as const;
  for (const url of ["/", basePath, `${basePath}/`]) {
    app.get(url, { config: { doc: about } }, (request, reply) => {
      queryOf(request);
      const links = beginnings
        .map((path) => [path.split("/")[0]!, `${basePath}/${path}`] as const)
        .filter(([, path]) => isServed(path));
      const body = {
        name,
        version,
        kind,
        about:
          "History of trading runs. /openapi.json describes every route; the protobuf packages describe the RPC side.",
        transports,
        links: { openapi: "/openapi.json", ...Object.fromEntries(links) },
      };
      return reply.type("application/json; charset=utf-8").send(`${JSON.stringify(body, null, 2)}\n`);
    });
  }
  const document = {
    summary: "This document.",
    query: [],
    answer: { type: "application/json", schema: { type: "object" } },
  } as const;
  let made: Promise<string> | undefined;
  for (const url of ["/openapi.json", `${basePath}/openapi.json`]) {
    app.get(url, { config: { doc: document } }, async (request, reply) => {
      queryOf(request);
      // loaded late: few request it, and it never changes
      made ??= import("../openapi.ts").then(({ openApiDocument }) =>
        JSON.stringify(openApiDocument(options)),
      );
      return reply.type("application/json; charset=utf-8").send(await made);
    });
  }
}
