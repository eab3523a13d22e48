import type { RunRef } from "../../model/source.ts";
import type { Nanoseconds } from "../../model/time.ts";

/** A source's description of a run, from any list. */
export interface RunDescription extends RunRef {
  readonly status: string;
  readonly started: Nanoseconds | undefined;
  readonly ended: Nanoseconds | undefined;
  /** True when no row will be added any more, by all that the source says of the run's end. */
  readonly final: boolean;
  /** True where the source itself calls the run final; false where that follows from what else it says. */
  readonly isMarkedFinal: boolean;
  readonly storageVersion: string | undefined;
}

/**
 * What tells whether rows of a finished run changed. Null where the source has no such mark, and while the run goes on:
 * the mark changes with every row then, and counts tell which windows did.
 */
export function settledVersion(run: RunDescription): string | null {
  return run.final ? (run.storageVersion ?? null) : null;
}
