import { z } from "zod";
import { jobSchema } from "./job-schema.ts";

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
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly [word: string]: unknown;
}

/** A value that comes from the environment. */
const variable: JsonSchema = {
  type: "string",
  pattern: "\\$\\{[A-Za-z_][A-Za-z0-9_]*(:-[^{}]*)?\\}",
  description: `a value from the environment: \${NAME} or \${NAME:-default}`,
};

/** The JSON Schema of job files, draft 2020-12: of files as they are written, before the environment is put in. */
export function jobJsonSchema(): JsonSchema {
  return { ...withVariables(plainJobJsonSchema()), $defs: { variable } };
}

/** The same, of what files come to once the environment is put in. */
export function plainJobJsonSchema(): JsonSchema {
  const schema = z.toJSONSchema(jobSchema({ folder: "/", env: {} }), {
    target: "draft-2020-12",
    io: "input",
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

/** Words that ask of a text what `${NAME}` is not. */
const limits = ["pattern", "enum", "const", "minLength"];

function withVariables(schema: JsonSchema): JsonSchema {
  const { properties, items, anyOf, ...rest } = schema;
  if (schema.type === "string" && limits.some((word) => word in schema)) {
    const { description, default: otherwise, examples, ...text } = schema;
    return {
      ...(description === undefined ? {} : { description }),
      ...(otherwise === undefined ? {} : { default: otherwise }),
      ...(examples === undefined ? {} : { examples }),
      anyOf: [text, { $ref: "#/$defs/variable" }],
    };
  }
  return {
    ...rest,
    ...(properties === undefined
      ? {}
      : {
          properties: Object.fromEntries(
            Object.entries(properties).map(([key, value]) => [key, withVariables(value)]),
          ),
        }),
    ...(items === undefined ? {} : { items: withVariables(items) }),
    ...(anyOf === undefined ? {} : { anyOf: anyOf.map(withVariables) }),
  };
}

/** What a schema says of the value at a path; undefined where it knows no such key. */
export function schemaAt(schema: JsonSchema, path: readonly (string | number)[]): JsonSchema | undefined {
  const [step, ...rest] = path;
  if (step === undefined) return schema;
  for (const part of [schema, ...(schema.anyOf ?? [])]) {
    const inside = typeof step === "number" ? part.items : ownOf(part.properties, step);
    if (inside !== undefined) return schemaAt(inside, rest);
  }
  return undefined;
}

function ownOf<T>(values: Readonly<Record<string, T>> | undefined, key: string): T | undefined {
  return values !== undefined && Object.hasOwn(values, key) ? values[key] : undefined;
}
