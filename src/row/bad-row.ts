import { parseJson } from "../model/outside-json.ts";

/** The member that only a row set aside by its source has. */
const reasonKey = "runvault:not_a_row";

/** A row that its source could not make canonical, and why; `text` is the row as the wire had it. */
export interface BadRow {
  readonly reason: string;
  readonly text: string;
}

/**
 * The line that stands for such a row, without its line end: no row of any table, so that it goes to quarantine. `ts` is
 * the row's time where it could be told, as nanoseconds.
 */
export function badRowLine({ reason, text }: BadRow, ts: string | undefined): string {
  return JSON.stringify({ ...(ts === undefined ? {} : { ts_event: ts }), [reasonKey]: reason, row: text });
}

/** What a line that stands for a bad row holds; undefined for any other line. */
export function readBadRow(line: string): BadRow | undefined {
  if (!line.includes(reasonKey)) return undefined;
  try {
    const value = parseJson(line) as Record<string, unknown> | null;
    const reason = value?.[reasonKey];
    const text = value?.row;
    return typeof reason === "string" && typeof text === "string" ? { reason, text } : undefined;
  } catch {
    return undefined;
  }
}
