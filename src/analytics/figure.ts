import { z } from "zod";
import { formatTime, type Nanoseconds } from "../model/time.ts";

const instant = z.string().describe("RFC 3339, UTC, nine decimals");

/** A known number, with everything needed to compute it again. */
const knownFigureSchema = z.strictObject({
  value: z
    .union([z.number(), z.string().regex(/^-?\d+(?:\.\d*[1-9])?$/)])
    .describe("a statistic as a number; money and quantities as an exact decimal string"),
  unit: z.string().describe("its unit: ratio, per year, s, trades, a currency"),
  convention: z.string().describe("how it was computed, such as `ddof 1, P 365`"),
  n: z.int().nonnegative().describe("number of values: returns, trades, points"),
  from: instant.describe("the first timestamp that it covers; RFC 3339, UTC, nine decimals"),
  to: instant.describe("the last timestamp that it covers"),
});

const unknownFigureSchema = z.strictObject({
  value: z.null(),
  reason: z.string().describe("why there is no value, such as `no losing period`"),
});

/** The form of every number: never NaN, an infinity or -0, and null only with its reason. */
export const figureSchema = z.union([knownFigureSchema, unknownFigureSchema]);

export type KnownFigure = Readonly<z.output<typeof knownFigureSchema>>;
export type UnknownFigure = Readonly<z.output<typeof unknownFigureSchema>>;
export type Figure = KnownFigure | UnknownFigure;

/** The basis of a figure: `n` values from the first instant to the last, both UNIX nanoseconds. */
export interface FigureBasis {
  readonly unit: string;
  readonly convention: string;
  readonly n: number;
  readonly from: Nanoseconds;
  readonly to: Nanoseconds;
}

/**
 * A number as a figure. NaN and infinities become null with the reason `notFinite`; callers that know a better reason
 * use `noFigure`. -0 becomes 0.
 */
export function figure(
  value: number | string,
  basis: FigureBasis,
  notFinite = "not a finite number",
): Figure {
  if (typeof value === "number" && !Number.isFinite(value)) return noFigure(notFinite);
  const { unit, convention, n, from, to } = basis;
  return {
    value: value === 0 ? 0 : value,
    unit,
    convention,
    n,
    from: formatTime(from),
    to: formatTime(to),
  };
}

/** A missing figure, and why: `no fills`, `fewer than 2 returns`. */
export function noFigure(reason: string): UnknownFigure {
  return { value: null, reason };
}
