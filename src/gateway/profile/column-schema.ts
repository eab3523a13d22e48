import { z } from "zod";
import { type TimeUnit, timeUnits } from "../../model/profile/row-map.ts";
import type { Column, ColumnKind } from "../../model/profile/table.ts";
import { columnText, type Scalar } from "./column-text.ts";
import { dottedPattern, fieldPathSchema } from "./field-path-schema.ts";

/** What a profile says about one column. Words are still keyed by the wire's side, as in the file. */
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
  if (source === "derived") return "is for seq alone";
  if (source === "absent") return `cannot be: no row goes without its ${name}`;
  return name === "run_id" || name === "instance_id"
    ? `is not what ${name} holds`
    : `cannot stand in a column of ${kind === "timestamp" ? "times" : "numbers"}`;
}

function sourceHint(source: Source, name: string | null): string {
  if (source === "absent" && name === "run_id") return "Write `run_id: run` where rows do not have it.";
  if (source === "absent" && name === "instance_id")
    return "Write `instance_id: instance` where rows do not have it.";
  if (source === "absent") return `Name the field that ${name} comes from.`;
  return `A field of that name is written { from: ${source} }.`;
}

const scalar = z.union([z.string(), z.number(), z.boolean()], {
  error: "must be a text, a number, true or false",
});

function mapSchema(name: string | null, kind: ColumnKind) {
  const flag = (description: string) =>
    z.literal(true, { error: "must be true, or left out" }).optional().meta({ description });
  return z
    .strictObject({
      from: fieldPathSchema.optional().meta({ description: "the field that the value comes from" }),
      value: scalar.optional().meta({ description: "the same value in every row" }),
      unit: z
        .enum(timeUnits, { error: `must be one of ${timeUnits.join(", ")}` })
        .optional()
        .meta({ description: "how a time is written; without it as nanoseconds since 1970" }),
      words: z
        .record(z.string(), scalar, { error: "must be a map of the gateway's words to the column's" })
        .optional()
        .meta({
          description:
            "the gateway's values, and what each is in the column; a key without quotes may be a number, true or false",
        }),
      optional: flag("whether a row may lack the field: it then has the column's empty value"),
      lossy: flag("whether two words may have the same value, so that they cannot be told apart any more"),
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
        raise([other], "cannot be given beside value", "Leave out one of the two.");
    }
    if (name !== null) {
      const hint =
        name === "run_id"
          ? "Write `run_id: run` where rows do not have it."
          : name === "instance_id"
            ? "Write `instance_id: instance` where rows do not have it."
            : `Name the field that ${name} comes from.`;
      raise(["value"], `cannot be given of ${name}`, hint);
      return null;
    }
    const read = columnText(kind, value);
    if ("fault" in read) {
      raise(["value"], read.fault, "Give a value of the column's kind.");
      return null;
    }
    return { kind: "constant", text: read.text };
  }
  if (from === undefined) {
    raise([], "needs from, the field that it comes from", "Write it so, for example `{ from: price }`.");
    return null;
  }
  if (unit !== undefined && kind !== "timestamp") {
    raise(["unit"], "is of times alone, and this column is none", "Leave unit out.");
  }
  if (optional === true && name !== null) {
    raise(["optional"], `cannot be said of ${name}: no row goes without it`, "Leave optional out.");
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

/** A drafted word, guessed or left open, that nobody has confirmed. */
const draftedWord = /^[A-Z_]*\?$/;

function readWords(
  words: Readonly<Record<string, Scalar>>,
  kind: ColumnKind,
  { optional, lossy }: ColumnMap,
  raise: Raise,
): (readonly [string, string])[] {
  const entries = Object.entries(words);
  if (kind === "timestamp") {
    raise(["words"], "cannot be given of times", "Say the unit of the times instead.");
    return [];
  }
  if (entries.length === 0) raise(["words"], "must not be an empty map", "Leave words out, or give one.");
  const keyOf = new Map<string, string>();
  return entries.map(([key, value]): readonly [string, string] => {
    if (typeof value === "string" && draftedWord.test(value)) {
      raise(["words", key], "must be confirmed", "Delete the ? where the word is right.");
      return [key, ""];
    }
    const read = columnText(kind, value);
    if ("fault" in read) {
      raise(["words", key], read.fault, "Give a value that the column can hold.");
      return [key, ""];
    }
    const { text } = read;
    const other = keyOf.get(text);
    if (other !== undefined && lossy !== true) {
      raise(
        ["words", key],
        `is what ${JSON.stringify(other)} has already, so that the two could not be told apart any more`,
        "Give each word a value of its own, or say `lossy: true` beside words if that is meant.",
      );
    }
    if (text === emptyText(kind) && optional === true && lossy !== true) {
      raise(
        ["words", key],
        "is what a row without the field has, so that the two could not be told apart any more",
        "Give another value, or say `lossy: true` beside words if that is meant.",
      );
    }
    keyOf.set(text, key);
    return [key, text];
  });
}

/** A column's value when a row has nothing. */
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
