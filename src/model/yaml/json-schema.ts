import { z } from "zod";

/** A JSON Schema, or a part of one. */
export interface JsonSchema {
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  /** What values of other keys have to be; false if there may be none. */
  readonly additionalProperties?: JsonSchema | boolean;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly [word: string]: unknown;
}

/**
 * What a schema takes, as a JSON Schema, draft 2020-12. `reused` says what becomes of parts that are in several places:
 * `inline` repeats them, as all that looks up keys here needs; `ref` has each once.
 */
export function plainJsonSchema(of: z.ZodType, reused: "inline" | "ref" = "inline"): JsonSchema {
  const schema = z.toJSONSchema(of, {
    target: "draft-2020-12",
    io: "input",
    reused,
    override: ({ zodSchema, jsonSchema }) => {
      // of a schema that reads its text, zod leaves out examples: they are of the text
      const { examples } = z.globalRegistry.get(zodSchema) ?? {};
      if (examples !== undefined) (jsonSchema as { examples?: unknown }).examples = examples;
      // that a map is made where there is none says nothing: its keys have defaults of their own
      if (JSON.stringify(jsonSchema.default) === "{}") delete jsonSchema.default;
    },
  });
  return schema as JsonSchema;
}

/** What a schema says of the value at a path; undefined if it knows no such key. */
export function schemaAt(schema: JsonSchema, path: readonly (string | number)[]): JsonSchema | undefined {
  const [step, ...rest] = path;
  if (step === undefined) return schema;
  for (const part of [schema, ...(schema.anyOf ?? [])]) {
    const { additionalProperties: others } = part;
    const inside =
      typeof step === "number"
        ? part.items
        : (ownOf(part.properties, step) ?? (typeof others === "object" ? others : undefined));
    if (inside !== undefined) return schemaAt(inside, rest);
  }
  return undefined;
}

function ownOf<T>(values: Readonly<Record<string, T>> | undefined, key: string): T | undefined {
  return values !== undefined && Object.hasOwn(values, key) ? values[key] : undefined;
}
