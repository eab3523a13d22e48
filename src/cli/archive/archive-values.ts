import { z } from "zod";
import type { ArchiveTarget } from "../../extract/choose/choose-runs.ts";
import { RunvaultError } from "../../model/error.ts";
import { askable, parseInstance, parseWantedRun } from "../../model/run-argument.ts";
import { archiveShape, scratchShape } from "../options/archive-option.ts";
import { gatewayShape } from "../options/gateway-options.ts";
import {
  ageMs,
  bytesPerSecond,
  decimalTypes,
  durationMs,
  finishedWords,
  mebibytes,
  tableList,
  waitMs,
  wholeNumber,
} from "../options/option-values.ts";

/** The same as in `archive/segment.ts`, whose zlib this command does not load before it runs. */
const mostSegmentBytes = 64 * 1024 * 1024;

/** Options of `runvault archive`, checked. */
export const archiveSchema = z.object({
  ...archiveShape,
  ...scratchShape,
  ...gatewayShape,
  runs: z.array(z.string()).default([]),
  all: z.boolean().default(false),
  finished: z.boolean().default(false),
  finishedStatus: finishedWords.optional(),
  tables: tableList.optional(),
  dryRun: z.boolean().default(false),
  require: z.enum(["hashed", "counted", "any"]),
  settle: waitMs,
  acceptShrink: z.boolean().default(false),
  acceptQuarantine: z.boolean().default(false),
  finalPass: z.enum(["rows", "counts"]),
  sourceMoved: z.boolean().default(false),
  close: z.boolean().default(false),
  recheck: z
    .union([ageMs, z.literal(true)], "must be an age such as 30d, or stand alone after the run names")
    .optional(),
  fingerprint: z.boolean().default(false),
  empty: tableList.default([]),
  decimal: decimalTypes.default({}),
  widen: z.enum(["auto", "never"]).optional(),
  maxTime: durationMs.optional(),
  maxBytes: mebibytes.optional(),
  minRate: bytesPerSecond.optional(),
  minRateWindow: durationMs.optional(),
  parallelRuns: wholeNumber(1, 64).optional(),
  segmentBytes: wholeNumber(1, mostSegmentBytes).optional(),
  sliceRows: wholeNumber(1).optional(),
});

export type ArchiveValues = z.output<typeof archiveSchema>;

/** Reads the arguments together with --all and --finished. Throws `invalid_argument` if they do not fit together. */
export function archiveTarget(values: Pick<ArchiveValues, "runs" | "all" | "finished">): ArchiveTarget {
  const { runs, all, finished } = values;
  const refuse = (message: string) =>
    new RunvaultError("invalid_argument", message, {
      hint: "Name runs as INSTANCE/RUN…, or give INSTANCE --finished, or --all --finished.",
    });
  if (all && !finished) throw refuse("--all needs --finished");
  if (all && runs.length > 0) throw refuse("--all cannot be combined with names of instances or runs");
  if (all) return { kind: "finished", instances: undefined };
  if (runs.length === 0) throw refuse("no run is named");
  const instance = finished ? undefined : runs.find((text) => text !== "" && !text.includes("/"));
  if (instance !== undefined) throw refuse(`${JSON.stringify(instance)} does not name a run`);
  if (!finished) return { kind: "runs", runs: runs.map(parseWantedRun) };
  const run = runs.find((text) => text.includes("/"));
  if (run !== undefined) throw refuse(`--finished takes instances, but ${JSON.stringify(run)} is a run`);
  return {
    kind: "finished",
    instances: runs.map((text) => askable({ instanceId: parseInstance(text) }).instanceId),
  };
}
