import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { RequestLogEntry } from "./request-log.ts";

/** What a method notes of a call while it answers it, for the request log and for what is done to the answer's bytes. */
export type RpcCall = {
  -readonly [Field in
    | "rows"
    | "table"
    | "instance"
    | "run"
    | "from"
    | "to"
    | "limit"
    | "continued"]?: RequestLogEntry[Field];
};

export const rpcCallKey = createContextKey<RpcCall>({}, { description: "what is noted of a call" });

/** The notes of a call. */
export function callOf(context: HandlerContext): RpcCall {
  return context.values.get(rpcCallKey);
}

/** Whether a call is answered in JSON, in whichever protocol. */
export function isJsonCall(context: HandlerContext): boolean {
  return /[/+]json\b/.test(context.requestHeader.get("content-type") ?? "");
}
