import { z } from "zod";
import { countUnits, timeUnits } from "../../model/profile/row-map.ts";
import type { FilterName } from "../../model/profile/table.ts";
import { headerNamePattern } from "../options.ts";
import { dottedPath, fieldPathSchema, listPathSchema } from "./field-path-schema.ts";
import { holdsSecret, isSecretName, looksSecret } from "./literal-secret.ts";

/** The error for a value that looks like a secret. The value is never shown. */
export const secretHere = "looks like a key or token, which must not be in a profile";
const secretHint = {
  hint: "Send it as a header whose value comes from the environment or a file, or put it under rest.keys.",
};

const pathMust = "must be a path that begins with a slash, such as /runs/{run}/fills";

/** A path that may contain `{run}` and `{instance}`. */
export const pathSchema = z
  .string({ error: pathMust })
  .regex(/^\//, pathMust)
  .superRefine((path, context) => {
    const raise = (message: string, hint: string) =>
      context.addIssue({ code: "custom", message, params: { hint }, input: path });
    if (holdsSecret(path)) {
      context.addIssue({ code: "custom", message: secretHere, params: secretHint, input: path });
      return;
    }
    if (/[?#]/.test(path)) {
      raise("must not have a query", "Move the part after the ? to parameters.fixed.");
    } else if (!/^[\x21-\x7e]+$/.test(path) || path.includes("\\")) {
      raise("must be ASCII without spaces", "Write other characters percent-encoded.");
    } else if (path.split("/").some((part) => part === "." || part === "..")) {
      raise("must not contain . or .. as a segment", "Write the full path.");
    } else {
      const odd = path.replace(/\{(?:run|instance)\}/g, "").match(/[{}][^/]*/);
      if (odd !== null)
        raise(
          "must not have anything but {run} and {instance} in braces",
          "Write {run} in place of a run's id, and {instance} in place of an instance's.",
        );
    }
  });

/** A path between the gateway's address and every other path. */
export const baseSchema = z
  .string({ error: "must be a path that begins with a slash, such as /v2" })
  .regex(/^(?:\/[^{}/]+)*$/, "must be a path that begins with a slash and does not end with one, such as /v2")
  .pipe(z.union([z.literal(""), pathSchema]));

const nameMust = "must be the name of a parameter, or none";
const parameterName = z
  .string({ error: nameMust })
  .min(1, nameMust)
  .regex(/^\P{Cc}+$/u, "must not contain control characters")
  // an unconfirmed draft
  .regex(/[^?]$/, nameMust);

/** A parameter; `none` removes one named under rest. */
const parameter = (description: string) => parameterName.optional().meta({ description });

const fixedValue = z
  .union([z.string(), z.number(), z.boolean()], { error: "must be text, a number, true or false" })
  .superRefine((value, context) => {
    if (typeof value === "string" && (looksSecret(value) || /^(?:bearer|basic)\s/i.test(value))) {
      context.addIssue({ code: "custom", message: secretHere, params: secretHint, input: value });
    }
  })
  .transform(String);

const fixedSchema = z
  .record(z.string().min(1), fixedValue, { error: "must be a map from parameters to values" })
  .superRefine((fixed, context) => {
    for (const [name, value] of Object.entries(fixed)) {
      if (!isSecretName(name) || value === "none") continue;
      context.addIssue({
        code: "custom",
        path: [name],
        message: secretHere,
        params: secretHint,
        input: value,
      });
    }
  });

/** Parameters of requests, with these filters. */
export function parametersSchema(filters: readonly FilterName[]) {
  return z
    .strictObject({
      instance: parameter("parameter that names the instance"),
      run: parameter("parameter that names the run"),
      from: parameter("parameter for the earliest time"),
      to: parameter("parameter for the latest time"),
      limit: parameter("parameter for the largest number of rows"),
      filters: z
        .strictObject(
          Object.fromEntries(
            filters.map((name) => [name, parameter(`parameter that selects rows by ${name}`)]),
          ) as Record<FilterName, ReturnType<typeof parameter>>,
          { error: "must be a map from filters to parameters" },
        )
        .optional()
        .meta({ description: "parameters that select rows; filters that are not named here cannot be used" }),
      fixed: fixedSchema
        .optional()
        .meta({ description: "parameters that are sent unchanged", examples: [{ format: "json" }] }),
    })
    .meta({
      description:
        "names of query parameters or, with POST, of members of the body; those not named are not sent; none " +
        "removes one that rest names",
      examples: [{ run: "runId", from: "after", to: "before", limit: "perPage" }],
    });
}

const bound = (end: string) =>
  z
    .enum(["inclusive", "exclusive"], { error: "must be inclusive or exclusive" })
    .optional()
    .meta({ description: `whether rows exactly at the ${end} time are included` });

export const unitSchema = z.enum(timeUnits, { error: `must be one of ${timeUnits.join(", ")}` });

/** A unit of bounds, or the precision with which a gateway reads RFC 3339. */
const boundUnitSchema = z
  .union(
    [
      unitSchema,
      z.strictObject({ rfc3339: z.enum(countUnits, { error: `must be one of ${countUnits.join(", ")}` }) }),
    ],
    {
      error: `must be one of ${timeUnits.join(", ")}, or { rfc3339: ms } if the gateway reads only three decimals of RFC 3339`,
    },
  )
  .transform((unit) =>
    typeof unit === "string" ? { unit } : { unit: "rfc3339" as const, step: unit.rfc3339 },
  );

export const timesSchema = z
  .strictObject({
    unit: boundUnitSchema.optional().meta({
      description:
        "how times are written in requests; default: ns; { rfc3339: ms } if the gateway reads only three decimals",
    }),
    from: bound("earliest"),
    to: bound("latest"),
  })
  .meta({
    description: "how bounds are written in requests; default: from inclusive, to exclusive",
    examples: [{ unit: "ms", from: "inclusive", to: "exclusive" }],
  });

const headerName = z.string().regex(headerNamePattern, "must be the name of a header");

/** A place in an answer: a path in its body, or a header. */
const nextPlace = z.union(
  [
    dottedPath.transform((body) => ({ body })),
    fieldPathSchema.options[1].transform((body) => ({ body })),
    z.strictObject({ header: headerName }),
  ],
  { error: "must be a path in the answer, such as page.next, or { header: NAME }" },
);

const ways = ["none", "cursor", "address", "link", "offset", "number"] as const;
const first = z.union([z.literal(0), z.literal(1)], { error: "must be 0 or 1" });

/** Keys that each way of paging accepts, and those that it needs. */
const keysOfWay: Readonly<
  Record<(typeof ways)[number], { readonly takes: readonly PageKey[]; readonly needs: readonly PageKey[] }>
> = {
  none: { takes: [], needs: [] },
  cursor: { takes: ["send", "next", "total"], needs: ["send", "next"] },
  address: { takes: ["next", "total"], needs: ["next"] },
  link: { takes: ["total"], needs: [] },
  offset: { takes: ["send", "size", "total"], needs: ["send"] },
  number: { takes: ["send", "size", "first", "total"], needs: ["send"] },
};
const pageKeys = ["send", "next", "size", "first", "total"] as const;
type PageKey = (typeof pageKeys)[number];

const needWords: Readonly<Partial<Record<PageKey, string>>> = {
  send: "the parameter that requests a page",
  next: "the place of the next cursor or address in an answer",
};

export const pagesSchema = z
  .union(
    [
      z.literal("none"),
      z
        .strictObject({
          by: z.enum(ways, { error: `must be one of ${ways.join(", ")}` }).meta({
            description:
              "cursor: a text in the answer that the next request sends; address: the full address of the next page; " +
              "link: the same in a Link header; offset: number of rows to skip; number: page number",
          }),
          send: parameterName
            .optional()
            .meta({ description: "parameter for the cursor, offset or page number" }),
          next: nextPlace.optional().meta({ description: "where an answer has the next cursor or address" }),
          size: parameterName.optional().meta({
            description: "parameter for the page size; default: parameters.limit",
          }),
          first: first.optional().meta({ description: "number of the first page; default: 1" }),
          total: nextPlace.optional().meta({ description: "where an answer has the total number of rows" }),
        })
        .superRefine((pages, context) => {
          const { takes, needs } = keysOfWay[pages.by];
          for (const key of pageKeys) {
            if (pages[key] === undefined && needs.includes(key)) {
              const message = `needs ${key}, ${needWords[key]}, for pages by ${pages.by}`;
              const hint = `For example, write \`{ by: ${pages.by}, ${key}: ${key === "send" ? pages.by : "page.next"} }\`.`;
              context.addIssue({ code: "custom", path: [], message, params: { hint }, input: pages });
            } else if (pages[key] !== undefined && !takes.includes(key)) {
              const message = `does not apply to pages by ${pages.by}`;
              const params = { hint: "Remove it, or correct `by`." };
              context.addIssue({ code: "custom", path: [key], message, params, input: pages });
            }
          }
        }),
    ],
    { error: `must be none, or a map with by, one of ${ways.join(", ")}` },
  )
  .meta({
    description: "how the rest of an incomplete answer is requested",
    examples: [{ by: "cursor", send: "cursor", next: "page.next" }],
  });

const mediaType = z
  .string()
  .regex(/^[\w!#$&^.+-]+\/[\w!#$&^.+-]+$/, "must be a media type, such as application/json")
  .transform((type) => type.toLowerCase());

export const rowFormSchema = z
  .union(
    [
      z.enum(["lines", "array"]),
      z
        .strictObject({
          lines: z
            .literal(true, { error: "must be true or left out" })
            .optional()
            .meta({ description: "one row on each line" }),
          array: listPathSchema
            .optional()
            .meta({ description: "where the list of rows is in a JSON document" }),
          media_types: z
            .array(mediaType, { error: "must be a list of media types" })
            .min(1, "must not be an empty list")
            .optional()
            .meta({
              description: "media types of such answers; default: application/x-ndjson or application/json",
            }),
        })
        .superRefine((form, context) => {
          if (form.lines !== undefined && form.array !== undefined) {
            context.addIssue({
              code: "custom",
              path: ["array"],
              message: "cannot be combined with lines",
              params: { hint: "Remove one of the two." },
              input: form,
            });
          }
        }),
    ],
    { error: "must be lines, array, or a map with array, the path of the list" },
  )
  .meta({ description: "where rows are in an answer", examples: [{ array: "data.items" }] });

export const orders = ["ascending", "descending", "none"] as const;
export const orderSchema = z
  .enum(orders, { error: `must be one of ${orders.join(", ")}` })
  .meta({ description: "order of rows by time; default: ascending" });

const limitMust = "must be a whole number from 1 to 1000000000, or none";
export const largestLimitSchema = z
  .union([z.int({ error: limitMust }).min(1, limitMust).max(1_000_000_000, limitMust), z.literal("none")], {
    error: limitMust,
  })
  .meta({ description: "most rows that the gateway returns at once", examples: [5000] });

export const methodSchema = z
  .enum(["GET", "POST"], { error: "must be GET or POST" })
  .meta({ description: "default: GET; with POST, parameters are members of a JSON body" });
