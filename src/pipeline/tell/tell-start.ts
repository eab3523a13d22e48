import type { ToldLine } from "../record/job-record.ts";
import { heartbeatNotifier, type Notifiers } from "./open-notifiers.ts";
import { tellOne, wholeTime } from "./tell-one.ts";

/** Notifies that an execution begins. Never throws; the work must not wait for it. */
export async function tellStart(notifiers: Notifiers): Promise<readonly ToldLine[]> {
  if (notifiers.heartbeat === null) return [];
  using time = wholeTime(notifiers.times, notifiers.signal);
  return [
    await tellOne(heartbeatNotifier(notifiers.heartbeat, "start"), { ...notifiers, signal: time.signal }),
  ];
}
