import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { RequestLogEntry } from "../monitoring/request-log.ts";
import type { Asked } from "../wire-hook.ts";

/** What a method notes of a call while it answers it. */
export interface RpcCall {
  /** Of history; undefined for any other call, and until its method is reached. */
  asked?: Asked;
  /** For the request log. */
  noted?: Pick<RequestLogEntry, "table" | "instance" | "run" | "from" | "to" | "limit" | "continued">;
  /** The message could be read, and a method hears of it. */
  isRead?: boolean;
  /** Rows of the answer; undefined where it has none, or is not made. */
  rows?: number;
}

export const rpcCallKey = createContextKey<RpcCall>({}, { description: "the log entry of a call" });

/** The notes of a call. */
export function callOf(context: HandlerContext): RpcCall {
  return context.values.get(rpcCallKey);
}

/**
 * Whether a call is answered in JSON, in whichever protocol: by the type that the handler has chosen for its answer. A
 * reading of the request's own type could differ from the handler's, in its case say, and rows would be left out.
 */
export function isJsonCall(context: HandlerContext): boolean {
  return /[/+]json$/.test(context.responseHeader.get("content-type") ?? "");
}
