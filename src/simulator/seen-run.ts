import type { Nanoseconds } from "../model/time.ts";
import type { WorldRun } from "./world/world.ts";

/** The part of a run that the clock reveals. */
export interface SeenRun {
  readonly run: WorldRun;
  /** Rows known by this time are visible; undefined for all. */
  readonly known: Nanoseconds | undefined;
  /** True while rows may still be added. */
  readonly going: boolean;
  /** Undefined while the run goes on. */
  readonly ended: Nanoseconds | undefined;
  readonly status: "RUNNING" | "FINISHED" | "FAILED";
}

/** A run's visible state at an instant; `stopAt` is when an action stopped it, perhaps in the future. */
export function seenRun(run: WorldRun, stopAt: Nanoseconds | undefined, now: Nanoseconds): SeenRun {
  const stopped = stopAt !== undefined && now >= stopAt;
  const limit = stopped ? stopAt : now;
  if (!run.growing || limit >= BigInt(run.complete)) {
    return {
      run,
      known: undefined,
      going: false,
      ended: BigInt(run.ended),
      status: run.failed ? "FAILED" : "FINISHED",
    };
  }
  return {
    run,
    known: limit,
    going: !stopped,
    ended: stopped ? stopAt : undefined,
    status: stopped ? "FINISHED" : "RUNNING",
  };
}
