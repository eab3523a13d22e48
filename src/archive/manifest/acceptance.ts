import type { Acceptance, TableManifest } from "./manifest.ts";

/** Under what the operator accepted the table's latest attempt as it is; null where that is not so, or no longer. */
export function acceptanceOf(table: TableManifest | undefined): Acceptance | null {
  if (table?.accepted === undefined) return null;
  const { accepted, attempt } = table;
  return accepted.attemptAt === attempt.at && accepted.outcome === attempt.outcome ? accepted : null;
}

/** Whether a table's latest attempt went wrong, and nobody accepted that. */
export function isAmiss(table: TableManifest): boolean {
  return table.attempt.outcome !== "ok" && acceptanceOf(table) === null;
}

/** Who accepted a table as it is, when and why, to stand behind its state. */
export function acceptanceText({ at, by, reason }: Acceptance): string {
  return `accepted as it is by ${by} at ${at}: ${reason}`;
}

/** The same for reports of programs; null where nothing is accepted. */
export function acceptanceJson(table: TableManifest | undefined) {
  const accepted = acceptanceOf(table);
  if (accepted === null) return null;
  const { at, by, reason } = accepted;
  return { at, by, reason };
}
