import { z } from "zod";
import { plainJsonSchema } from "../../model/yaml/json-schema.ts";
import { reconcileReportSchema } from "../reconcile/reconcile-report.ts";
import { matchings } from "./match-runs.ts";

const exact = z
  .string()
  .regex(/^-?\d+(?:\.\d*[1-9])?$/)
  .describe("exact");
const count = z.int().nonnegative();
const instant = z.string().describe("RFC 3339, UTC, nine decimals");

/** Fills that a report lists of each kind. */
export const mostFills = 20;

const fillSchema = z.strictObject({
  seq: z.string(),
  at: instant,
  order: z.string().describe("client order id"),
  account: z.string(),
  portfolio: z.string(),
  symbol: z.string(),
  side: z.enum(["BUY", "SELL"]),
  price: exact,
  quantity: exact,
  fee: exact,
  feeCurrency: z.string(),
});

const unmatchedSchema = z.strictObject({
  count,
  first: z.array(fillSchema).max(mostFills),
});

export const deltaKinds = ["time", "price", "cost", "quantity", "fee"] as const;

const deltaSchema = z.strictObject({
  what: z
    .enum(deltaKinds)
    .describe("here minus there; cost compares the price with the one there, positive if it is worse here"),
  of: z.string().describe("the symbol of a price or quantity; the currency of a fee; else empty"),
  unit: z.string(),
  n: count.describe("matched fills"),
  different: count.describe("how many of these are not zero"),
  sum: exact,
  quantiles: z
    .strictObject({ min: exact, q05: exact, q25: exact, median: exact, q75: exact, q95: exact, max: exact })
    .describe("by linear interpolation, exactly"),
});

const partsSchema = z
  .strictObject({
    onlyHere: exact.describe("fills only here: their profit by then, at the marks here, less their fees"),
    onlyThere: exact.describe("fills only there, the other way round"),
    price: exact.describe("matched fills: the quantity that both have, at different prices"),
    quantity: exact.describe("matched fills: the quantity that only one of them has"),
    fees: exact.describe("matched fills: different fees"),
    time: exact.describe("matched fills on different sides of the end of the session"),
    marks: exact.describe("the same position, marked to different prices"),
    transfers: exact.describe("deposits and withdrawals"),
    events: exact.describe("funding, interest, fees and adjustments recorded in events"),
    rest: exact.describe("the rest: nothing for runs whose books balance"),
  })
  .describe("they add up to the difference, exactly");

const daySchema = z.strictObject({
  day: z.string().describe("the session"),
  here: exact,
  there: exact,
  difference: exact.describe("here minus there"),
  parts: partsSchema,
});

const bookSchema = z.strictObject({ account: z.string(), portfolio: z.string() });

const seriesSchema = z.strictObject({
  currency: z.string(),
  here: bookSchema,
  there: bookSchema,
  sessions: count.describe("sessions that both have"),
  onlyHere: count.describe("sessions that only this run has"),
  onlyThere: count,
  different: count.describe("common sessions that end with equity differing by more than the tolerance"),
  last: daySchema.nullable().describe("the last common session"),
  largest: daySchema.nullable().describe("the session with the largest difference"),
  days: z.array(daySchema),
});

export const againstVerdicts = ["SAME", "DIFFERS", "NOT COMPARED"] as const;

/** What `runvault reconcile --against --json` prints. */
export const againstReportSchema = z.strictObject({
  version: z.literal(1),
  against: z.strictObject({
    here: z.strictObject({ instance: z.string(), run: z.string() }),
    there: z.strictObject({ instance: z.string(), run: z.string() }),
    verdict: z
      .enum(againstVerdicts)
      .describe(
        "DIFFERS if anything differs by more than allowed; SAME if everything was compared and nothing does",
      ),
    reasons: z.array(z.string()).describe("what was not compared, and why"),
    options: z.strictObject({
      match: z.enum(matchings),
      withinNs: z.string().nullable().describe("largest distance in time that counts as equal; null for any"),
      priceWithin: exact
        .nullable()
        .describe("basis points; null for none in order mode, for any in time mode"),
      tolerance: exact,
      session: z.string(),
    }),
    fills: z
      .strictObject({
        here: count,
        there: count,
        matched: count,
        equal: count.describe("matched fills that are equal in time, price, quantity and fee"),
        beyond: count.describe("matched fills that differ by more than allowed"),
        onlyHere: unmatchedSchema,
        onlyThere: unmatchedSchema,
        deltas: z.array(deltaSchema),
        firstBeyond: z.array(z.strictObject({ here: fillSchema, there: fillSchema })).max(mostFills),
      })
      .nullable(),
    equity: z.array(seriesSchema).nullable(),
    unpaired: z
      .strictObject({ here: z.array(z.string()), there: z.array(z.string()) })
      .describe("accounts, portfolios and currencies that the other run does not have"),
    notes: z.array(z.string()),
  }),
});

/** The JSON Schema of what `runvault reconcile --json` prints: the report of the checks, or of two runs. */
export function reconcileJsonSchema(): unknown {
  return plainJsonSchema(z.union([reconcileReportSchema, againstReportSchema]));
}

export type AgainstReport = Readonly<z.output<typeof againstReportSchema>>;
export type ListedFill = z.output<typeof fillSchema>;
export type FillsReport = NonNullable<AgainstReport["against"]["fills"]>;
export type FillDelta = z.output<typeof deltaSchema>;
export type EquityReport = z.output<typeof seriesSchema>;
export type EquityDay = z.output<typeof daySchema>;
export type EquityParts = z.output<typeof partsSchema>;
