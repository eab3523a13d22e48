import { parseJson } from "../model/outside-json.ts";
import type { Table } from "../model/profile/table.ts";
import { canonicalLine, type Row } from "./line.ts";

/**
 * The canonical line with a stored line's meaning, made independently of conversion: blanks, key order, escapes,
 * trailing zeros of decimals and unknown fields make no difference. Null if it is not a row of the table.
 */
export function normalizedLine(table: Table, line: string): string | null {
  let value: unknown;
  try {
    value = parseJson(line);
  } catch {
    return null;
  }
  if (typeof value !== "object" || value === null) return null;
  const fields = value as Record<string, unknown>;
  const row: Row = {};
  for (const { name, kind } of table.columns) {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (typeof field === "number" && (kind === "uint32" || kind === "double")) row[name] = field;
    else if (typeof field === "string" && kind === "exact") {
      const decimal = canonicalDecimal(field);
      if (decimal === null) return null;
      row[name] = decimal;
    } else if (typeof field === "string" && kind !== "uint32") row[name] = field;
    else return null;
  }
  try {
    return canonicalLine(table, row);
  } catch {
    return null;
  }
}

/** The form for comparing stored lines: their meaning or, for a line that is not a row, the line itself. */
export function comparableLine(table: Table, line: string): string {
  return normalizedLine(table, line) ?? line;
}

/** A decimal without insignificant zeros; the empty string stays. Null if it is not a decimal. */
export function canonicalDecimal(text: string): string | null {
  if (text === "") return "";
  const match = /^(-?)0*(\d+?)(?:\.(?=\d)(\d*?)0*)?$/.exec(text);
  if (match === null) return null;
  const [, sign = "", whole = "", fraction = ""] = match;
  const digits = fraction === "" ? whole : `${whole}.${fraction}`;
  return digits === "0" ? "0" : sign + digits;
}
