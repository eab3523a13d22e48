import type { RunRef } from "../../model/source.ts";
import type { Nanoseconds } from "../../model/time.ts";

/** A source's description of a run, from any list. */
export interface RunDescription extends RunRef {
  readonly status: string;
  readonly started: Nanoseconds | undefined;
  readonly ended: Nanoseconds | undefined;
  /** True if no more rows will be added, by everything the source says about the run's end. */
  readonly final: boolean;
  /** True if the source itself marks the run as final; false if that follows from what else it says. */
  readonly isMarkedFinal: boolean;
  readonly storageVersion: string | undefined;
}

/**
 * The version that shows whether a finished run's rows have changed. Null if the source has none, and until the run has
 * ended: until then it changes with every row, and counts show which windows changed.
 */
export function settledVersion(run: RunDescription): string | null {
  return run.final ? (run.storageVersion ?? null) : null;
}
