import { z } from "zod";
import { type TimeUnit, timeUnits } from "../../model/profile/row-map.ts";
import type { Column, ColumnKind } from "../../model/profile/table.ts";
import { columnText, type Scalar } from "./column-text.ts";
import { dottedPattern, fieldPathSchema } from "./field-path-schema.ts";

/** What a profile says about one column. Words are still keyed by the gateway's value, as in the file. */
export type ColumnSpec =
  | {
      readonly kind: "field";
      readonly path: readonly string[];
      readonly unit: TimeUnit | undefined;
      readonly words: readonly (readonly [key: string, text: string])[] | undefined;
      readonly optional: boolean;
      readonly lossy: boolean;
    }
  | { readonly kind: "constant"; readonly text: string }
  | { readonly kind: "run" | "instance" | "absent" | "derived" };

const sources = ["run", "instance", "absent", "derived"] as const;
type Source = (typeof sources)[number];

/** Columns that every row needs: never absent, optional, or constant. */
const needed: ReadonlySet<string> = new Set(["ts_event", "seq", "run_id", "instance_id"]);

const made = new Map<string, z.ZodType<ColumnSpec>>();

/** The schema of a profile's entry for a column of this name and kind. */
export function columnSchema({ name, kind }: Pick<Column, "name" | "kind">): z.ZodType<ColumnSpec> {
  const id = needed.has(name) ? name : kind;
  let schema = made.get(id);
  if (schema === undefined) {
    schema = newSchema(needed.has(name) ? name : null, kind);
    made.set(id, schema);
  }
  return schema;
}

type Raise = (path: readonly string[], message: string, hint: string) => void;

function newSchema(name: string | null, kind: ColumnKind): z.ZodType<ColumnSpec> {
  const allowed = sourcesOf(name, kind);
  const must =
    "must be the path of a field, " +
    `${allowed.length === 0 ? "" : `${allowed.join(", ")}, `}or a map with from${name === null ? " or value" : ""}`;
  const text = z
    .string({ error: must })
    .regex(dottedPattern, must)
    .transform((value, context): ColumnSpec => {
      if (!sources.includes(value as Source)) return fieldOf(value.split("."));
      const source = value as Source;
      if (allowed.includes(source)) return { kind: source };
      context.addIssue({
        code: "custom",
        message: `${wrongSource(source, name, kind)}`,
        input: value,
        params: { hint: sourceHint(source, name) },
      });
      return z.NEVER;
    });
  const list = fieldPathSchema.options[1].transform(fieldOf);
  return z.union([text, list, mapSchema(name, kind)], { error: must }) as unknown as z.ZodType<ColumnSpec>;
}

function fieldOf(path: readonly string[]): ColumnSpec {
  return { kind: "field", path, unit: undefined, words: undefined, optional: false, lossy: false };
}

function sourcesOf(name: string | null, kind: ColumnKind): readonly Source[] {
  switch (name) {
    case "ts_event":
      return [];
    case "seq":
      return ["derived"];
    case "run_id":
      return ["run"];
    case "instance_id":
      return ["instance"];
    default:
      return kind === "string" ? ["run", "instance", "absent"] : ["absent"];
  }
}

function wrongSource(source: Source, name: string | null, kind: ColumnKind): string {
  if (source === "derived") return "is only for seq";
  if (source === "absent") return `is not allowed: every row needs ${name}`;
  return name === "run_id" || name === "instance_id"
    ? `is the wrong id for ${name}`
    : `does not fit a column of ${kind === "timestamp" ? "times" : "numbers"}`;
}

function sourceHint(source: Source, name: string | null): string {
  if (source === "absent" && name === "run_id") return "If rows do not have it, write `run_id: run`.";
  if (source === "absent" && name === "instance_id")
    return "If rows do not have it, write `instance_id: instance`.";
  if (source === "absent") return fieldHint(name);
  return `For a field with that name, write { from: ${source} }.`;
}

function fieldHint(name: string | null): string {
  return `Name the field that ${name} comes from${name === "seq" ? "; if there is none, write `seq: derived`" : ""}.`;
}

const scalar = z.union([z.string(), z.number(), z.boolean()], {
  error: "must be text, a number, true or false",
});

function mapSchema(name: string | null, kind: ColumnKind) {
  const flag = (description: string) =>
    z.literal(true, { error: "must be true or left out" }).optional().meta({ description });
  return z
    .strictObject({
      from: fieldPathSchema.optional().meta({ description: "the field that the value comes from" }),
      value: scalar.optional().meta({ description: "the same value in every row" }),
      unit: z
        .enum(timeUnits, { error: `must be one of ${timeUnits.join(", ")}` })
        .optional()
        .meta({ description: "how times are written; by default as nanoseconds since 1970" }),
      words: z
        .record(z.string(), scalar, { error: "must be a map from the gateway's words to the column's" })
        .optional()
        .meta({
          description:
            "the gateway's values and what each means in the column; an unquoted key may be a number, true or false",
        }),
      optional: flag("rows may lack the field and then have the column's empty value"),
      lossy: flag("two words may have the same value, although they cannot be told apart afterwards"),
    })
    .transform((spec, context): ColumnSpec => {
      let isWrong = false;
      const raise: Raise = (path, message, hint) => {
        isWrong = true;
        context.addIssue({ code: "custom", path: [...path], message, params: { hint }, input: spec });
      };
      const column = readMap(spec, name, kind, raise);
      return isWrong || column === null ? z.NEVER : column;
    })
    .meta({ oneOf: [{ required: ["from"] }, { required: ["value"] }] });
}

interface ColumnMap {
  readonly from?: readonly string[] | undefined;
  readonly value?: Scalar | undefined;
  readonly unit?: TimeUnit | undefined;
  readonly words?: Readonly<Record<string, Scalar>> | undefined;
  readonly optional?: true | undefined;
  readonly lossy?: true | undefined;
}

function readMap(spec: ColumnMap, name: string | null, kind: ColumnKind, raise: Raise): ColumnSpec | null {
  const { from, value, unit, words, optional, lossy } = spec;
  if (value !== undefined) {
    for (const other of ["from", "unit", "words", "optional", "lossy"] as const) {
      if (spec[other] !== undefined)
        raise([other], "cannot be combined with value", "Remove one of the two.");
    }
    if (name !== null) {
      const hint =
        name === "run_id"
          ? "If rows do not have it, write `run_id: run`."
          : name === "instance_id"
            ? "If rows do not have it, write `instance_id: instance`."
            : fieldHint(name);
      raise(["value"], `is not possible for ${name}`, hint);
      return null;
    }
    const read = columnText(kind, value);
    if ("fault" in read) {
      raise(["value"], read.fault, "Write a value that fits the column.");
      return null;
    }
    return { kind: "constant", text: read.text };
  }
  if (from === undefined) {
    raise([], "needs from, the field that it comes from", "For example, write `{ from: price }`.");
    return null;
  }
  if (unit !== undefined && kind !== "timestamp") {
    raise(["unit"], "is only for columns of times", "Remove it.");
  }
  if (optional === true && name !== null) {
    raise(["optional"], `is not allowed: every row needs ${name}`, "Remove it.");
  }
  const read = words === undefined ? undefined : readWords(words, kind, spec, raise);
  return {
    kind: "field",
    path: from,
    unit: unit === "ns" ? undefined : unit,
    words: read,
    optional: optional === true,
    lossy: lossy === true,
  };
}

/** A word that a draft guessed or left open and that is not confirmed yet. */
const draftedWord = /^[A-Z_]*\?$/;

function readWords(
  words: Readonly<Record<string, Scalar>>,
  kind: ColumnKind,
  { optional, lossy }: ColumnMap,
  raise: Raise,
): (readonly [string, string])[] {
  const entries = Object.entries(words);
  if (kind === "timestamp") {
    raise(["words"], "is not possible for times", "Name the unit of the times instead.");
    return [];
  }
  if (entries.length === 0) raise(["words"], "must not be an empty map", "Add a word, or remove words.");
  const keyOf = new Map<string, string>();
  return entries.map(([key, value]): readonly [string, string] => {
    if (typeof value === "string" && draftedWord.test(value)) {
      raise(["words", key], "must be confirmed", "If the word is right, delete the ?.");
      return [key, ""];
    }
    const read = columnText(kind, value);
    if ("fault" in read) {
      raise(["words", key], read.fault, "Write a value that fits the column.");
      return [key, ""];
    }
    const { text } = read;
    const other = keyOf.get(text);
    if (other !== undefined && lossy !== true) {
      raise(
        ["words", key],
        `is already the value of ${JSON.stringify(other)}: the two could not be told apart`,
        "Give each word a different value, or write `lossy: true` next to words if this is intended.",
      );
    }
    if (text === emptyText(kind) && optional === true && lossy !== true) {
      raise(
        ["words", key],
        "is also the value of rows without the field: the two could not be told apart",
        "Write another value, or write `lossy: true` next to words if this is intended.",
      );
    }
    keyOf.set(text, key);
    return [key, text];
  });
}

/** A column's value in rows that lack the field. */
function emptyText(kind: ColumnKind): string {
  switch (kind) {
    case "string":
    case "exact":
      return "";
    case "double":
      return "NaN";
    default:
      return "0";
  }
}
