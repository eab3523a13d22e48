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
        lossy: z.literal(true, { error: "must be true (dropped values cannot be restored)" }).meta({
          description: "confirms that dropped values cannot be restored",
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
        "exact: exact numbers may come as bare JSON numbers, where rounding by the gateway cannot be detected; text: " +
        "they must come as text (the default)",
    }),
  fields: z.enum(["keep", "freeze"], { error: "must be keep or freeze" }).optional().meta({
    description:
      "what to do with fields that no column takes: keep stores them in the column extra, freeze fails the table",
  }),
  ties: z.enum(["bytes", "arrival"], { error: "must be bytes or arrival" }).optional().meta({
    description:
      "how rows with the same time are numbered if seq is derived: by their bytes, or in order of arrival",
  }),
  dropped: dropped.optional(),
  canonical: z
    .boolean({ error: "must be true or false" })
    .optional()
    .meta({ description: "whether rows already have runvault's form and are stored unchanged" }),
};

function columns(of: readonly Column[]) {
  return z
    .strictObject(Object.fromEntries(of.map((column) => [column.name, columnSchema(column).optional()])), {
      error: "must be a map of columns",
    })
    .optional()
    .meta({
      description: "where each column comes from; default: the field with the column's name",
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
          path: pathSchema.optional().meta({
            description: "path, which may contain {run} and {instance}",
            examples: ["/runs/{run}/fills"],
          }),
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
      description: `${table.meaning}; none if the gateway has no such history`,
      examples: [{ path: "/runs/{run}/fills" }],
    });
}

/** The schema of profiles: the source of validation, the type and the JSON Schema. */
export const profileSchema = z
  .strictObject(
    {
      profile: z
        .literal(profileVersion, {
          error: `must be ${profileVersion}, the version of profiles that this runvault reads`,
        })
        .meta({ description: "version of the profile format", examples: [profileVersion] }),
      name: z
        .string({ error: nameMust() })
        .regex(/^[a-z0-9](?:[a-z0-9-]{0,50}[a-z0-9])?$/, nameMust())
        .meta({ description: "name of the profile in messages and manifests", examples: ["acme"] }),
      extends: z
        .string({ error: "must be the path of another profile, or default" })
        .min(1, "must not be empty")
        .optional()
        .meta({
          description: "profile that this one changes: a file, relative to this one's folder, or default",
          examples: ["default"],
        }),
      headers: headersSchema.optional().meta({
        description: "headers of every request; values come from the environment or a file",
        examples: [{ "X-Api-Key": { env: "GATEWAY_KEY" } }],
      }),
      rest: z
        .strictObject(
          {
            base: baseSchema
              .optional()
              .meta({ description: "prefix of every path, after the gateway's address", examples: ["/v2"] }),
            keys: keysSchema.optional().meta({
              description:
                "query parameters that carry a secret, for gateways that do not accept it in a header",
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
          description: "settings for every table, unless the table has others",
          examples: [{ base: "/v2" }],
        }),
      documents: documentsSchema.optional().meta({
        description: "lists, counts and documents; those that are not named do not exist",
        examples: [{ storage: "none" }],
      }),
      rows: z
        .strictObject(
          { ...rowShape, columns: columns(everyColumn) },
          { error: "must be a map of keys and values" },
        )
        .optional()
        .meta({
          description: "how rows are read, for every table unless the table has other settings",
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
          description: "the gateway's history; tables that are not named are not requested",
          examples: [{ fills: { path: "/runs/{run}/fills" } }],
        }),
      errors: errorsSchema.optional(),
      rpc: rpcSchema.optional(),
    },
    { error: "must be a map of keys and values" },
  )
  .meta({ title: "runvault profile", description: "How a gateway differs from what runvault expects." });

/** A profile as written in its file, each value checked by itself. */
export type ProfileFile = z.output<typeof profileSchema>;
export type TableFile = Exclude<NonNullable<NonNullable<ProfileFile["tables"]>["fills"]>, "none">;

function nameMust(): string {
  return "must be 1 to 52 lower-case letters, digits and hyphens, with a letter or digit at both ends";
}
