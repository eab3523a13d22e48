import { z } from "zod";
import { connectCodeNames } from "../../../model/connect-code-names.ts";
import { type TableName, tableNames, tables } from "../../../model/profile/table.ts";
import { documentsSchema, wholeSchema } from "../document-schema.ts";
import { type ErrorWord, errorWords } from "../error-schema.ts";
import { fieldPathSchema, listPathSchema } from "../field-path-schema.ts";
import { timesSchema, unitSchema } from "../request-schema.ts";

const methodMust = "must be the full name of a method, such as acme.v1.History.ListFills";
const methodSchema = z
  .string({ error: methodMust })
  .regex(/^[A-Za-z_][\w.]*[./][A-Za-z_]\w*$/, methodMust)
  .meta({ description: "the method, as package.Service.Method", examples: ["acme.v1.History.ListFills"] });

/** A field of a request's message; `none` removes one named for all tables. */
const requestField = (description: string) => fieldPathSchema.optional().meta({ description });
const answerField = (description: string) => fieldPathSchema.optional().meta({ description });

const filterSchema = z
  .strictObject(
    Object.fromEntries(
      ["resource_key", "symbol", "venue", "account", "portfolio"].map((name) => [
        name,
        requestField(`field that selects rows by ${name}`),
      ]),
    ) as Record<string, ReturnType<typeof requestField>>,
    { error: "must be a map from filters to fields" },
  )
  .optional()
  .meta({ description: "fields that select rows; filters that are not named here cannot be used" });

const parametersSchema = z
  .strictObject({
    instance: requestField("field that names the instance"),
    run: requestField("field that names the run"),
    from: requestField("field for the earliest time"),
    to: requestField("field for the latest time"),
    limit: requestField("field for the largest number of rows in a page"),
    filters: filterSchema,
    fixed: z
      .record(z.string().min(1), z.json(), { error: "must be a map from fields to values" })
      .optional()
      .meta({
        description: "fields that are sent unchanged, in protobuf's JSON form",
        examples: [{ kind: "TRADES" }],
      }),
  })
  .optional()
  .meta({
    description: "fields of the request's message, with dots into messages; those not named are not sent",
    examples: [{ run: "execution", from: "window.start", to: "window.end", limit: "page_size" }],
  });

const pagesSchema = z
  .union(
    [
      z.literal("none"),
      z.strictObject({
        send: fieldPathSchema.meta({
          description: "field of the request for the token of the next page",
        }),
        next: fieldPathSchema.meta({
          description: "field of the answer with the token of the next page",
        }),
      }),
    ],
    { error: "must be none, or a map with send and next" },
  )
  .optional()
  .meta({
    description: "how an answer continues: by a token that the next request sends",
    examples: [{ send: "page_token", next: "next_page_token" }],
  });

const rowsSchema = fieldPathSchema.optional().meta({
  description:
    "repeated field of the answer with the rows, followed by the message in it if a row is one of several",
  examples: ["rows"],
});

const largestLimitSchema = z
  .int({ error: "must be a whole number" })
  .min(1)
  .max(100_000)
  .optional()
  .meta({ description: "most rows that one page may have", examples: [5000] });

const route = {
  parameters: parametersSchema,
  times: timesSchema.optional(),
  pages: pagesSchema,
  rows: rowsSchema,
  largest_limit: largestLimitSchema,
};

function document<T extends z.core.$ZodLooseShape>(shape: T, description: string) {
  return z
    .union(
      [z.literal("none"), z.strictObject({ method: methodSchema, parameters: parametersSchema, ...shape })],
      { error: "must be none, or a map with method" },
    )
    .optional()
    .meta({ description });
}

const statuses = ["RUNNING", "FINISHED", "FAILED"] as const;
const unit = unitSchema.optional().meta({
  description: "how its times are written; default: rfc3339 for a Timestamp, otherwise ns",
});

const documents = z.strictObject({
  instances: document(
    {
      list: listPathSchema.meta({ description: "repeated field of the answer with the instances" }),
      id: answerField("where an entry has the instance's id; default: the entry itself"),
      runs: answerField("where an entry has the list of its run ids"),
      whole: wholeSchema,
    },
    "the list of instances",
  ),
  runs: document(
    {
      list: listPathSchema.meta({ description: "repeated field of the answer with the runs" }),
      id: fieldPathSchema.meta({ description: "where an entry has the run's id" }),
      started: answerField("when it began"),
      ended: answerField("when it ended"),
      unit,
      status: answerField("its status"),
      words: z
        .record(z.string().min(1), z.enum(statuses, { error: `must be one of ${statuses.join(", ")}` }))
        .optional()
        .meta({ description: `the gateway's words for ${statuses.join(", ")}; default: these` }),
      final: answerField("whether no more rows will be added"),
      storage_version: answerField("a text that changes whenever any of its rows does"),
      whole: wholeSchema,
    },
    "the list of an instance's runs",
  ),
  storage: document(
    {
      times: timesSchema.optional(),
      list: listPathSchema.optional().meta({
        description:
          "repeated field of the answer with the tables; if not given, an answer is about one table",
      }),
      table: answerField("where an entry names its table"),
      tables: z
        .record(
          z.string().min(1),
          z.enum(tableNames as [TableName, ...TableName[]], {
            error: `must be one of ${tableNames.join(", ")}`,
          }),
        )
        .optional()
        .meta({ description: "the gateway's names for tables; default: runvault's" }),
      table_parameter: requestField("field of the request that selects one table"),
      rows: fieldPathSchema.meta({ description: "number of rows" }),
      first: answerField("time of the earliest row"),
      last: answerField("time of the latest row"),
      unit,
      final: answerField("whether no more rows will be added to the table"),
      heeds_bounds: z.boolean({ error: "must be true or false" }).optional().meta({
        description: "false if counts are always of the whole run, whatever the bounds",
      }),
    },
    "how many rows each table has",
  ),
  summary: document({}, "the run's summary, stored unchanged"),
  resources: document({}, "the run's resources, stored unchanged"),
  instance: document(
    { current_run: answerField("where it names the instance's current run") },
    "the instance, stored unchanged",
  ),
  given: documentsSchema.shape.given,
});

const errors = z
  .strictObject(
    Object.fromEntries(
      Object.keys(errorWords).map((word) => [
        word,
        z
          .array(z.enum(connectCodeNames, { error: `must be one of ${connectCodeNames.join(", ")}` }), {
            error: "must be a list of codes",
          })
          .optional(),
      ]),
    ) as Record<
      ErrorWord,
      z.ZodOptional<z.ZodArray<z.ZodEnum<{ [K in (typeof connectCodeNames)[number]]: K }>>>
    >,
    { error: "must be a map from meanings to codes" },
  )
  .optional()
  .meta({
    description: "what RPC codes mean, if it differs from the usual",
    examples: [{ gone: ["not_found"] }],
  });

/** A profile's RPC part, with each value checked by itself. */
export const rpcSchema = z
  .strictObject(
    {
      protocol: z.enum(["connect", "grpc"], { error: "must be connect or grpc" }).meta({
        description: "connect: over HTTP/1.1; grpc: over HTTP/2",
        examples: ["grpc"],
      }),
      descriptors: z
        .string({ error: "must be the path of a descriptor set" })
        .min(1, "must not be empty")
        .meta({
          description:
            "a FileDescriptorSet, relative to the profile's folder, made with buf build -o or grpcurl -protoset-out",
          examples: ["gateway.binpb"],
        }),
      base: z
        .string({ error: "must be a path that begins with a slash, or empty" })
        .regex(
          /^(?:\/[\w.~-]+)*$/,
          "must be a path that begins with a slash and does not end with one, or empty",
        )
        .optional()
        .meta({
          description: "path below which the methods are; default: the path in the gateway's address",
        }),
      ...route,
      documents: documents.optional().meta({
        description: "lists, counts and documents; those that are not named do not exist",
      }),
      tables: z
        .strictObject(
          Object.fromEntries(
            tables.map(({ name, meaning }) => [
              name,
              z
                .strictObject({ method: methodSchema, ...route }, { error: "must be a map with method" })
                .optional()
                .meta({ description: meaning }),
            ]),
          ) as Record<TableName, z.ZodOptional<z.ZodObject<typeof route & { method: typeof methodSchema }>>>,
          { error: "must be a map of tables" },
        )
        .optional()
        .meta({ description: "the method of each table that comes over RPC" }),
      errors,
    },
    { error: "must be a map of keys and values" },
  )
  .meta({
    description: "how the gateway is asked over RPC",
    examples: [{ protocol: "grpc", descriptors: "gateway.binpb" }],
  });
export type RpcFile = z.output<typeof rpcSchema>;
