import { z } from "zod";
import { matchings } from "../../analytics/against/match-runs.ts";
import { exactOf } from "../../analytics/instruments/instrument.ts";
import { fillOrderChoices } from "../../analytics/trades/fill-columns.ts";
import { archiveShape } from "./archive-option.ts";
import { sessionText } from "./metrics-values.ts";
import { mebibytes, nonEmpty, waitMs } from "./option-values.ts";

export const accountings = ["auto", "spot", "margin"] as const;

/** An exact non-negative decimal. */
const amount = z
  .string()
  .regex(/^\d{1,20}(?:\.\d{1,18})?$/, "must be a decimal of zero or more, such as 0.000000001")
  .transform(exactOf);

const days = sessionText.refine((session) => session !== "bars", {
  error: "must be utc or a time zone: curves are compared at the ends of days",
});

/** The values of `runvault reconcile`. */
export const reconcileSchema = z.object({
  ...archiveShape,
  runs: z.array(nonEmpty).min(1),
  tolerance: amount.optional(),
  accounting: z.enum(accountings).optional(),
  fillOrder: z.enum(fillOrderChoices).optional(),
  instruments: nonEmpty.optional(),
  against: nonEmpty.optional(),
  againstArchive: nonEmpty.optional(),
  match: z.enum(matchings).optional(),
  within: waitMs.optional(),
  priceWithin: amount.optional(),
  session: days.optional(),
  allowIncomplete: z.boolean().default(false),
  memory: mebibytes,
});
export type ReconcileValues = z.output<typeof reconcileSchema>;
