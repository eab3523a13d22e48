import type { DescMessage } from "@bufbuild/protobuf";
import type { FastifyRequest } from "fastify";
import { filterNames, type Table } from "../model/profile/table.ts";
import { checkedQuery } from "./history/row-query.ts";
import { givenQueryOf } from "./http/request-target.ts";

/** The query parameters that there are. */
export const parameterNames = [
  ...(["instance", "run_id", "from", "to", "limit", "with_checksum", "table", "tail", "follow"] as const),
  ...filterNames,
] as const;
export type ParameterName = (typeof parameterNames)[number];

/** What a route answers where all went well. */
export type RouteAnswer =
  /** A message; `statuses` are 200 alone unless said. */
  | { readonly message: DescMessage; readonly statuses?: readonly number[] }
  | { readonly rows: Table }
  /** Anything else: its media type, with a JSON Schema where it has one, and those of text that may be asked for instead. */
  | {
      readonly type: string;
      readonly orText?: string;
      readonly schema?: Readonly<Record<string, unknown>>;
      readonly statuses?: readonly number[];
    }
  | "websocket";

/** What the document of the interface says of a route. The route itself goes by its parameters. */
export interface RouteDoc {
  readonly summary: string;
  /** Any other parameter is refused. */
  readonly query: readonly ParameterName[];
  /** The instance need not be named. */
  readonly ofAny?: true;
  readonly answer: RouteAnswer;
}

declare module "fastify" {
  interface FastifyContextConfig {
    /** Every route has one; `rpc` are those that proto/ describes. */
    doc?: RouteDoc | "rpc";
  }
}

/** The parameters of a request, checked against those of its route. Throws `invalid_argument`. */
export function queryOf(request: FastifyRequest): Record<string, string> {
  const { doc } = request.routeOptions.config;
  return checkedQuery(givenQueryOf(request), doc === undefined || doc === "rpc" ? [] : doc.query);
}
