import { deepestJson } from "../../../model/outside-json.ts";

/** A JSON value with its original text: numbers are never parsed. */
export type JsonNode =
  | { readonly kind: "string"; readonly text: string; readonly value: string }
  | { readonly kind: "number" | "boolean" | "null"; readonly text: string }
  | { readonly kind: "array"; readonly text: string; readonly items: readonly JsonNode[] }
  | {
      readonly kind: "object";
      readonly text: string;
      readonly members: readonly (readonly [name: string, value: JsonNode])[];
    };

export type JsonObject = Extract<JsonNode, { readonly kind: "object" }>;

/**
 * Parses JSON, including bare `NaN` and `Infinity`. From a truncated text (`cut`) it keeps complete
 * values and the objects and arrays around them. Undefined if it is not JSON.
 */
export function readJsonText(text: string, cut = false): JsonNode | undefined {
  const reader = new Reader(text, cut);
  try {
    return reader.document();
  } catch (thrown) {
    if (thrown instanceof NotJson) return undefined;
    throw thrown;
  }
}

export function nodeAt(node: JsonNode | undefined, path: readonly string[]): JsonNode | undefined {
  let at = node;
  for (const name of path) {
    if (at?.kind !== "object") return undefined;
    at = at.members.find(([member]) => member === name)?.[1];
  }
  return at;
}

/** Every value in an object that is not itself an object, by its path: possible sources of a column. */
export function* leavesOf(
  node: JsonObject,
  around: readonly string[] = [],
): Generator<readonly [readonly string[], JsonNode]> {
  for (const [name, value] of node.members) {
    const path = [...around, name];
    if (value.kind === "object" && value.members.length > 0) yield* leavesOf(value, path);
    else yield [path, value];
  }
}

/** Paths of the arrays in an answer, where rows may be; not of arrays within arrays. */
export function* arraysIn(
  node: JsonNode | undefined,
  around: readonly string[] = [],
): Generator<readonly [readonly string[], readonly JsonNode[]]> {
  if (node?.kind === "array") yield [around, node.items];
  if (node?.kind !== "object") return;
  for (const [name, value] of node.members) yield* arraysIn(value, [...around, name]);
}

class NotJson extends Error {}

const blanks = /[ \t\r\n]*/y;
const scalars = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null|NaN|-?Infinity/y;
// a piece at a time: on a long text, one expression would overflow the engine's stack
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids control characters inside strings
const stringPiece = /(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})){1,1000}/y;

class Reader {
  readonly #text: string;
  readonly #mayEnd: boolean;
  #at = 0;
  /** Whether the text ended within a value: everything around it ends there, too. */
  #ended = false;

  constructor(text: string, cut: boolean) {
    this.#text = text;
    this.#mayEnd = cut;
  }

  document(): JsonNode | undefined {
    const node = this.#value(0);
    if (!this.#ended) {
      this.#skip(blanks);
      if (this.#at < this.#text.length) throw new NotJson();
    }
    return node;
  }

  #value(depth: number): JsonNode | undefined {
    if (depth > deepestJson) throw new NotJson();
    this.#skip(blanks);
    const start = this.#at;
    const text = () => this.#text.slice(start, this.#at);
    switch (this.#text[start]) {
      case undefined:
        return this.#end();
      case "{": {
        const members = this.#members(depth);
        return { kind: "object", text: text(), members };
      }
      case "[": {
        const items = this.#items(depth);
        return { kind: "array", text: text(), items };
      }
      case '"': {
        const value = this.#string();
        return value === undefined ? undefined : { kind: "string", text: text(), value };
      }
      default: {
        this.#skip(scalars);
        if (this.#at === this.#text.length && this.#mayEnd) return this.#end();
        const word = text();
        if (word === "") {
          // the beginning of a truncated word
          if (this.#mayEnd && /^[-\w.+]{1,12}$/.test(this.#text.slice(start))) return this.#end();
          throw new NotJson();
        }
        const kind = word === "null" ? "null" : word === "true" || word === "false" ? "boolean" : "number";
        return { kind, text: word };
      }
    }
  }

  #members(depth: number): readonly (readonly [string, JsonNode])[] {
    const members: (readonly [string, JsonNode])[] = [];
    this.#at++;
    for (;;) {
      if (this.#closes("}")) return members;
      if (members.length > 0) this.#take(",");
      if (this.#ended) return members;
      this.#skip(blanks);
      if (this.#text[this.#at] === undefined) this.#end();
      else if (this.#text[this.#at] !== '"') throw new NotJson();
      const name = this.#ended ? undefined : this.#string();
      if (name === undefined) return members;
      this.#take(":");
      const value = this.#ended ? undefined : this.#value(depth + 1);
      if (value === undefined) return members;
      members.push([name, value]);
      if (this.#ended) return members;
    }
  }

  #items(depth: number): readonly JsonNode[] {
    const items: JsonNode[] = [];
    this.#at++;
    for (;;) {
      if (this.#closes("]")) return items;
      if (items.length > 0) this.#take(",");
      const value = this.#ended ? undefined : this.#value(depth + 1);
      // a truncated entry does not count
      if (value === undefined || this.#ended) return items;
      items.push(value);
    }
  }

  #string(): string | undefined {
    const start = this.#at;
    this.#at++;
    for (let from = -1; from !== this.#at; ) {
      from = this.#at;
      this.#skip(stringPiece);
    }
    const rest = this.#text.length - this.#at;
    if (this.#text[this.#at] !== '"') {
      // it may be an escape that was truncated
      if (this.#mayEnd && (rest === 0 || (rest < 6 && this.#text[this.#at] === "\\"))) return this.#end();
      throw new NotJson();
    }
    this.#at++;
    return JSON.parse(this.#text.slice(start, this.#at)) as string;
  }

  #closes(sign: string): boolean {
    this.#skip(blanks);
    if (this.#text[this.#at] !== sign) return false;
    this.#at++;
    return true;
  }

  #take(sign: string): void {
    if (this.#ended) return;
    this.#skip(blanks);
    if (this.#at === this.#text.length) this.#end();
    else if (this.#text[this.#at] === sign) this.#at++;
    else throw new NotJson();
  }

  #skip(pattern: RegExp): void {
    pattern.lastIndex = this.#at;
    if (pattern.test(this.#text)) this.#at = pattern.lastIndex;
  }

  #end(): undefined {
    if (!this.#mayEnd) throw new NotJson();
    this.#ended = true;
    this.#at = this.#text.length;
    return undefined;
  }
}
