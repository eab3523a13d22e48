import type { FastifyRequest } from "fastify";
import type { RawQuery } from "../history/row-query.ts";

/** The path of a request without its query. */
export function pathOf({ url }: Pick<FastifyRequest, "url">): string {
  return url.split("?", 1)[0] ?? url;
}

/** A request's parameters as received; none if its target is not a valid URL. */
export function givenQueryOf(request: FastifyRequest): RawQuery {
  return (request.query as RawQuery | null) ?? {};
}
