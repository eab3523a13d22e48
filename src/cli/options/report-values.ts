import { z } from "zod";
import { metricsSchema } from "./metrics-values.ts";
import { nonEmpty } from "./option-values.ts";

/** The values of `runvault report`. */
export const reportSchema = metricsSchema.extend({
  out: nonEmpty.optional(),
  specs: nonEmpty.optional(),
  force: z.boolean().default(false),
  reconcile: z.boolean().default(true),
});
export type ReportValues = z.output<typeof reportSchema>;
