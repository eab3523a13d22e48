import { parseJson } from "../model/outside-json.ts";

/** The member that only a row set aside by its source has: no line with it is ever a row. */
export const notARow = "runvault:not_a_row";

const ours = new Set(["ts_event", notARow, "row"]);

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
  return JSON.stringify({ ...(ts === undefined ? {} : { ts_event: ts }), [notARow]: reason, row: text });
}

/**
 * What a line that stands for a bad row holds; undefined for any other line. One that has more beside it is not ours: its
 * own text is what has to be kept.
 */
export function readBadRow(line: string): BadRow | undefined {
  if (!line.includes(notARow)) return undefined;
  try {
    const value = parseJson(line) as Record<string, unknown> | null;
    const reason = value?.[notARow];
    const text = value?.row;
    if (!Object.keys(value ?? {}).every((key) => ours.has(key))) return undefined;
    return typeof reason === "string" && typeof text === "string" ? { reason, text } : undefined;
  } catch {
    return undefined;
  }
}
