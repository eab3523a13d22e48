import type { ListedRun, RunEntry } from "../../model/source.ts";
import type { Nanoseconds } from "../../model/time.ts";

/** How to tell that a run has ended, besides the contract's own words. */
export interface StatusRules {
  /** The source's own words for a run that has ended, as the operator gave them. */
  readonly finishedStatus: readonly string[];
  /** The archive has seen the source call a run final. */
  readonly marksFinal?: boolean | undefined;
  /** An end before this instant counts: now, minus the time that rows may arrive late. */
  readonly settled: () => Nanoseconds;
}

/** A source's statements about a run's end, taken together. */
export interface RunStanding {
  /** True if the run has ended, whether or not rows may still be added. */
  readonly finished: boolean;
  /** True if no more rows will be added. */
  readonly final: boolean;
  /** Contradictions or unknowns; null if all is as the contract says. */
  readonly remark: string | null;
  /** True if nothing says whether the run has ended. */
  readonly unknown: boolean;
}

const endedWords = ["FINISHED", "FAILED"];
const runningWords = ["RUNNING"];

/**
 * Judges the statements about a run's end. `marksFinal` says whether the source marks any run as final. If it does, a run
 * without the mark may still get rows; if it never does, it may not know the mark, and a run that has ended is final.
 *
 * - The mark `final` is about rows, and wins over any status.
 * - An end that has passed counts as an end, whatever the status. But if the status is RUNNING and the run is marked as not
 *   final, rows may still come: a run that was resumed keeps its old end.
 * - An unknown status, without such an end, says nothing.
 */
export function standingOf(
  run: Pick<RunEntry, "status" | "ended" | "final"> & Pick<ListedRun, "started" | "saysFinal">,
  marksFinal: boolean,
  { finishedStatus, settled }: StatusRules,
): RunStanding {
  const { status, started, ended, final, saysFinal = true } = run;
  const saysEnded = among(endedWords, status) || among(finishedStatus, status);
  const saysRunning = among(runningWords, status);
  const known = saysEnded || saysRunning;
  const backwards = ended !== undefined && started !== undefined && ended < started;
  const hasEnded = ended !== undefined && !backwards && ended <= settled();
  const finished = final || saysEnded || hasEnded;
  const isFinal = final || (finished && !marksFinal && !(saysRunning && saysFinal));

  const remarks: string[] = [];
  if (!known) remarks.push(`unknown status ${JSON.stringify(status)}`);
  if (saysRunning && final) remarks.push("marked final although the status is RUNNING");
  else if (saysRunning && hasEnded) remarks.push("an end in the past although the status is RUNNING");
  if (backwards) remarks.push("an end before the start");
  if (finished && !isFinal) remarks.push("ended, but rows may still be added");
  return {
    finished,
    final: isFinal,
    remark: remarks.length === 0 ? null : remarks.join("; "),
    unknown: !known && !finished,
  };
}

function among(words: readonly string[], word: string): boolean {
  const upper = word.toUpperCase();
  return words.some((one) => one.toUpperCase() === upper);
}
