import { z } from "zod";

const amount = z
  .string()
  .regex(/^-?\d+(?:\.\d*[1-9])?(?:e[+-]\d+)?$/)
  .describe("exact for money, quantities and counts; a statistic has an exponent where it is very small");

const breakSchema = z.strictObject({
  at: z.string().describe("when; RFC 3339, UTC, nine decimals"),
  amount: amount.nullable().describe("reported minus expected; null if nothing is subtracted"),
  unit: z.string().describe("the unit of the amount; empty if there is none"),
  what: z.string().describe("what is wrong, for people"),
  rows: z
    .array(z.strictObject({ table: z.string(), seq: z.string() }))
    .describe("the rows between the last good point and the bad one, the bad one last; at most 12"),
  moreRows: z.int().nonnegative().describe("rows between the two that are not listed"),
});

export const verdicts = ["HOLDS", "BREAKS", "NOT CHECKED"] as const;

const checkSchema = z.strictObject({
  number: z.int().min(1).max(8),
  name: z.string(),
  formula: z.string(),
  verdict: z.enum(verdicts),
  reason: z.string().nullable().describe("why it was not checked, or not completely; null if it was"),
  rows: z.int().nonnegative().describe("rows looked at"),
  breaks: z.int().nonnegative().describe("rows that break it"),
  largest: amount.nullable().describe("the largest difference in absolute value; null if there is none"),
  notes: z.array(z.string()),
  first: z
    .array(breakSchema)
    .max(20)
    .describe(
      "the first places where it does not hold; points that are off by the same amount as the one before count as one",
    ),
});

const runSchema = z.strictObject({
  instance: z.string(),
  run: z.string(),
  verdict: z.enum(verdicts).describe("BREAKS if one check breaks, HOLDS if all hold"),
  unproven: z
    .array(z.string())
    .describe("tables whose rows are not proven, with their state; none unless --allow-incomplete is given"),
  tolerance: amount,
  accounting: z
    .enum(["spot", "margin"])
    .nullable()
    .describe("the order given or detected; null if none was needed"),
  costs: z.enum(["average", "fifo"]).nullable().describe("how the cost of a closed position is computed"),
  fillOrder: z.enum(["key", "trade_id"]).nullable(),
  instruments: z
    .array(z.string())
    .describe("the properties used for the instruments, and which of them were assumed"),
  checks: z.array(checkSchema),
});

/** What `runvault reconcile --json` prints. */
export const reconcileReportSchema = z.strictObject({
  version: z.literal(1),
  runs: z.array(runSchema),
});

export type Verdict = (typeof verdicts)[number];
export type Break = Readonly<z.output<typeof breakSchema>>;
export type Check = Readonly<z.output<typeof checkSchema>>;
export type ReconciledRun = Readonly<z.output<typeof runSchema>>;
export type ReconcileReport = Readonly<z.output<typeof reconcileReportSchema>>;

/** Breaks that a check lists. */
export const mostBreaks = 20;

/** What a check found, before its verdict. */
export type Finding = Omit<Check, "verdict" | "reason"> & {
  /** Why not everything was checked. */
  readonly unchecked: readonly string[];
};

/** A check with its verdict: one that did not look at everything cannot hold. */
export function judged({ unchecked, ...finding }: Finding): Check {
  const reasons = [...new Set(unchecked)];
  if (reasons.length === 0 && finding.rows === 0) reasons.push("there are no rows to check");
  const reason = reasons.length === 0 ? null : reasons.join("; ");
  const verdict = finding.breaks > 0 ? "BREAKS" : reason === null ? "HOLDS" : "NOT CHECKED";
  return { ...finding, verdict, reason };
}

/** The verdict of several. */
export function verdictOf(checks: readonly { readonly verdict: Verdict }[]): Verdict {
  if (checks.some(({ verdict }) => verdict === "BREAKS")) return "BREAKS";
  return checks.length > 0 && checks.every(({ verdict }) => verdict === "HOLDS") ? "HOLDS" : "NOT CHECKED";
}
