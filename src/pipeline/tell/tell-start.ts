import type { ToldLine } from "../record/job-record.ts";
import { heartbeatTeller, type Tellers } from "./open-tellers.ts";
import { tellOne, wholeTime } from "./tell-one.ts";

/** Notifies that an execution begins. Never throws; the work must not wait for it. */
export async function tellStart(tellers: Tellers): Promise<readonly ToldLine[]> {
  if (tellers.heartbeat === null) return [];
  using time = wholeTime(tellers.times, tellers.signal);
  return [await tellOne(heartbeatTeller(tellers.heartbeat, "start"), { ...tellers, signal: time.signal })];
}
