import { createHash } from "node:crypto";
import { z } from "zod";

/** How a gateway writes an instant: a count since 1970, as number or text, or RFC 3339. */
export const countUnits = ["ns", "us", "ms", "s"] as const;
export const timeUnits = [...countUnits, "rfc3339"] as const;
export type CountUnit = (typeof countUnits)[number];
export type TimeUnit = (typeof timeUnits)[number];

/** Names of the enclosing objects, and last the value's own: `["instrument", "symbol"]`. */
const fieldPath = z.array(z.string().min(1)).min(1);

/** A value on the wire, and the column's word for it. */
const wordSchema = z.strictObject({
  wire: z.union([z.string(), z.number(), z.boolean()]),
  column: z.string(),
});

const columnSchema = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("field"),
    path: fieldPath,
    /** Only for timestamps. Default: nanoseconds. */
    unit: z.enum(timeUnits).optional(),
    words: z.array(wordSchema).min(1).optional(),
    /** A row without the field gets the column's empty value; without this flag it is a bad row. */
    optional: z.literal(true).optional(),
    /** The column no longer shows the wire's value: two words mean the same. */
    lossy: z.literal(true).optional(),
  }),
  /** The same text in every row. */
  z.strictObject({ kind: z.literal("constant"), text: z.string() }),
  /** The id in the request. */
  z.strictObject({ kind: z.literal("run") }),
  z.strictObject({ kind: z.literal("instance") }),
  /** The column's empty value: `""`, 0, NaN. */
  z.strictObject({ kind: z.literal("absent") }),
  /** Numbered once a timestamp's rows are together; only for `seq`. */
  z.strictObject({ kind: z.literal("derived") }),
]);
export type ColumnSource = z.infer<typeof columnSchema>;

/** How a table's rows become canonical, as data that can be stored, compared and reversed. */
export const rowMapSchema = z.strictObject({
  /** `exact`: numbers of exact columns may be unquoted; rounding by the gateway cannot be detected. */
  numbers: z.enum(["text", "exact"]),
  /** What to do with a field without a column: `keep` it in `extra`, or `freeze`, which fails the table. */
  fields: z.enum(["keep", "freeze"]),
  /** The order of rows of one timestamp where `seq` is derived. */
  ties: z.enum(["bytes", "arrival"]),
  /** Every column of the table, by name, in canonical order. */
  columns: z.record(z.string(), columnSchema),
  /** Fields that the profile explicitly drops. */
  dropped: z.array(fieldPath),
});
export type RowMap = z.infer<typeof rowMapSchema>;

/** Equal for maps that make the same rows: comments and the order of keys in a profile do not count. */
export function rowMapFingerprint(map: RowMap): string {
  return createHash("sha256")
    .update(JSON.stringify(sorted(map)))
    .digest("hex");
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, inside]) => inside !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, inside]) => [key, sorted(inside)]),
  );
}

export function hasDerivedSeq(map: RowMap | undefined): boolean {
  return map?.columns.seq?.kind === "derived";
}
