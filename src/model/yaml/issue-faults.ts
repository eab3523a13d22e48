import type { z } from "zod";
import { nearestName } from "../text/nearest-name.ts";
import { createScrubber } from "../text/scrubber.ts";
import { visible } from "../text/visible-text.ts";
import type { FileKind } from "./file-kind.ts";
import { type JsonSchema, schemaAt } from "./json-schema.ts";
import {
  type KeyPath,
  keyPlaceAt,
  keyText,
  nodeAt,
  placeAt,
  type ScalarNode,
  type TreeFault,
  type TreeNode,
} from "./tree.ts";

type Issue = z.core.$ZodIssue;

/** A schema's issues with a tree as faults with places. */
export function issueFaults(issues: readonly Issue[], tree: TreeNode, kind: FileKind): readonly TreeFault[] {
  return issues.flatMap(meantIssues).flatMap(({ issue, path }) => {
    if (issue.code === "unrecognized_keys") {
      return issue.keys.map((key) => unknownKey(path, key, tree, kind));
    }
    const node = nodeAt(tree, path);
    return node?.kind === "scalar" && node.isUnread === true ? [] : [valueFault(path, issue, tree, kind)];
  });
}

/** An issue of a schema, with its path from the root. */
export interface MeantIssue {
  readonly issue: Issue;
  readonly path: KeyPath;
}

/** Narrows an issue of a union to the alternative that was meant, if that is clear. */
export function meantIssues(issue: Issue): readonly MeantIssue[] {
  return meantInside(issue, []);
}

function meantInside(issue: Issue, around: KeyPath): readonly MeantIssue[] {
  const path = [...around, ...(issue.path as KeyPath)];
  const meant = issue.code === "invalid_union" ? meantBranch(issue.errors) : undefined;
  return meant === undefined ? [{ issue, path }] : meant.flatMap((inside) => meantInside(inside, path));
}

function meantBranch(branches: readonly (readonly Issue[])[]): readonly Issue[] | undefined {
  const only = (is: (branch: readonly Issue[]) => boolean) => {
    const found = branches.filter(is);
    return found.length === 1 ? found[0] : undefined;
  };
  return (
    // of `all` or a list, the one with the value's own kind
    only((branch) => branch.every(({ path }) => path.length > 0)) ??
    // of a word or a map, the map, which has an unknown key
    only((branch) => branch.some(({ code }) => code === "unrecognized_keys")) ??
    // an alternative that was parsed and failed for a specific reason
    only((branch) => branch.some(({ code }) => code === "custom"))
  );
}

function unknownKey(path: KeyPath, key: string, tree: TreeNode, { name, schema }: FileKind): TreeFault {
  const keys = Object.keys(keysAt(schema, path));
  const near = nearestName(key, keys);
  const elsewhere = near === null ? placesOf(key, schema) : [];
  const hint =
    near !== null
      ? `Did you mean ${near}?`
      : elsewhere.length === 1
        ? `Did you mean ${elsewhere[0]}?`
        : `The keys ${path.length === 0 ? `of ${name}` : `of ${whereText(path)}`} are ${keys.join(", ")}.`;
  return {
    place: keyPlaceAt(tree, [...path, key]),
    key: keyText([...path, key]),
    text: shownText(key),
    message: `there is no key ${shownText(key)}${path.length === 0 ? "" : ` in ${whereText(path)}`}`,
    hint,
  };
}

/** A key in messages: `kind of entry 1` in a file that is a list, counted from 1. */
function whereText(path: KeyPath): string {
  const [first, ...inside] = path;
  if (typeof first !== "number") return keyText(path);
  return `${inside.length === 0 ? "" : `${keyText(inside)} of `}entry ${first + 1}`;
}

function keysAt(schema: JsonSchema, path: KeyPath): Readonly<Record<string, JsonSchema>> {
  const at = schemaAt(schema, path);
  return at?.properties ?? at?.anyOf?.find(({ properties }) => properties !== undefined)?.properties ?? {};
}

/** Where else a key of this name is. */
function placesOf(name: string, schema: JsonSchema, path: KeyPath = []): readonly string[] {
  return Object.entries(schema.properties ?? {}).flatMap(([key, inside]) => [
    ...(key === name ? [keyText([...path, key])] : []),
    ...placesOf(name, inside, [...path, key]),
  ]);
}

function valueFault(path: KeyPath, issue: Issue, tree: TreeNode, kind: FileKind): TreeFault {
  const { schema } = kind;
  const node = nodeAt(tree, path);
  const key = keyText(path);
  const where = path.length === 0 ? "the file" : whereText(path);
  const known = schemaAt(schema, path);
  const { hint: told, near } = (issue.code === "custom" ? (issue.params ?? {}) : {}) as {
    hint?: string;
    near?: string;
  };
  const place =
    issue.code === "custom" && issue.path.length > 0 && node?.kind !== "scalar"
      ? keyPlaceAt(tree, path)
      : placeAt(tree, path);
  if (node === undefined && issue.code === "custom") {
    return {
      place,
      key,
      text: null,
      message: `${where} ${issue.message}`,
      hint: told ?? forExample(path, kind),
    };
  }
  if (node === undefined) {
    const hint =
      known?.examples === undefined ? kind.reference : `Add it, for example \`${exampleOf(path, schema)}\`.`;
    return { place, key, text: null, message: `${where} is missing`, hint };
  }
  if (node.kind !== "scalar") {
    const but = issue.code === "custom" || issue.code === "too_small" ? "" : `, not a ${node.kind}`;
    const message = `${where} ${issue.message}${but}`;
    return { place, key, text: null, message, hint: told ?? forExample(path, kind) };
  }
  if (node.value === null) {
    const hint = `${forExample(path, kind, "Give it one, for example")} Or remove the line.`;
    return { place, key, text: null, message: `${where} has no value`, hint };
  }
  const own = kind.ownFault?.(key, issue.message, issue.code === "custom") ?? null;
  if (own !== null) return { place, key, text: null, ...own };
  const text = node.variables.length > 0 ? null : shownScalar(node);
  return {
    place,
    key,
    text,
    message: aboutText(where, text ?? `the value of ${node.variables.join(" and ")}`, issue.message),
    hint: told ?? valueHint(path, node, kind, near),
  };
}

/** The message about a wrong value, with the value. */
function aboutText(where: string, text: string, message: string): string {
  if (/^must (?!not)/.test(message)) return `${where} ${message}, not ${text}`;
  return `${where}: ${text} ${message}`;
}

/** A single value as written, with its quotes. */
function shownScalar({ written, isQuoted }: ScalarNode): string {
  const shown = shownText(written);
  return isQuoted && !shown.startsWith('"') ? `"${shown}"` : shown;
}

function forExample(path: KeyPath, { schema, reference }: FileKind, so = "For example, write"): string {
  const example = exampleOf(path, schema);
  return example === null ? reference : `${so} \`${example}\`.`;
}

/** A key with an example value for a file, for a list item the whole list; null without an example. */
export function exampleOf(path: KeyPath, schema: JsonSchema): string | null {
  const last = path.at(-1);
  if (typeof last === "number") return exampleOf(path.slice(0, -1), schema);
  const [example] = schemaAt(schema, path)?.examples ?? [];
  return example === undefined || last === undefined ? null : `${last}: ${yamlText(example)}`;
}

/** A value as YAML in one line. */
function yamlText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(yamlText).join(", ")}]`;
  if (typeof value === "object" && value !== null) {
    return `{ ${Object.entries(value)
      .map(([key, inside]) => `${key}: ${yamlText(inside)}`)
      .join(", ")} }`;
  }
  const text = String(value);
  return typeof value === "string" && /^[*&!|>'"%@`]|^[\d.]+$|[:#] |^$|^\d+ /.test(text)
    ? JSON.stringify(text)
    : text;
}

/** The hint for a wrong value. */
function valueHint(path: KeyPath, node: ScalarNode, kind: FileKind, near: string | undefined): string {
  const known = schemaAt(kind.schema, path);
  const isHidden = node.variables.length > 0;
  const wants = new Set([known, ...(known?.anyOf ?? [])].map((part) => part?.type));
  const meant =
    isHidden || typeof node.value !== "string"
      ? null
      : ((near === undefined ? undefined : kind.nearest?.[near])?.(node.value) ??
        nearestName(node.value, wordsOf(known)));
  if (meant !== null) return `Did you mean ${meant}?`;
  if (isHidden) {
    const isText = wants.has("string");
    return isText
      ? `Correct the variable. ${forExample(path, kind, "A correct value is, for example,")}`
      : `A value from the environment is text: write it here, or give it with \`--set ${keyText(path)}=…\`.`;
  }
  const isNumberWanted = typeof node.value === "number" && (wants.has("integer") || wants.has("number"));
  if (wants.has("string") && typeof node.value !== "string" && !isNumberWanted) {
    const [example] = known?.examples ?? [];
    const [, unit] = /^\d+([a-zA-Z]+)$/.exec(String(example ?? "")) ?? [];
    if (typeof node.value === "number" && unit !== undefined) {
      return `A number needs its unit: ${node.written}${unit}, for example.`;
    }
    return `If it is meant as text, put it in quotes: ${JSON.stringify(node.written)}.`;
  }
  if (node.isQuoted && (wants.has("integer") || wants.has("number")) && /^\d/.test(node.written)) {
    return `Write ${shownText(node.written)} without quotes.`;
  }
  if (wants.has("boolean")) {
    if (/^(?:yes|on|y|1)$/i.test(node.written)) return "Write true.";
    if (/^(?:no|off|n|0)$/i.test(node.written)) return "Write false.";
  }
  return forExample(path, kind);
}

function wordsOf(known: JsonSchema | undefined): readonly string[] {
  return [known, ...(known?.anyOf ?? []).flatMap((part) => [part, part.items])].flatMap((part) =>
    [...(part?.enum ?? []), ...(part?.const === undefined ? [] : [part.const])].filter(
      (word) => typeof word === "string",
    ),
  );
}

/** The beginning of a longer value is enough. */
const longestText = 60;

/** The written text in messages: one line, shortened, without secrets, quoted if it has spaces or signs. */
export function shownText(text: string): string {
  const shown = plainText(text);
  return /^[\w./:*?-]+$/.test(shown) ? shown : JSON.stringify(shown);
}

/** The same without quotes. */
export function plainText(text: string): string {
  // also removes a possible password from an invalid address
  const clean = createScrubber()
    .scrub(text)
    .replace(/:\/\/\S*@/g, "://***@");
  const shown = [...visible(clean)];
  return shown.length <= longestText ? shown.join("") : `${shown.slice(0, longestText - 1).join("")}…`;
}
