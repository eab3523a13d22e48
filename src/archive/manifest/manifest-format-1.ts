import { z } from "zod";
import { type TableName, tableNames } from "../../model/profile/table.ts";
import { grains } from "../bucket.ts";
import {
  type Attempt,
  type AttemptOutcome,
  certificateSchema,
  failureSchema,
  type Holding,
  holdingSchema,
  type Manifest,
  manifestSchema,
  type TableManifest,
  tableStates,
} from "./manifest.ts";

/** Tables in format 1: one holding, with the state of the latest attempt. */
const tableSchema1 = z.strictObject({
  state: z.enum(tableStates),
  grain: z.enum(grains),
  certificate: certificateSchema
    .omit({ quarantineAccepted: true, gatewayFrom: true, restsOn: true })
    .extend({ proof: z.enum(["counted", "exhausted", "none"]) })
    .nullable(),
  ...holdingSchema.omit({ certificate: true }).shape,
  error: failureSchema.nullable(),
});

/** A manifest of format 1. It can be read forever; the run's next commit writes the current format. */
export const manifestSchema1 = manifestSchema.omit({ closedAt: true }).extend({
  format: z.literal(1),
  tables: z.partialRecord(z.enum(tableNames as [TableName, ...TableName[]]), tableSchema1),
});

/** The same run in the present format. */
export function fromFormat1(old: z.infer<typeof manifestSchema1>): Manifest {
  const tables = Object.entries(old.tables).map(([name, table]) => [name, tableOf(table, old.committedAt)]);
  return { ...old, format: 2, closedAt: null, tables: Object.fromEntries(tables) };
}

/**
 * Proven states of format 1 stay proven. A failed table kept its earlier generation with that certificate: that part is
 * proven. All other rows belong to an attempt.
 */
function tableOf(table: z.infer<typeof tableSchema1>, committedAt: string): TableManifest {
  const { state, grain, certificate: old, error, ...files } = table;
  const certificate =
    old === null ? null : { ...old, quarantineAccepted: false, gatewayFrom: null, restsOn: [] };
  const at = error?.at ?? old?.checkedAt ?? committedAt;
  const holding: Holding = { ...files, certificate };
  const isProven = state === "COMPLETE" || state === "OPEN" || state === "ABSENT";
  const outcome: AttemptOutcome = isProven ? "ok" : state;
  const attempt: Omit<Attempt, "holding"> = {
    outcome,
    at,
    behindSince: isProven ? null : at,
    error,
    notes: [],
  };
  if (isProven)
    return { state, grain, proven: { state, ...holding }, attempt: { ...attempt, holding: null } };
  const wasProven =
    state === "INCOMPLETE" &&
    old !== null &&
    old.proof !== "none" &&
    old.ended === "clean" &&
    old.quarantined === 0;
  if (!wasProven) return { state, grain, proven: null, attempt: { ...attempt, holding } };
  const formerState = old.until === null ? "COMPLETE" : "OPEN";
  return { state, grain, proven: { state: formerState, ...holding }, attempt: { ...attempt, holding: null } };
}
