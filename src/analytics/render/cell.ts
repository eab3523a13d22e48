import {
  DuckDBArrayValue,
  DuckDBDecimalValue,
  DuckDBListValue,
  DuckDBMapValue,
  DuckDBStructValue,
  DuckDBTimestampMillisecondsValue,
  DuckDBTimestampNanosecondsValue,
  DuckDBTimestampSecondsValue,
  DuckDBTimestampTZValue,
  DuckDBTimestampValue,
  type DuckDBValue,
} from "@duckdb/node-api";
import { formatTime, int64Max, int64Min } from "../../model/time.ts";

/**
 * A value as JSON text. Integers are numbers up to 2^53 - 1 and strings beyond, where a JSON reader would alter them;
 * decimals are strings with all the digits of their type; times are RFC 3339 strings, those of nanosecond type with
 * nine decimals; NaN and infinities are strings; lists are arrays, structs objects, maps arrays of key and value.
 */
export function jsonCell(value: DuckDBValue): string {
  if (value === null) return "null";
  switch (typeof value) {
    case "string":
      return JSON.stringify(value);
    case "boolean":
      return String(value);
    case "number":
      if (!Number.isFinite(value)) return `"${value}"`;
      return Object.is(value, -0) ? "-0" : String(value);
    case "bigint":
      return value >= -safe && value <= safe ? String(value) : `"${value}"`;
    default:
      return nestedJson(value) ?? JSON.stringify(textCell(value));
  }
}

const safe = BigInt(Number.MAX_SAFE_INTEGER);

function nestedJson(value: object): string | null {
  if (value instanceof DuckDBListValue || value instanceof DuckDBArrayValue) {
    return `[${value.items.map(jsonCell).join(",")}]`;
  }
  if (value instanceof DuckDBStructValue) {
    const fields = Object.entries(value.entries).map(
      ([name, field]) => `${JSON.stringify(name)}:${jsonCell(field)}`,
    );
    return `{${fields.join(",")}}`;
  }
  if (value instanceof DuckDBMapValue) {
    const entries = value.entries.map(
      (entry) => `{"key":${jsonCell(entry.key)},"value":${jsonCell(entry.value)}}`,
    );
    return `[${entries.join(",")}]`;
  }
  return null;
}

/** A value as plain text, NULL as the empty string; nested values as JSON. */
export function textCell(value: DuckDBValue): string {
  if (value === null) return "";
  if (typeof value !== "object") return Object.is(value, -0) ? "-0" : String(value);
  if (value instanceof DuckDBDecimalValue) return value.toString();
  return timeText(value) ?? nestedJson(value) ?? String(value);
}

/** RFC 3339 with the decimals that the type keeps; DuckDB's own text for infinities and years Date cannot hold. */
function timeText(value: object): string | null {
  const [ns, decimals] = instantOf(value);
  if (ns === null) return null;
  if (ns <= int64Min + 1n || ns >= int64Max) return String(value);
  const text = formatTime(ns);
  return decimals === 9 ? text : `${text.slice(0, decimals === 0 ? -11 : decimals - 10)}Z`;
}

function instantOf(value: object): [bigint | null, number] {
  if (value instanceof DuckDBTimestampNanosecondsValue) return [value.nanos, 9];
  if (value instanceof DuckDBTimestampTZValue || value instanceof DuckDBTimestampValue) {
    return [value.micros * 1_000n, 6];
  }
  if (value instanceof DuckDBTimestampMillisecondsValue) return [value.millis * 1_000_000n, 3];
  if (value instanceof DuckDBTimestampSecondsValue) return [value.seconds * 1_000_000_000n, 0];
  return [null, 0];
}
