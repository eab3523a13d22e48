import { longestTimerMs } from "../../model/retry/deadline.ts";

const unitMs: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

/**
 * Cuts the deadline that a client gives for its call, by Connect or gRPC, to what a timer can wait: a timer for longer
 * fires at once, and the call would end before it began. What is no deadline is left for the protocol to refuse.
 */
export function cutDeadline(header: Headers): void {
  const connect = header.get("connect-timeout-ms");
  if (connect !== null && /^\d{1,10}$/.test(connect) && Number(connect) > longestTimerMs) {
    header.set("connect-timeout-ms", String(longestTimerMs));
  }
  const [, digits, unit] = /^(\d{1,8})([HMSmun])$/.exec(header.get("grpc-timeout") ?? "") ?? [];
  if (digits !== undefined && Number(digits) * unitMs[unit!]! > longestTimerMs) {
    header.set("grpc-timeout", `${Math.floor(longestTimerMs / 1000)}S`);
  }
}
