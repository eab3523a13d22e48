import { z } from "zod";
import { type TableName, tableNames } from "../../model/profile/table.ts";
import { fieldPathSchema, listPathSchema } from "./field-path-schema.ts";
import { methodSchema, parametersSchema, pathSchema, timesSchema, unitSchema } from "./request-schema.ts";

const request = {
  path: pathSchema.meta({
    description: "path, which may contain {run} and {instance}",
    examples: ["/runs/{run}"],
  }),
  method: methodSchema.optional(),
  parameters: parametersSchema([]).optional(),
};

const field = (description: string) => fieldPathSchema.optional().meta({ description });
const list = listPathSchema.meta({
  description: "where the list is in the answer; [] if the answer is the list",
  examples: ["data.items"],
});
export const wholeSchema = z
  .boolean({ error: "must be true or false" })
  .optional()
  .meta({ description: "true if one answer has the whole list although it looks as if it continued" });
const unit = unitSchema.optional().meta({ description: "how its times are written; default: ns" });

const statuses = ["RUNNING", "FINISHED", "FAILED"] as const;
const statusWords = z.record(
  z.string().min(1),
  z.enum(statuses, { error: `must be one of ${statuses.join(", ")}` }),
  { error: `must be a map from the gateway's words to ${statuses.join(", ")}` },
);

const tableWords = z.record(
  z.string().min(1),
  z.enum(tableNames as [TableName, ...TableName[]], { error: `must be one of ${tableNames.join(", ")}` }),
  { error: "must be a map from the gateway's names to tables" },
);

const given = z.record(
  z.string().min(1),
  z.array(z.string({ error: "must be a run's id, in quotes if it looks like a number" }).min(1), {
    error: "must be a list of run ids",
  }),
  { error: "must be a map of instances and their runs" },
);

function document<T extends z.core.$ZodLooseShape>(shape: T, description: string) {
  return z
    .union([z.literal("none"), z.strictObject(shape)], { error: "must be none, or a map with path" })
    .optional()
    .meta({ description });
}

/** Documents of a gateway. Those that are not named do not exist. */
export const documentsSchema = z.strictObject({
  instances: document(
    {
      ...request,
      list,
      id: field("where an entry has the instance's id; default: the entry itself"),
      runs: field("where an entry has the list of its run ids"),
      whole: wholeSchema,
    },
    "the list of instances",
  ),
  runs: document(
    {
      ...request,
      list,
      id: fieldPathSchema.meta({ description: "where an entry has the run's id" }),
      started: field("when it began"),
      ended: field("when it ended"),
      unit,
      status: field("its status"),
      words: statusWords.optional().meta({
        description: `the gateway's words for ${statuses.join(", ")}; default: these`,
        examples: [{ done: "FINISHED", died: "FAILED", live: "RUNNING" }],
      }),
      final: field("whether no more rows will be added"),
      storage_version: field("a text that changes whenever any of its rows does"),
      whole: wholeSchema,
    },
    "the list of an instance's runs",
  ),
  storage: document(
    {
      ...request,
      times: timesSchema.optional(),
      list: listPathSchema.optional().meta({
        description: "where the list of tables is; if not given, an answer is about the one table requested",
      }),
      table: field("where an entry names its table"),
      tables: tableWords.optional().meta({
        description: "the gateway's names for tables; default: runvault's",
        examples: [{ trades: "fills" }],
      }),
      table_parameter: z.string().min(1).optional().meta({ description: "parameter that selects one table" }),
      rows: fieldPathSchema.meta({ description: "number of rows" }),
      first: field("time of the earliest row"),
      last: field("time of the latest row"),
      unit,
      final: field("whether no more rows will be added to the table"),
      heeds_bounds: z
        .boolean({ error: "must be true or false" })
        .optional()
        .meta({ description: "false if counts are always of the whole run, whatever the bounds" }),
    },
    "how many rows each table has",
  ),
  summary: document(request, "the run's summary, stored unchanged"),
  resources: document(request, "the run's resources, stored unchanged"),
  instance: document(
    { ...request, current_run: field("where it names the instance's current run") },
    "the instance, stored unchanged",
  ),
  given: given.optional().meta({
    description: "instances and their runs, if the gateway does not list them",
    examples: [{ "alpha-1": ["2022-01-01-001"] }],
  }),
});
