import { byteText } from "../../model/text/byte-text.ts";
import { durationText } from "../../model/text/duration-text.ts";
import { grouped } from "../../model/text/number-text.ts";
import { plural } from "../../model/text/plural.ts";
import { columnsOf, cutMiddle } from "./fit-line.ts";

/** The progress of a job at a moment. */
export interface Course {
  /** The work at hand. */
  readonly what: string;
  /**
   * The number of this run among all; unless it is alone, one more than have ended. Null for a job that does not go run
   * by run.
   */
  readonly part: { readonly number: number; readonly of: number; readonly isAlone: boolean } | null;
  /** Its rows and bytes so far. */
  readonly rows: number;
  readonly bytes: number;
  /** Expected rows; null if unknown, or if more came than expected. */
  readonly total: number | null;
  /** Rows a second; null if there is no basis yet. A rate that rounds to zero is not shown. */
  readonly perSecond: number | null;
  /** Until the end of the whole job; null if unknown. */
  readonly leftMs: number | null;
  /** The part being converted to Parquet, and how many there are; null while rows come. */
  readonly converting: { readonly number: number; readonly of: number } | null;
}

/**
 * `run 3 of 40 alpha-1/2022-01-01: 120,000 of 1,000,000 rows, 53.1 MB, 48,000 rows/s, 18 s left`; with runs beside each
 * other `3 of 40 runs: 120,000 rows, …`.
 */
export function progressLine(course: Course): string {
  return joined(course, course.what, "all");
}

/** The same behind a bar, in at most so many columns: first the name is cut, then the bar, then the rate. */
export function barLine(course: Course, columns: number): string {
  const { what } = course;
  // the last column stays free: some terminals start a new line when it is filled
  const most = columns - 1;
  for (const [length, facts, least] of [
    [20, "all", Number.POSITIVE_INFINITY],
    [10, "all", 12],
    [10, "no bytes", 12],
    [0, "no bytes", 0],
    [0, "few", Number.NEGATIVE_INFINITY],
  ] as const) {
    const bar = barOf(course, length);
    // what takes as much room, whatever it is
    const room = most - columnsOf(bar + joined(course, "x", facts)) + 1;
    if (room >= Math.min(columnsOf(what), least)) {
      return cutMiddle(bar + joined(course, cutMiddle(what, room), facts), most);
    }
  }
  return "";
}

/** The share of runs that are done, plus that of the current one. Empty if the total is unknown. */
function barOf({ part, rows, total }: Course, length: number): string {
  const own = total === null || total === 0 ? null : rows / total;
  if (length === 0 || (part === null && own === null)) return "";
  const share = part === null ? own! : (part.number - 1 + (own ?? 0)) / part.of;
  return `${"█".repeat(Math.floor(share * length)).padEnd(length, "░")} `;
}

/** How much is said: `few` leaves out the rate, and the rows while they are converted. */
type Facts = "all" | "no bytes" | "few";

function joined(course: Course, name: string, which: Facts): string {
  const { part, rows, bytes, total, perSecond, leftMs, converting } = course;
  const facts = [
    ...((rows === 0 && !total) || (which === "few" && converting !== null)
      ? []
      : total === null
        ? [`${grouped(rows)} ${plural(rows, "row")}`]
        : [`${grouped(rows)} of ${grouped(total)} ${plural(total, "row")}`]),
    // what is not fetched has no size to show
    ...(which === "all" && bytes > 0 ? [byteText(bytes)] : []),
    ...(which !== "few" && rows > 0 && perSecond !== null && perSecond >= 0.5
      ? [`${grouped(Math.round(perSecond))} rows/s`]
      : []),
    ...(converting === null ? [] : [`converting ${grouped(converting.number)} of ${grouped(converting.of)}`]),
    ...(leftMs !== null
      ? [`${durationText(leftMs)} left`]
      : converting === null && total !== null && total > 0 && rows === total
        ? ["finishing"]
        : []),
  ];
  const head =
    part === null
      ? name
      : part.isAlone
        ? `run ${grouped(part.number)} of ${grouped(part.of)} ${name}`.trimEnd()
        : `${grouped(part.number - 1)} of ${grouped(part.of)} runs`;
  return [head, facts.join(", ")].filter((text) => text !== "").join(": ");
}
