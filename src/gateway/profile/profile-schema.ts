import { z } from "zod";
import { type Column, filterNames, type Table, tables } from "../../model/profile/table.ts";
import { columnSchema } from "./column-schema.ts";
import { documentsSchema } from "./document-schema.ts";
import { errorsSchema } from "./error-schema.ts";
import { fieldPathSchema } from "./field-path-schema.ts";
import { profileVersion } from "./profile-version.ts";
import {
  baseSchema,
  largestLimitSchema,
  methodSchema,
  orderSchema,
  pagesSchema,
  parametersSchema,
  pathSchema,
  rowFormSchema,
  timesSchema,
} from "./request-schema.ts";
import { rpcSchema } from "./rpc/rpc-schema.ts";
import { headersSchema, keysSchema } from "./secret-schema.ts";

const dropped = z
  .array(
    z.strictObject(
      {
        from: fieldPathSchema.meta({ description: "the field" }),
        lossy: z.literal(true, { error: "must be true: what is dropped cannot be had again" }).meta({
          description: "that what is dropped cannot be had again",
        }),
      },
      { error: "must be { from: FIELD, lossy: true }" },
    ),
    { error: "must be a list of { from: FIELD, lossy: true }" },
  )
  .meta({ description: "fields that are not kept", examples: [[{ from: "debug", lossy: true }]] });

/** How rows are read, for all tables or one. */
const rowShape = {
  numbers: z
    .enum(["text", "exact"], { error: "must be text or exact" })
    .optional()
    .meta({
      description:
        "exact: exact numbers may come as bare JSON numbers, and what the gateway rounded nobody can find; without it they " +
        "have to be text",
    }),
  fields: z.enum(["keep", "freeze"], { error: "must be keep or freeze" }).optional().meta({
    description:
      "what becomes of fields that no column takes: keep, into the column extra, or freeze, which fails the table",
  }),
  ties: z.enum(["bytes", "arrival"], { error: "must be bytes or arrival" }).optional().meta({
    description: "how rows of one time are numbered where seq is derived: by their bytes, or as they arrive",
  }),
  dropped: dropped.optional(),
  canonical: z
    .boolean({ error: "must be true or false" })
    .optional()
    .meta({ description: "whether rows come as runvault has them itself, so that nothing is done to them" }),
};

function columns(of: readonly Column[]) {
  return z
    .strictObject(Object.fromEntries(of.map((column) => [column.name, columnSchema(column).optional()])), {
      error: "must be a map of columns",
    })
    .optional()
    .meta({
      description: "where each column comes from; one that is not named comes from the field of its own name",
      examples: [{ price: "px" }],
    });
}

const everyColumn = [
  ...new Map(tables.flatMap(({ columns }) => columns).map((column) => [column.name, column])).values(),
];

function tableSchema(table: Table) {
  return z
    .union(
      [
        z.literal("none"),
        z.strictObject({
          path: pathSchema
            .optional()
            .meta({ description: "path, with {run} and {instance} in it", examples: ["/runs/{run}/fills"] }),
          method: methodSchema.optional(),
          parameters: parametersSchema(table.filters).optional(),
          times: timesSchema.optional(),
          pages: pagesSchema.optional(),
          rows: rowFormSchema.optional(),
          order: orderSchema.optional(),
          largest_limit: largestLimitSchema.optional(),
          columns: columns(table.columns),
          ...rowShape,
        }),
      ],
      { error: "must be none, or a map with path" },
    )
    .optional()
    .meta({
      description: `${table.meaning}; none where the gateway has no such history`,
      examples: [{ path: "/runs/{run}/fills" }],
    });
}

/** The schema of profiles, from which the check, the type and the JSON Schema are all made. */
export const profileSchema = z
  .strictObject(
    {
      profile: z
        .literal(profileVersion, {
          error: `must be ${profileVersion}, the version of profiles that this runvault reads`,
        })
        .meta({ description: "version of this form of profile", examples: [profileVersion] }),
      name: z
        .string({ error: nameMust() })
        .regex(/^[a-z0-9](?:[a-z0-9-]{0,50}[a-z0-9])?$/, nameMust())
        .meta({ description: "name of the profile in messages and manifests", examples: ["acme"] }),
      extends: z
        .string({ error: "must be the path of another profile, or default" })
        .min(1, "must not be empty")
        .optional()
        .meta({
          description: "profile that this one changes: a file, from this one's folder on, or default",
          examples: ["default"],
        }),
      headers: headersSchema.optional().meta({
        description: "headers of every request; their values come from the environment or a file",
        examples: [{ "X-Api-Key": { env: "GATEWAY_KEY" } }],
      }),
      rest: z
        .strictObject(
          {
            base: baseSchema
              .optional()
              .meta({ description: "put between the gateway's address and every path", examples: ["/v2"] }),
            keys: keysSchema.optional().meta({
              description: "query parameters that carry a secret, for gateways that take it in no header",
              examples: [{ api_key: { env: "GATEWAY_KEY", in_address: true } }],
            }),
            method: methodSchema.optional(),
            parameters: parametersSchema(filterNames).optional(),
            times: timesSchema.optional(),
            pages: pagesSchema.optional(),
            rows: rowFormSchema.optional(),
            order: orderSchema.optional(),
            largest_limit: largestLimitSchema.optional(),
          },
          { error: "must be a map of keys and values" },
        )
        .optional()
        .meta({
          description: "what holds for every table, unless the table says otherwise",
          examples: [{ base: "/v2" }],
        }),
      documents: documentsSchema.optional().meta({
        description: "lists, counts and documents; one that is not named, the gateway does not have",
        examples: [{ storage: "none" }],
      }),
      rows: z
        .strictObject(
          { ...rowShape, columns: columns(everyColumn) },
          { error: "must be a map of keys and values" },
        )
        .optional()
        .meta({
          description: "how rows are read, for every table, unless the table says otherwise",
          examples: [{ numbers: "exact" }],
        }),
      tables: z
        .strictObject(
          Object.fromEntries(tables.map((table) => [table.name, tableSchema(table)])) as Record<
            (typeof tables)[number]["name"],
            ReturnType<typeof tableSchema>
          >,
          { error: "must be a map of tables" },
        )
        .optional()
        .meta({
          description: "the history that the gateway has; a table that is not named is not asked for",
          examples: [{ fills: { path: "/runs/{run}/fills" } }],
        }),
      errors: errorsSchema.optional(),
      rpc: rpcSchema.optional(),
    },
    { error: "must be a map of keys and values" },
  )
  .meta({ title: "runvault profile", description: "How a gateway differs from what runvault expects." });

/** A profile as its file has it, each value checked by itself. */
export type ProfileFile = z.output<typeof profileSchema>;
export type TableFile = Exclude<NonNullable<NonNullable<ProfileFile["tables"]>["fills"]>, "none">;

function nameMust(): string {
  return "must be 1 to 52 lower-case letters, digits and hyphens, with a letter or digit at both ends";
}
