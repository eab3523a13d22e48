import type { DescMessage } from "@bufbuild/protobuf";
import type { FastifyRequest } from "fastify";
import { filterNames, type Table } from "../model/profile/table.ts";
import { checkedQuery } from "./history/row-query.ts";
import { givenQueryOf } from "./http/request-target.ts";

/** All query parameters. */
export const parameterNames = [
  ...(["instance", "run_id", "from", "to", "limit", "with_checksum", "table", "tail", "follow"] as const),
  ...filterNames,
] as const;
export type ParameterName = (typeof parameterNames)[number];

/** A route's successful answer. */
export type RouteAnswer =
  /** A message; `statuses` defaults to just 200. */
  | { readonly message: DescMessage; readonly statuses?: readonly number[] }
  | { readonly rows: Table }
  /** Anything else: its media type, a JSON Schema if any, and alternative text types. */
  | {
      readonly type: string;
      readonly orText?: string;
      readonly schema?: Readonly<Record<string, unknown>>;
      readonly statuses?: readonly number[];
    }
  | "websocket";

/** A route's part of the OpenAPI document. The route also uses its parameters. */
export interface RouteDoc {
  readonly summary: string;
  /** Other parameters are refused. */
  readonly query: readonly ParameterName[];
  /** The instance is optional. */
  readonly ofAny?: true;
  readonly answer: RouteAnswer;
}

declare module "fastify" {
  interface FastifyContextConfig {
    /** Every route has one; those with `rpc` are described by proto/. */
    doc?: RouteDoc | "rpc";
  }
}

/** A request's parameters, checked against its route's. Throws `invalid_argument`. */
export function queryOf(request: FastifyRequest): Record<string, string> {
  const { doc } = request.routeOptions.config;
  return checkedQuery(givenQueryOf(request), doc === undefined || doc === "rpc" ? [] : doc.query);
}
