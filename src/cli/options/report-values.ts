import { z } from "zod";
import { metricsSchema } from "./metrics-values.ts";
import { nonEmpty } from "./option-values.ts";

/** The values of `runvault report`. */
export const reportSchema = metricsSchema.extend({
  out: nonEmpty,
  specs: nonEmpty.optional(),
  force: z.boolean().default(false),
});
export type ReportValues = z.output<typeof reportSchema>;
