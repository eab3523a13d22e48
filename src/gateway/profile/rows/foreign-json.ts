import { shorten } from "../../../row/strict-line.ts";

/** A value of a foreign row, with numbers as text. `word` is true, false, null, or a bare NaN or infinity. */
export type ForeignValue =
  | { readonly kind: "string"; readonly text: string }
  | { readonly kind: "number"; readonly text: string }
  | { readonly kind: "word"; readonly text: string }
  | { readonly kind: "object"; readonly members: readonly ForeignMember[] }
  | { readonly kind: "array"; readonly items: readonly ForeignValue[] };

export type ForeignObject = Extract<ForeignValue, { kind: "object" }>;

export interface ForeignMember {
  readonly name: string;
  readonly value: ForeignValue;
}

/**
 * Why a text is not a row. `isTorn`: it is not a complete JSON object, so as an answer's last line it was truncated.
 */
export class NotARow extends Error {
  readonly isTorn: boolean;

  constructor(reason: string, isTorn = false) {
    super(reason);
    this.isTorn = isTorn;
  }
}

/** Rows may be nested one level less than stored lines, because unknown fields move into the member `extra`. */
const deepestRow = 63;

const blanks = /[ \t\r\n]*/y;
// a piece at a time: on a long text, one expression would overflow the engine's stack
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids control characters inside strings
const stringPiece = /(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})){1,1000}/y;
const numberToken = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?/y;
const wordToken = /true|false|null|NaN|-?Infinity/y;

/**
 * Parses a row as strictly as stored lines are read, except that NaN and infinities may be bare. Throws NotARow
 * for anything else.
 */
export function readForeignRow(text: string): ForeignObject {
  return new ForeignReader(text).read();
}

/** A value as JSON again: no spaces, strings escaped as in canonical lines, numbers unchanged, bare NaN as text. */
export function foreignJson(value: ForeignValue): string {
  switch (value.kind) {
    case "string":
      return JSON.stringify(value.text);
    case "number":
      return value.text;
    case "word":
      return isJsonWord(value.text) ? value.text : `"${value.text}"`;
    case "object":
      return `{${value.members.map(({ name, value }) => `${JSON.stringify(name)}:${foreignJson(value)}`).join(",")}}`;
    case "array":
      return `[${value.items.map(foreignJson).join(",")}]`;
  }
}

/** A value, for messages. */
export function shownValue(value: ForeignValue): string {
  switch (value.kind) {
    case "string":
      return shorten(value.text, 60);
    case "object":
      return "an object";
    case "array":
      return "an array";
    default:
      return value.text.length <= 60
        ? value.text
        : `${value.text.slice(0, 60)}… (${value.text.length} digits)`;
  }
}

function isJsonWord(text: string): boolean {
  return text === "true" || text === "false" || text === "null";
}

class ForeignReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  read(): ForeignObject {
    this.#skipBlanks();
    if (this.#text[this.#at] !== "{") throw new NotARow("the row is not a JSON object", true);
    const value = this.#object(1);
    this.#skipBlanks();
    if (this.#at < this.#text.length) {
      throw new NotARow(`text after the row's object, at character ${this.#at + 1}`, true);
    }
    return value;
  }

  #object(depth: number): ForeignObject {
    const members: ForeignMember[] = [];
    const names = new Set<string>();
    this.#at++;
    this.#skipBlanks();
    if (this.#take("}")) return { kind: "object", members };
    do {
      this.#skipBlanks();
      const name = this.#string();
      if (name === undefined) throw this.#unexpected("a key");
      if (names.has(name)) throw new NotARow(`duplicate key ${shorten(name, 60)}`);
      names.add(name);
      this.#skipBlanks();
      if (!this.#take(":")) throw this.#unexpected("a colon");
      this.#skipBlanks();
      members.push({ name, value: this.#value(depth) });
      this.#skipBlanks();
    } while (this.#take(","));
    if (!this.#take("}")) throw this.#unexpected("a comma or the end of the object");
    return { kind: "object", members };
  }

  #value(depth: number): ForeignValue {
    const text = this.#string();
    if (text !== undefined) return { kind: "string", text };
    const word = this.#match(wordToken);
    if (word !== undefined) return { kind: "word", text: word };
    const number = this.#match(numberToken);
    if (number !== undefined) return { kind: "number", text: number };
    const opening = this.#text[this.#at];
    if (opening !== "{" && opening !== "[") throw this.#unexpected("a value");
    if (depth >= deepestRow) throw new NotARow(`values are nested deeper than ${deepestRow} levels`);
    return opening === "{" ? this.#object(depth + 1) : this.#array(depth + 1);
  }

  #array(depth: number): ForeignValue {
    const items: ForeignValue[] = [];
    this.#at++;
    this.#skipBlanks();
    if (this.#take("]")) return { kind: "array", items };
    do {
      this.#skipBlanks();
      items.push(this.#value(depth));
      this.#skipBlanks();
    } while (this.#take(","));
    if (!this.#take("]")) throw this.#unexpected("a comma or the end of the array");
    return { kind: "array", items };
  }

  /** Parses a string, if there is one here. */
  #string(): string | undefined {
    const text = this.#text;
    const start = this.#at;
    if (text[start] !== '"') return undefined;
    let at = start + 1;
    while (text[at] !== '"') {
      stringPiece.lastIndex = at;
      if (!stringPiece.test(text)) {
        this.#at = at;
        throw this.#unexpected("the rest of a string");
      }
      at = stringPiece.lastIndex;
    }
    this.#at = at + 1;
    const raw = text.slice(start, at + 1);
    if (!raw.includes("\\")) return raw.slice(1, -1);
    const value = JSON.parse(raw) as string;
    // it has no UTF-8 form and could not be stored unchanged
    if (!value.isWellFormed()) throw new NotARow("half a surrogate pair in a string");
    return value;
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const text = pattern.exec(this.#text)?.[0];
    if (text !== undefined) this.#at += text.length;
    return text;
  }

  #skipBlanks(): void {
    if (this.#text.charCodeAt(this.#at) <= 32) this.#match(blanks);
  }

  #take(character: string): boolean {
    if (this.#text[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  #unexpected(wanted: string): NotARow {
    const found = this.#text[this.#at];
    const what = found === undefined ? "the row ends" : `found ${JSON.stringify(found)}`;
    return new NotARow(`${what} at character ${this.#at + 1} where ${wanted} is expected`, true);
  }
}
