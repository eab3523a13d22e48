import { contentTypeUnaryProto, requestHeader } from "@connectrpc/connect/protocol-connect";
import { isTableName } from "../../model/profile/table.ts";
import { timerMs } from "../../model/retry/deadline.ts";
import type { RpcRules } from "../contract.ts";
import { type HttpSession, requireMediaType } from "../http/http-session.ts";
import { errorFromRpcAnswer } from "./rpc-error.ts";
import { methodPath, type RpcExchange } from "./rpc-exchange.ts";

/** Unary Connect over HTTP/1.1. */
export function connectExchange(session: HttpSession, rules: RpcRules): RpcExchange {
  const { headersTimeoutMs, documentTimeoutMs } = session.options;
  // the client's total wait, after which an answer would have no reader
  const timeoutMs = timerMs(headersTimeoutMs + documentTimeoutMs);
  const headers = Object.fromEntries(requestHeader("unary", true, timeoutMs, undefined, false));
  return async (prefix, call, context, empty) => {
    const { place } = context;
    const path = prefix + methodPath(call.method);
    const answer = await session.send({ method: "POST", path, headers, body: call.request }, context);
    try {
      if (answer.status === empty) {
        const { instance = "", run = "", table = "" } = place;
        // no server that speaks Connect uses it for an empty message
        if (isTableName(table))
          session.noContent.note({ instanceId: instance, runId: run }, table, "nothing");
        return Buffer.alloc(0);
      }
      if (answer.status !== 200) {
        throw await errorFromRpcAnswer(answer, rules, call.withToken, session.scrubber, place);
      }
      requireMediaType(answer, [contentTypeUnaryProto], place);
      session.requireFraming(answer, "a message", place);
      using _watch = call.rate?.watch(answer.body);
      return await session.whole(answer, call.mostBytes, "a message", place);
    } finally {
      answer.body.close();
    }
  };
}
