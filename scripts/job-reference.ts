// node scripts/job-reference.ts (npm run reference): writes what is made from the schema of job files, the table of keys in
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

/** A document with the table of keys between its marks made anew. Throws where it has no such marks. */
export function withReference(document: string): string {
  const from = document.indexOf(begin);
  const to = document.indexOf(end);
  if (from < 0 || to < from) throw new Error("docs/pipelines.md has lost the marks around its table of keys");
  return `${document.slice(0, from + begin.length)}\n${table()}${document.slice(to)}`;
}

function table(): string {
  const rows = rowsOf(plainJobJsonSchema(), "", true);
  return ["| key | value | default | what it means |", "| --- | --- | --- | --- |", ...rows, ""].join("\n");
}

function rowsOf(schema: JsonSchema, path: string, isMap: boolean): readonly string[] {
  if (!isMap) return [];
  return Object.entries(schema.properties ?? {}).flatMap(([key, inside]) => {
    const name = `${path}${key}`;
    const isNeeded = schema.required?.includes(key) === true;
    const otherwise = isNeeded ? "needed" : inside.default === undefined ? "–" : code(inside.default);
    const isParent = inside.properties !== undefined || inside.items?.properties !== undefined;
    return [
      `| \`${name}\` | ${kindOf(inside)} | ${isParent && !isNeeded ? "–" : otherwise} | ${cell(inside.description ?? "")} |`,
      ...rowsOf(inside, `${name}.`, inside.properties !== undefined),
      ...rowsOf(inside.items ?? {}, `${name}.N.`, inside.items?.properties !== undefined),
    ];
  });
}

/** What may stand there, in a few words. */
function kindOf(schema: JsonSchema): string {
  const { type, items, anyOf, pattern = "", minimum, maximum } = schema;
  if (schema.const !== undefined) return code(schema.const);
  if (schema.enum !== undefined) return schema.enum.length > 6 ? "a table" : schema.enum.map(code).join(", ");
  if (anyOf !== undefined) return anyOf.map(kindOf).join(", or ");
  if (type === "object") return "keys";
  if (type === "array")
    return items?.properties === undefined ? `list of ${manyOf(kindOf(items ?? {}))}` : "list";
  if (type === "integer") return `whole number, ${minimum} to ${maximum}`;
  if (type === "number") return "number";
  if (type === "boolean") return "`true`, `false`";
  return pattern.includes("ms|s|") ? "time" : pattern.includes("i?[Bb]") ? "size" : "text";
}

function manyOf(kind: string): string {
  return { text: "texts", "a table": "tables" }[kind] ?? kind;
}

function code(value: unknown): string {
  return `\`${cell(yaml(value))}\``;
}

function yaml(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(yaml).join(", ")}]`;
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value).map(([key, inside]) => `${key}: ${yaml(inside)}`);
    return `{ ${entries.join(", ")} }`;
  }
  return typeof value === "string" && /^[*@]|: | \*/.test(value) ? JSON.stringify(value) : String(value);
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}

if (import.meta.main) {
  writeFileSync(schemaFile, schemaText());
  writeFileSync(referenceFile, withReference(readFileSync(referenceFile, "utf8")));
}
