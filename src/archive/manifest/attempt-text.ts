import { countText } from "../../model/text/plural.ts";
import { formatTime } from "../../model/time.ts";
import type { Failure, Proven, TableManifest, TableState } from "./manifest.ts";

/** An error's code next to a state; null if it says the same as the state. */
export function codeBeside(state: TableState, code: string): string | null {
  return code === state.toLowerCase() ? null : code;
}

/** A failure in words, as text after the state. */
export function failureText(state: TableState, error: Pick<Failure, "code" | "message">): string {
  const code = codeBeside(state, error.code);
  return code === null ? error.message : `${code}: ${error.message}`;
}

/** What is proven and, for a growing run, up to when. */
export function provenText({ state, certificate }: Proven): string {
  const until = certificate?.until ?? null;
  return until === null ? state : `${state} up to ts_event ${formatTime(BigInt(until))}`;
}

/** Why the latest attempt at a table proved nothing; null if it succeeded. */
export function attemptReason({ attempt, proven }: Pick<TableManifest, "attempt" | "proven">): string | null {
  const { outcome, error, holding } = attempt;
  if (outcome === "ok") return null;
  if (error !== null) return failureText(outcome, error);
  const { proof, quarantined = 0 } = (holding ?? proven)?.certificate ?? {};
  if (outcome === "QUARANTINED") return `${countText(quarantined, "row")} set aside`;
  // such an attempt fails without an error
  return outcome === "UNVERIFIED" ? `its proof (${proof ?? "none"}) is weaker than required` : null;
}

/** What to do about rows set aside. */
export const quarantinedHint =
  "Look at the rows set aside, in `quarantine/` of the archive, each with its reason. Once the gateway is corrected, archive the run again; or run again with --accept-quarantine, which takes the table as proven without them.";

/** What to do about a failed attempt; null after a successful one, or if nothing is known to help. */
export function attemptHint({ attempt }: Pick<TableManifest, "attempt">): string | null {
  const { outcome, error } = attempt;
  if (error !== null) return error.hint;
  if (outcome === "QUARANTINED") return quarantinedHint;
  const isWeak = outcome === "UNVERIFIED";
  return isWeak ? "Leave out --require, or have the gateway serve what that proof needs." : null;
}

/** The result of the latest attempt, why, since when, and what is shown instead; null if it succeeded. */
export function attemptText({ proven, attempt }: Pick<TableManifest, "attempt" | "proven">): string | null {
  const { outcome, at, behindSince } = attempt;
  if (outcome === "ok") return null;
  const reason = attemptReason({ proven, attempt });
  const latest = behindSince === at ? "" : `, last tried at ${at}`;
  const shown = proven === null ? "nothing is proven" : `proven before: ${provenText(proven)}`;
  return `${outcome}${reason === null ? "" : `: ${reason}`}; ${shown}; failing since ${behindSince}${latest}`;
}

/** Accepted rows set aside from the proven part of a table; 0 for none. */
export function acceptedAside({ proven }: Pick<TableManifest, "proven">): number {
  return proven?.certificate?.quarantined ?? 0;
}
