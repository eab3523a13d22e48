import { RunvaultError } from "../../model/error.ts";

/** A time field of a rendered line, in UNIX nanoseconds. */
export function lineTime(line: string, field: "ts_event" | "ts_init"): bigint {
  const mark = `"${field}":"`;
  const start = line.indexOf(mark) + mark.length;
  const end = line.indexOf('"', start);
  if (start < mark.length || end < 0) throw new RunvaultError("internal", "a rendered line has no time");
  return BigInt(line.slice(start, end));
}
