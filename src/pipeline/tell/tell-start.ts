import type { ToldLine } from "../record/job-record.ts";
import { heartbeatTeller, type Tellers } from "./open-tellers.ts";
import { tellOne, wholeTime } from "./tell-one.ts";

/** Tells that an execution begins. Never throws; not to be waited for before the work, which it does not hold up. */
export async function tellStart(tellers: Tellers): Promise<readonly ToldLine[]> {
  if (tellers.heartbeat === null) return [];
  using time = wholeTime(tellers.times, tellers.signal);
  return [await tellOne(heartbeatTeller(tellers.heartbeat, "start"), { ...tellers, signal: time.signal })];
}
