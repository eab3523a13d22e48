import { z } from "zod";
import { type TableName, tableNames } from "../../model/profile/table.ts";
import { fieldPathSchema, listPathSchema } from "./field-path-schema.ts";
import { methodSchema, parametersSchema, pathSchema, timesSchema, unitSchema } from "./request-schema.ts";

const request = {
  path: pathSchema.meta({ description: "path, with {run} and {instance} in it", examples: ["/runs/{run}"] }),
  method: methodSchema.optional(),
  parameters: parametersSchema([]).optional(),
};

const field = (description: string) => fieldPathSchema.optional().meta({ description });
const list = listPathSchema.meta({
  description: "where the list is in the answer; [] where the answer is the list",
  examples: ["data.items"],
});
export const wholeSchema = z
  .boolean({ error: "must be true or false" })
  .optional()
  .meta({ description: "true where one answer has all of the list, though it looks as if it went on" });
const unit = unitSchema.optional().meta({ description: "how times are written in it; without it ns" });

const statuses = ["RUNNING", "FINISHED", "FAILED"] as const;
const statusWords = z.record(
  z.string().min(1),
  z.enum(statuses, { error: `must be one of ${statuses.join(", ")}` }),
  { error: `must be a map of the gateway's words to ${statuses.join(", ")}` },
);

const tableWords = z.record(
  z.string().min(1),
  z.enum(tableNames as [TableName, ...TableName[]], { error: `must be one of ${tableNames.join(", ")}` }),
  { error: "must be a map of the gateway's names to tables" },
);

const given = z.record(
  z.string().min(1),
  z.array(z.string({ error: "must be the id of a run, in quotes where it looks like a number" }).min(1), {
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

/** Documents of a gateway; it does not have those that are not named. */
export const documentsSchema = z.strictObject({
  instances: document(
    {
      ...request,
      list,
      id: field("where an entry has the instance's id; without it the entry itself is the id"),
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
      status: field("what it is at"),
      words: statusWords.optional().meta({
        description: `the gateway's words for ${statuses.join(", ")}; without it these`,
        examples: [{ done: "FINISHED", died: "FAILED", live: "RUNNING" }],
      }),
      final: field("whether no row will be added any more"),
      storage_version: field("a mark that changes whenever any of its rows does"),
      whole: wholeSchema,
    },
    "the list of an instance's runs",
  ),
  storage: document(
    {
      ...request,
      times: timesSchema.optional(),
      list: listPathSchema.optional().meta({
        description:
          "where the list of tables is; without it an answer is of the one table that was asked for",
      }),
      table: field("where an entry names its table"),
      tables: tableWords.optional().meta({
        description: "the gateway's names of tables; without it runvault's",
        examples: [{ trades: "fills" }],
      }),
      table_parameter: z
        .string()
        .min(1)
        .optional()
        .meta({ description: "parameter that asks for one table" }),
      rows: fieldPathSchema.meta({ description: "number of rows" }),
      first: field("time of the earliest row"),
      last: field("time of the latest row"),
      unit,
      final: field("whether the table will not grow any more"),
      heeds_bounds: z
        .boolean({ error: "must be true or false" })
        .optional()
        .meta({ description: "false where counts are of the whole run, whatever bounds are asked for" }),
    },
    "how many rows there are of each table",
  ),
  summary: document(request, "the run's summary, kept as it comes"),
  resources: document(request, "the run's resources, kept as they come"),
  instance: document(
    { ...request, current_run: field("where it names the instance's current run") },
    "the instance, kept as it comes",
  ),
  given: given.optional().meta({
    description: "instances and runs that no route lists, by name",
    examples: [{ "alpha-1": ["2022-01-01-001"] }],
  }),
});
