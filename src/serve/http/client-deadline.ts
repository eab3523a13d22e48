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
 * Limits a client's deadline, from Connect or gRPC, to the longest timer: a longer one would fire at once and end the
 * call. An invalid deadline is left for the protocol to refuse.
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
