import type { TableManifest } from "./manifest.ts";

/** Why the latest attempt at a table proved nothing; null after one that did. */
export function attemptReason({ attempt, proven }: Pick<TableManifest, "attempt" | "proven">): string | null {
  const { outcome, error, holding } = attempt;
  if (outcome === "ok") return null;
  if (error !== null) return `${error.code}: ${error.message}`;
  const { proof, quarantined = 0 } = (holding ?? proven)?.certificate ?? {};
  if (outcome === "QUARANTINED") return `rows were set aside: ${quarantined}`;
  // such an attempt fails without an error
  return outcome === "UNVERIFIED" ? `its proof, ${proof ?? "none"}, is weaker than the one required` : null;
}

/** What to do about an attempt that proved nothing; null after one that was ok, and where nothing is known to help. */
export function attemptHint({ attempt }: Pick<TableManifest, "attempt">): string | null {
  const { outcome, error } = attempt;
  if (error !== null) return error.hint;
  if (outcome === "QUARANTINED")
    return "Look at the rows set aside; --accept-quarantine takes the table for proven without them.";
  const isWeak = outcome === "UNVERIFIED";
  return isWeak ? "Leave --require out, or have the gateway give what it asks for." : null;
}

/** What the latest attempt came to, why, since when that is so, and what is shown instead; null after one that was ok. */
export function attemptText({ proven, attempt }: Pick<TableManifest, "attempt" | "proven">): string | null {
  const { outcome, at, behindSince } = attempt;
  if (outcome === "ok") return null;
  const reason = attemptReason({ proven, attempt });
  const latest = behindSince === at ? "" : `, the latest at ${at}`;
  const shown = proven === null ? "nothing is proven" : `${proven.state} is what was proven before`;
  return `${outcome}${reason === null ? "" : `: ${reason}`}; ${shown}, attempts have gone wrong since ${behindSince}${latest}`;
}

/** Rows of a table that are set aside from what is proven, as the operator accepted; 0 where none are. */
export function acceptedAside({ proven }: Pick<TableManifest, "proven">): number {
  return proven?.certificate?.quarantined ?? 0;
}
