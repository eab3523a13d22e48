import type { Acceptance, TableManifest } from "./manifest.ts";

/** The operator's acceptance of the table's latest attempt; null if there is none, or it no longer applies. */
export function acceptanceOf(table: TableManifest | undefined): Acceptance | null {
  if (table?.accepted === undefined) return null;
  const { accepted, attempt } = table;
  return accepted.attemptAt === attempt.at && accepted.outcome === attempt.outcome ? accepted : null;
}

/** Whether a table's latest attempt failed and nobody accepted that. */
export function isAmiss(table: TableManifest): boolean {
  return table.attempt.outcome !== "ok" && acceptanceOf(table) === null;
}

/** Who accepted a table, when and why, as text after its state. */
export function acceptanceText({ at, by, reason }: Acceptance): string {
  return `accepted as it is by ${by} at ${at}: ${reason}`;
}

/** The same for JSON reports; null if nothing is accepted. */
export function acceptanceJson(table: TableManifest | undefined) {
  const accepted = acceptanceOf(table);
  if (accepted === null) return null;
  const { at, by, reason } = accepted;
  return { at, by, reason };
}
