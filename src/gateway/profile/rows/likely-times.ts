import { RunvaultError } from "../../../model/error.ts";
import { parseJson } from "../../../model/outside-json.ts";
import type { RowMap, TimeUnit } from "../../../model/profile/row-map.ts";
import type { Table } from "../../../model/profile/table.ts";
import { formatTime, type Nanoseconds, parseTime } from "../../../model/time.ts";

const earliest = parseTime("1990-01-01");
const latest = parseTime("2100-01-01");
const units: readonly (readonly [Exclude<TimeUnit, "rfc3339">, bigint])[] = [
  ["ns", 1n],
  ["us", 1_000n],
  ["ms", 1_000_000n],
  ["s", 1_000_000_000n],
];

/**
 * Passes on an answer's canonical lines, in chunks of whole lines. Throws `malformed_row` if a time in the first row is
 * not between 1990 and 2100 but would be in another unit: then the profile's unit is wrong, and with it every
 * time.
 */
export async function* withLikelyTimes(
  table: Table,
  map: RowMap,
  lines: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void> {
  let isChecked = false;
  for await (const chunk of lines) {
    if (!isChecked && chunk.byteLength > 0) {
      isChecked = true;
      const text = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      const end = text.indexOf(0x0a);
      requireLikelyTimes(table, map, text.toString("utf8", 0, end < 0 ? text.length : end));
    }
    yield chunk;
  }
}

function requireLikelyTimes(table: Table, map: RowMap, line: string): void {
  let row: Readonly<Record<string, unknown>> | null;
  try {
    row = parseJson(line) as typeof row;
  } catch {
    // the reader of the lines reports what is wrong with them
    return;
  }
  for (const { name, kind } of table.columns) {
    const source = map.columns[name];
    const value = row?.[name];
    if (kind !== "timestamp" || source?.kind !== "field" || typeof value !== "string") continue;
    const { unit = "ns" } = source;
    if (unit === "rfc3339" || !/^-?\d{1,19}$/.test(value)) continue;
    const time = BigInt(value);
    const [, ns = 1n] = units.find(([own]) => own === unit) ?? [];
    const [likely] = units.find(([, other]) => isLikely((time / ns) * other)) ?? [];
    if (isLikely(time) || likely === undefined) continue;
    const [, other = 1n] = units.find(([own]) => own === likely)!;
    throw new RunvaultError(
      "malformed_row",
      `${name} of the first row is ${formatTime(time)} in ${unit}, but ${formatTime((time / ns) * other)} in ${likely}`,
      { hint: `Correct the unit of ${name} in the profile: it is probably ${likely}, not ${unit}.` },
    );
  }
}

function isLikely(time: Nanoseconds): boolean {
  return time >= earliest && time < latest;
}
