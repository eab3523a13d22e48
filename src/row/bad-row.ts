import { parseJson } from "../model/outside-json.ts";

/** A member that only rows set aside by their source have: no line with it is ever a row. */
export const notARow = "runvault:not_a_row";

const ours = new Set(["ts_event", notARow, "row"]);

/** A row that its source could not make canonical, and why; `text` is the row as on the wire. */
export interface BadRow {
  readonly reason: string;
  readonly text: string;
}

/**
 * The line that replaces such a row, without its line end: not a row of any table, so it goes to quarantine. `ts` is
 * the row's time in nanoseconds, if known.
 */
export function badRowLine({ reason, text }: BadRow, ts: string | undefined): string {
  return JSON.stringify({ ...(ts === undefined ? {} : { ts_event: ts }), [notARow]: reason, row: text });
}

/**
 * The contents of such a line; undefined for any other. A line with further members is not ours, so its own text must
 * be kept.
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
