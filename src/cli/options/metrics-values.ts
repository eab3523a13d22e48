import { z } from "zod";
import { fillOrderChoices } from "../../analytics/trades/fill-columns.ts";
import { groupings } from "../../analytics/trades/trade.ts";
import { RunvaultError } from "../../model/error.ts";
import { nearestName } from "../../model/text/nearest-name.ts";
import { nearestZone, zoneFault } from "../../model/text/time-zone.ts";
import { archiveShape } from "./archive-option.ts";
import { mebibytes, nonEmpty, waitMs, wholeNumber } from "./option-values.ts";

const words = ["utc", "bars"];

/** `utc`, `bars`, or a time zone, also with the time at which its day ends, such as `America/New_York 17:00`. */
export const sessionText = z.string().transform((text, context) => {
  if (words.includes(text.toLowerCase())) return text.toLowerCase();
  const [, zone = "", cut] = /^(\S*)(?:\s+(.*))?$/.exec(text.trim()) ?? [];
  const fault = zoneFault(zone);
  if (fault !== null) {
    const word = cut === undefined ? nearestName(zone, words) : null;
    const near = word ?? nearestZone(zone);
    const meant = near === null ? "" : ` (did you mean ${[near, ...[cut ?? []].flat()].join(" ")}?)`;
    context.addIssue(
      `must be utc, bars, or a time zone with the end of its day, such as "America/New_York 17:00": ${JSON.stringify(zone)} ${fault}${meant}`,
    );
    return z.NEVER;
  }
  if (cut !== undefined && !/^(?:[01]\d|2[0-3]):[0-5]\d$/.test(cut)) {
    context.addIssue(
      `must end a day at a time from 00:00 to 23:59, such as "${zone} 17:00", not at ${JSON.stringify(cut)}`,
    );
    return z.NEVER;
  }
  return cut === undefined ? zone : `${zone} ${cut}`;
});

/** Periods a year: a number above zero, or `data`. */
export const periodsOfYear = z.string().transform((text, context) => {
  if (text === "data") return text;
  const number = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (number > 0 && Number.isFinite(number)) return number;
  const near = nearestName(text, ["data"]);
  context.addIssue(
    `must be a number of periods a year, such as 252, or data${near === null ? "" : ` (did you mean ${near}?)`}`,
  );
  return z.NEVER;
});

/** A yearly rate above -100 %, `0.02` or `2%`. Above 100 % it needs the sign, because people write `2` for 2 %. */
export const yearlyRate = z.string().transform((text, context) => {
  const [, digits, percent] = /^(-?\d+(?:\.\d+)?)(%?)$/.exec(text) ?? [];
  const rate = digits === undefined ? Number.NaN : Number(digits) / (percent === "%" ? 100 : 1);
  if (rate > -1 && rate <= (percent === "%" ? 10 : 1)) return rate === 0 ? 0 : rate;
  const meant = rate > 1 ? ` (did you mean ${digits}%?)` : "";
  context.addIssue(`must be a yearly rate above -100%, such as 0.02 or 2%${meant}`);
  return z.NEVER;
});

/** A ratio, such as 1 or -0.5. */
const ratio = z.string().transform((text, context) => {
  const number = /^-?\d+(?:\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isFinite(number)) return number === 0 ? 0 : number;
  context.addIssue("must be a Sharpe ratio of a year, such as 1 or 0.5");
  return z.NEVER;
});

/** Maximum age of an order book: above zero, at most a day. */
const bookAge = waitMs.refine((ms) => ms > 0 && ms <= 86_400_000, {
  error: "must be a time above zero and at most one day, such as 500ms, 5s or 2m",
});

/** Maximum number of horizons of one page or document. */
const mostHorizons = 12;

/** Parses `1,5,20` into whole numbers of bars, each once, rising. */
export const horizonList = z.string().transform((text, context) => {
  const named = text.split(",").map((part) => part.trim());
  const numbers = named.map((part) => (/^\d{1,7}$/.test(part) ? Number(part) : 0));
  const wrong = numbers.findIndex((number) => number < 1 || number > 1_000_000);
  const given = new Set(numbers);
  if (wrong < 0 && given.size === numbers.length && given.size <= mostHorizons)
    return [...given].sort((a, b) => a - b);
  const what =
    wrong >= 0
      ? `${JSON.stringify(named[wrong])} is none`
      : given.size > mostHorizons
        ? `${given.size} are too many; the maximum is ${mostHorizons}`
        : "one is named twice";
  context.addIssue(`must be whole numbers of bars from 1 to 1000000, such as 1,5,20: ${what}`);
  return z.NEVER;
});

/** The values of `runvault metrics`. */
export const metricsSchema = z.object({
  ...archiveShape,
  runs: z.array(z.string()),
  session: sessionText,
  fill: z.boolean().default(false),
  periods: periodsOfYear.optional(),
  rf: yearlyRate,
  log: z.boolean().default(false),
  base: z.enum(["deposit", "first"]),
  benchmark: nonEmpty.optional(),
  rates: nonEmpty.optional(),
  psrBenchmark: ratio,
  omegaReturn: yearlyRate,
  group: z.enum(groupings),
  fillOrder: z.enum(fillOrderChoices),
  window: wholeNumber(2, 1_000_000).optional(),
  instruments: nonEmpty.optional(),
  bookAge,
  horizons: horizonList,
  allowIncomplete: z.boolean().default(false),
  memory: mebibytes,
});
export type MetricsValues = z.output<typeof metricsSchema>;

/** Throws `invalid_argument` for options that do not go together. */
export function refuseWrongFigures({ fill, session }: Pick<MetricsValues, "fill" | "session">): void {
  if (!fill || session !== "bars") return;
  throw new RunvaultError("invalid_argument", "--fill adds days, and --session bars has no days", {
    hint: "Leave out one of them.",
  });
}
