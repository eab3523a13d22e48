import { type JsonSchema, plainJsonSchema } from "../../model/yaml/json-schema.ts";
import { jobSchema } from "./job-schema.ts";

/** A value from the environment. */
const variable: JsonSchema = {
  type: "string",
  pattern: "\\$\\{[A-Za-z_][A-Za-z0-9_]*(:-[^{}]*)?\\}",
  description: `a value from the environment: \${NAME} or \${NAME:-default}`,
};

/** The JSON Schema of job files (draft 2020-12), as written, before variables are replaced. */
export function jobJsonSchema(): JsonSchema {
  return { ...withVariables(plainJobJsonSchema()), $defs: { variable } };
}

/** The same after variables are replaced. */
export function plainJobJsonSchema(): JsonSchema {
  return plainJsonSchema(jobSchema({ folder: "/", env: {} }));
}

/** Keywords that `${NAME}` would not satisfy. */
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
