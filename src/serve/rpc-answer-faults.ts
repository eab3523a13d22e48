import { gzipSync } from "node:zlib";
import { isTableName } from "../model/table.ts";
import type { ArmedFaults } from "./armed-faults.ts";
import { byteStops } from "./fault-effects.ts";
import type { RpcCall } from "./rpc-call.ts";
import type { Ending } from "./send-rows.ts";

/** The head and body of an answer over RPC, which is all there before any of it is sent. */
export interface RpcAnswer {
  readonly header: Headers;
  readonly body: Uint8Array;
}

/** An answer as faults let it out. A body that ends early as if it were complete has the length that says so. */
export function faultyAnswer(
  faults: ArmedFaults,
  { target, rows }: RpcCall,
  accepted: string,
  answer: RpcAnswer,
): RpcAnswer & { readonly ending: Ending } {
  if (target === undefined) return { ...answer, ending: "whole" };
  const { header, body } = compressed(faults, target, accepted, answer);
  if (!isTableName(target) || rows === undefined) return { header, body, ending: "whole" };
  for (const fault of faults.on(target, ["stall"])) {
    if (fault.at > rows || !faults.hit(fault)) continue;
    return { header, body: body.subarray(0, body.length >>> 1), ending: "stalled" };
  }
  const stop = byteStops(faults, target)
    .sort((a, b) => a.bytes - b.bytes)
    .find(({ bytes, hit }) => bytes <= body.length && hit());
  if (stop === undefined) return { header, body, ending: "whole" };
  return { ...withBody(header, body.subarray(0, stop.bytes), stop.ending === "whole"), ending: stop.ending };
}

function compressed(
  faults: ArmedFaults,
  target: NonNullable<RpcCall["target"]>,
  accepted: string,
  answer: RpcAnswer,
): RpcAnswer {
  const { header, body } = answer;
  const armed = isTableName(target)
    ? faults.on(target, ["compress-small"])
    : faults.onDocument(target, ["compress-small"]);
  const isUnary = /^application\/(?:proto|json)$/.test(header.get("content-type") ?? "");
  const isTaken = /\bgzip\b/.test(accepted);
  const isPlain = isUnary && isTaken && !header.has("content-encoding");
  if (!isPlain || !armed.some((fault) => faults.hit(fault))) return answer;
  const compressing = new Headers(header);
  compressing.set("content-encoding", "gzip");
  return withBody(compressing, gzipSync(body), true);
}

function withBody(header: Headers, body: Uint8Array, isWhole: boolean): RpcAnswer {
  const changed = new Headers(header);
  if (isWhole && changed.has("content-length")) changed.set("content-length", String(body.length));
  return { header: changed, body };
}
