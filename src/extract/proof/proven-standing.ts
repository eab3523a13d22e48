import type { AttemptOutcome, Proven, ProvenState } from "../../archive/manifest/manifest.ts";
import { exit, worstExit } from "../../model/error.ts";
import type { Nanoseconds } from "../../model/time.ts";

/** The proven part of a table: nothing, its absence, its rows up to a horizon, or all of them. */
export type ProvenMark =
  | { readonly state: "none" }
  | { readonly state: Exclude<ProvenState, "OPEN"> }
  | { readonly state: "OPEN"; readonly horizon: Nanoseconds };

/** The proven part according to a manifest, without the rows. */
export function markOf(proven: Proven | null): ProvenMark {
  if (proven === null) return { state: "none" };
  const { state, certificate } = proven;
  return state === "OPEN" ? { state, horizon: BigInt(certificate!.until!) } : { state };
}

/** The result of an attempt: what it proved, or how it failed. */
export type AttemptMark =
  | { readonly outcome: "ok"; readonly proves: Exclude<ProvenMark, { readonly state: "none" }> }
  | { readonly outcome: Exclude<AttemptOutcome, "ok">; readonly exit: number };

/**
 * The source's statement about the run. Growing: rows may come. Final: none will. Gone: the source no longer knows the
 * run. Reset: it has another run under the same id.
 */
export type RunSituation = "growing" | "final" | "gone" | "reset";

/** What happens to the proven part of a table. */
export interface Standing {
  /** Whether what the attempt proved replaces what was proven before. */
  readonly replaces: boolean;
  /** A note for people that is not an error; null for none. */
  readonly note: string | null;
  readonly exit: number;
}

/**
 * The only place that decides what happens to the proven part, from an attempt's result and the source's statement
 * about the run. A failed attempt never takes away what was proven; only a successful one proves anything.
 */
export function provenStanding(
  proven: ProvenMark,
  attempt: AttemptMark | null,
  run: RunSituation,
  isClosed = false,
): Standing {
  const stays = (status: number, note: string | null = null) => ({ replaces: false, note, exit: status });
  if (run === "reset") return stays(exit.incomplete);
  if (run === "gone") return goneRun(proven, isClosed);
  if (attempt === null) return stays(proven.state === "none" ? exit.incomplete : exit.done);
  if (attempt.outcome !== "ok") return stays(worstExit([exit.incomplete, attempt.exit]));
  const { proves } = attempt;
  if (proves.state === "ABSENT" && (proven.state === "OPEN" || proven.state === "COMPLETE")) {
    return run === "final"
      ? stays(exit.done, "the gateway no longer has this table; what was proven stays")
      : stays(exit.incomplete);
  }
  if (proven.state === "OPEN" && proves.state === "OPEN" && proves.horizon < proven.horizon) {
    return stays(exit.done, "what was proven before reaches further");
  }
  return { replaces: true, note: null, exit: exit.done };
}

function goneRun(proven: ProvenMark, isClosed: boolean): Standing {
  const stays = (status: number, note: string | null) => ({ replaces: false, note, exit: status });
  if (proven.state === "COMPLETE" || proven.state === "ABSENT") {
    return stays(exit.done, "the gateway no longer knows the run; what was proven stays");
  }
  return proven.state === "OPEN" && isClosed
    ? stays(exit.done, "closed by the operator: the gateway no longer knows the run")
    : stays(exit.incomplete, null);
}
