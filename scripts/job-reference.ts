// node scripts/job-reference.ts (npm run reference): writes what is made from the schema of job files, the list of keys in
// docs/pipelines.md and pipelines/pipeline.schema.json. A test holds both to it.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonSchema } from "../src/model/yaml/json-schema.ts";
import { jobJsonSchema, plainJobJsonSchema } from "../src/pipeline/file/job-json-schema.ts";

const root = join(import.meta.dirname, "..");
export const schemaFile = join(root, "pipelines/pipeline.schema.json");
export const referenceFile = join(root, "docs/pipelines.md");

const begin = "<!-- keys: made by npm run reference -->";
const end = "<!-- end of keys -->";

/** The JSON Schema as a file. */
export function schemaText(): string {
  return `${JSON.stringify(jobJsonSchema(), null, 2)}\n`;
}

/** A document with the list of keys between its marks made anew. Throws where it has no such marks. */
export function withReference(document: string): string {
  const from = document.indexOf(begin);
  const to = document.indexOf(end);
  if (from < 0 || to < from) throw new Error("docs/pipelines.md has lost the marks around its list of keys");
  return `${document.slice(0, from + begin.length)}\n\n${list()}\n${document.slice(to)}`;
}

/** The keys as a list, nested as in a file. */
function list(): string {
  return [...linesOf(plainJobJsonSchema(), ""), ""].join("\n");
}

function linesOf(schema: JsonSchema, indent: string): readonly string[] {
  const known = new Map<string, string>();
  return Object.entries(schema.properties ?? {}).flatMap(([key, inside]) => {
    const items = inside.items?.properties === undefined ? null : inside.items;
    const isParent = inside.properties !== undefined || items !== null;
    const isNeeded = schema.required?.includes(key) === true;
    const fallback = isNeeded || isParent ? undefined : inside.default;
    const kind = inside.properties === undefined ? kindOf(inside) : "text";
    const isAll = kind === `list of ${(Array.isArray(fallback) ? fallback : []).map(code).join(", ")}`;
    const isPlain = kind === "text" || (kind === "true or false" && fallback !== undefined);
    const facts = [
      ...(isPlain ? [] : [kind]),
      ...(isNeeded ? ["needed"] : []),
      ...(fallback === undefined || code(fallback) === "`[]`"
        ? []
        : [`default ${isAll ? "all" : code(fallback)}`]),
    ];
    const inParentheses = facts.length === 0 ? "" : ` (${facts.join("; ")})`;
    const below = linesOf(items ?? inside, `${indent}  `);
    const line = `${indent}- \`${key}\`${inParentheses}: ${inside.description ?? ""}`;
    const like = known.get(below.join());
    if (like !== undefined) return [`${line}; keys as of \`${like}\``];
    if (below.length > 0) known.set(below.join(), key);
    return [line, ...below];
  });
}

/** The allowed value, in a few words. */
function kindOf(schema: JsonSchema): string {
  const { type, items, anyOf, pattern = "", minimum, maximum } = schema;
  if (schema.const !== undefined) return code(schema.const);
  if (schema.enum !== undefined) return schema.enum.length > 6 ? "a table" : schema.enum.map(code).join(", ");
  if (anyOf !== undefined) return anyOf.map(kindOf).join(", or ");
  if (type === "object") return "keys";
  if (type === "array")
    return items?.properties === undefined ? `list of ${manyOf(kindOf(items ?? {}))}` : "list";
  if (type === "integer") return `${minimum} to ${maximum}`;
  if (type === "number") return "number";
  if (type === "boolean") return "true or false";
  return pattern.includes("ms|s|") ? "time" : pattern.includes("i?[Bb]") ? "size" : "text";
}

function manyOf(kind: string): string {
  return { text: "texts", "a table": "tables" }[kind] ?? kind;
}

function code(value: unknown): string {
  return `\`${yaml(value)}\``;
}

function yaml(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(yaml).join(", ")}]`;
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value).map(([key, inside]) => `${key}: ${yaml(inside)}`);
    return `{ ${entries.join(", ")} }`;
  }
  return typeof value === "string" && /^[*@]|: | \*/.test(value) ? JSON.stringify(value) : String(value);
}

if (import.meta.main) {
  writeFileSync(schemaFile, schemaText());
  writeFileSync(referenceFile, withReference(readFileSync(referenceFile, "utf8")));
}
