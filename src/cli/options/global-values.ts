import { z } from "zod";
import { logFormats } from "../process/log-format.ts";

/** The options that every command has. */
export const globalSchema = z.object({
  verbose: z.boolean().default(false),
  quiet: z.boolean().default(false),
  debug: z.boolean().default(false),
  logFormat: z.enum(logFormats),
  json: z.boolean().default(false),
  /** Results are JSON objects, one per line, each printed when known; implies `json`. */
  jsonLines: z.boolean().default(false),
});

/** Values of the options that every command has. */
export type GlobalValues = z.output<typeof globalSchema>;
