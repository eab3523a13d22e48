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
  /** The schema of other keys' values; false if none are allowed. */
  readonly additionalProperties?: JsonSchema | boolean;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly [word: string]: unknown;
}

/**
 * A schema's input as JSON Schema, draft 2020-12. `reused` parts are repeated with `inline`, which looking up keys here
 * needs, or defined once with `ref`.
 */
export function plainJsonSchema(of: z.ZodType, reused: "inline" | "ref" = "inline"): JsonSchema {
  const schema = z.toJSONSchema(of, {
    target: "draft-2020-12",
    io: "input",
    reused,
    override: ({ zodSchema, jsonSchema }) => {
      // zod leaves out examples of a schema that parses text
      const { examples } = z.globalRegistry.get(zodSchema) ?? {};
      if (examples !== undefined) (jsonSchema as { examples?: unknown }).examples = examples;
      // the default of an empty map says nothing: its keys have their own defaults
      if (JSON.stringify(jsonSchema.default) === "{}") delete jsonSchema.default;
    },
  });
  return schema as JsonSchema;
}

/** The schema of the value at a path; undefined for an unknown key. */
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
