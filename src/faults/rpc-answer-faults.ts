import { gzipSync } from "node:zlib";
import { isTableName } from "../model/profile/table.ts";
import type { Asked, RpcAnswer, SentAnswer } from "../serve/wire-hook.ts";
import type { ArmedFaults } from "./armed-faults.ts";
import { byteStops } from "./fault-effects.ts";

/** Applies faults to an answer. A body that ends early as if complete gets a matching length. */
export function faultyAnswer(
  faults: ArmedFaults,
  asked: Asked,
  rows: number | undefined,
  accepted: string,
  answer: RpcAnswer,
): SentAnswer {
  const { header, body } = compressed(faults, asked, accepted, answer);
  if (!isTableName(asked) || rows === undefined) return { header, body, ending: "whole" };
  for (const fault of faults.on(asked, ["stall"])) {
    if (fault.at > rows || !faults.hit(fault)) continue;
    return { header, body: body.subarray(0, body.length >>> 1), ending: "stalled" };
  }
  const stop = byteStops(faults, asked)
    .sort((a, b) => a.bytes - b.bytes)
    .find(({ bytes, hit }) => bytes <= body.length && hit());
  if (stop === undefined) return { header, body, ending: "whole" };
  return { ...withBody(header, body.subarray(0, stop.bytes), stop.ending === "whole"), ending: stop.ending };
}

function compressed(faults: ArmedFaults, asked: Asked, accepted: string, answer: RpcAnswer): RpcAnswer {
  const { header, body } = answer;
  const isUnary = /^application\/(?:proto|json)$/.test(header.get("content-type") ?? "");
  const isTaken = /\bgzip\b/.test(accepted);
  const isPlain = isUnary && isTaken && !header.has("content-encoding");
  if (!isPlain || !faults.on(asked, ["compress-small"]).some((fault) => faults.hit(fault))) return answer;
  const compressing = new Headers(header);
  compressing.set("content-encoding", "gzip");
  return withBody(compressing, gzipSync(body), true);
}

function withBody(header: Headers, body: Uint8Array, isWhole: boolean): RpcAnswer {
  const changed = new Headers(header);
  if (isWhole && changed.has("content-length")) changed.set("content-length", String(body.length));
  return { header: changed, body };
}
