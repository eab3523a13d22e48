import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { RequestLogEntry } from "../monitoring/request-log.ts";
import type { Asked } from "../wire-hook.ts";

/** Notes of a method while it answers a call. */
export interface RpcCall {
  /** Of history; undefined for other calls, and until the method is reached. */
  asked?: Asked;
  /** For the request log. */
  noted?: Pick<RequestLogEntry, "table" | "instance" | "run" | "from" | "to" | "limit" | "continued">;
  /** The message was readable, and a method was called. */
  isRead?: boolean;
  /** Rows of the answer; undefined if it has none, or does not exist yet. */
  rows?: number;
}

export const rpcCallKey = createContextKey<RpcCall>({}, { description: "the log entry of a call" });

/** The notes of a call. */
export function callOf(context: HandlerContext): RpcCall {
  return context.values.get(rpcCallKey);
}

/**
 * Whether a call is answered in JSON, by the type that the handler chose for its answer. Parsing the request's own type
 * could differ from the handler's, for example in case, and rows would be lost.
 */
export function isJsonCall(context: HandlerContext): boolean {
  return /[/+]json$/.test(context.responseHeader.get("content-type") ?? "");
}
