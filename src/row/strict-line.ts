import { digitsOf, type ExactTypes, exactType, hasRoom } from "../model/profile/exact-types.ts";
import type { Column, Table } from "../model/profile/table.ts";
import { timestampMax, timestampMin } from "../model/time.ts";
import { Turns } from "../model/turns.ts";
import { notARow } from "./bad-row.ts";
import { splitExtra } from "./extra-member.ts";

/** What a segment's lines are checked against. */
export interface LineRules {
  readonly table: Table;
  readonly instanceId: string;
  readonly runId: string;
  readonly exactTypes: ExactTypes;
  /**
   * Whether exact numbers may have signed or leading zeros, as in segments committed before lines were made canonical.
   */
  readonly oddZeros?: boolean;
  /** Whether a line may end with `extra`, which then is not an unknown field. */
  readonly extra?: boolean;
}

/** One member of a line's object, unparsed. */
export interface Member {
  /** The key with its quotes and escapes. */
  readonly rawKey: string;
  /** Undefined for a field the contract does not know. */
  readonly column: Column | undefined;
  readonly name: string;
  /** True if the value is an object or array, which only unknown fields may hold. */
  readonly nested: boolean;
  /** Where the value's token begins and ends. */
  readonly at: number;
  readonly end: number;
}

/**
 * The result of strictly reading one line. `row`: every value can be stored exactly. `bad`: not a row of the contract.
 * `conflict`: a row of another run or instance. `range`: a valid value that its column cannot hold.
 */
export type CheckedLine =
  | {
      readonly kind: "row";
      /** Without `extra`, where a line may have it. */
      readonly members: readonly Member[];
      readonly unknown: readonly string[];
    }
  | { readonly kind: "bad"; readonly reason: string }
  | { readonly kind: "conflict"; readonly column: string; readonly value: string; readonly seq: string }
  | {
      readonly kind: "range";
      readonly column: string;
      readonly value: string;
      readonly type: string;
      readonly seq: string;
    };

/** Grammar of the values, in the syntax that JavaScript's and DuckDB's (RE2) expressions share. */
export const valueGrammar = {
  uint: "(?:0|[1-9][0-9]*)",
  int: "(?:0|-?[1-9][0-9]*)",
  decimal: "(?:-?[0-9]+(?:\\.[0-9]+)?)?",
  number: "-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:[eE][-+]?[0-9]+)?",
  specialDouble: "(?:NaN|-?Infinity)",
} as const;

const uintPattern = new RegExp(`^${valueGrammar.uint}$`);
const intPattern = new RegExp(`^${valueGrammar.int}$`);
const decimalPattern = new RegExp(`^${valueGrammar.decimal}$`);
const specialDoublePattern = new RegExp(`^${valueGrammar.specialDouble}$`);

const blanks = /[ \t\r\n]*/y;
// a piece at a time: over a long text one expression takes more room than the engine has
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids control characters inside strings
const stringPiece = /(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})){1,1000}/y;
const numberToken = new RegExp(valueGrammar.number, "y");
const wordToken = /true|false|null/y;

/** Deeper values are refused, so that no line can exhaust the stack. */
const nestingLimit = 64;

class BadLine extends Error {}

/**
 * Reads one line strictly: RFC 8259, one object, unique keys, each field of the contract present with the right kind of
 * token. A 64-bit integer or an exact number must be a string. Never throws for a line's contents.
 */
export function checkLine(line: string, rules: LineRules): CheckedLine {
  const split = rules.extra ? splitExtra(line) : undefined;
  if (split !== undefined && isObject(split.extra, rules.table)) {
    const checked = checkWhole(split.head, rules);
    // if the part before it is not an object, the apparent member is inside another value
    if (checked.kind !== "bad") return checked;
  }
  return checkWhole(line, rules);
}

/** The text of the member `extra` at the end of a row's line; undefined if there is none. */
export function extraOf(line: string, table: Table): string | undefined {
  const split = splitExtra(line);
  return split !== undefined && isObject(split.extra, table) && isObject(split.head, table)
    ? split.extra
    : undefined;
}

function isObject(text: string, table: Table): boolean {
  try {
    new LineReader(text, table).members();
    return true;
  } catch (thrown) {
    if (thrown instanceof BadLine) return false;
    throw thrown;
  }
}

function checkWhole(line: string, rules: LineRules): CheckedLine {
  try {
    return new LineReader(line, rules.table).read(rules);
  } catch (thrown) {
    if (thrown instanceof BadLine) return { kind: "bad", reason: thrown.message };
    throw thrown;
  }
}

/**
 * The line with exact numbers without signed or leading zeros: `-0.00` becomes 0, `007` becomes 7. Readers of decimals
 * drop these, so a stored line with them would not match the certified one. Any other line is returned unchanged, also
 * one that is not a row.
 */
export function withoutOddZeros(line: string, table: Table): string {
  // such numbers are rare, and so are escapes, which might hide one
  if (!oddZerosOf(table).test(line) && !line.includes("\\u")) return line;
  let members: readonly Member[];
  try {
    members = new LineReader(line, table).members();
  } catch (thrown) {
    if (thrown instanceof BadLine) return line;
    throw thrown;
  }
  let text = line;
  for (const { column, at, end } of members.toReversed()) {
    const token = line.slice(at, end);
    if (column?.kind !== "exact" || !token.startsWith('"')) continue;
    const [odd, sign = "", digits = ""] = oddDecimal.exec(textOf(token)) ?? [];
    if (odd === undefined) continue;
    const decimal = /[1-9]/.test(digits) ? sign + digits : "0";
    text = `${text.slice(0, at)}"${decimal}"${text.slice(end)}`;
  }
  return text;
}

/** The same of many lines, as bytes. */
export async function linesWithoutOddZeros(text: Buffer, table: Table): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let isSame = true;
  for await (const piece of piecesWithoutOddZeros(text, table)) {
    isSame &&= piece.buffer === text.buffer;
    pieces.push(piece);
  }
  return isSame ? text : Buffer.concat(pieces);
}

/**
 * The same for about a mebibyte of lines at a time, with turns of the event loop in between, because segments are long.
 */
export async function* piecesWithoutOddZeros(text: Buffer, table: Table): AsyncGenerator<Buffer> {
  const turns = new Turns();
  for (let start = 0, stop = 0; start < text.byteLength; start = stop) {
    const end = text.indexOf(0x0a, start + pieceBytes);
    stop = end < 0 ? text.byteLength : end + 1;
    const piece = text.subarray(start, stop);
    // a character per byte: only ASCII is searched, the rest stays unchanged
    const lines = piece.toString("latin1");
    if (turns.isDue(piece.byteLength)) await turns.next();
    if (!oddZerosOf(table).test(lines)) {
      yield piece;
      continue;
    }
    const clean: string[] = [];
    for (const line of lines.split("\n")) {
      clean.push(withoutOddZeros(line, table));
      if (turns.isDue(line.length)) await turns.next();
    }
    yield Buffer.from(clean.join("\n"), "latin1");
  }
}

const pieceBytes = 1024 * 1024;

/** The sign, and the digits after leading zeros; neither for a zero. */
const oddDecimal = /^(?:(-?)0+([0-9]+(?:\.[0-9]+)?)|-0(?:\.0+)?)$/;

/** Matches lines with odd zeros, apart from escapes. */
function oddZerosOf(table: Table): RegExp {
  let pattern = oddZeros.get(table);
  if (pattern === undefined) {
    const names = table.columns.flatMap(({ name, kind }) => (kind === "exact" ? [name] : []));
    pattern = new RegExp(`"(?:${names.join("|")})"[ \\t\\r]*:[ \\t\\r]*"(?:-?0[0-9]|-0(?:\\.0+)?")`);
    oddZeros.set(table, pattern);
  }
  return pattern;
}

const oddZeros = new Map<Table, RegExp>();
/** A line may have a hundred thousand fields, each of which is looked up. */
const columnsByName = new Map<Table, ReadonlyMap<string, Column>>();

type TokenKind = "string" | "number" | "word" | "nested";

interface Token {
  readonly kind: TokenKind;
  readonly text: string;
}

class LineReader {
  readonly #line: string;
  readonly #table: Table;
  #at = 0;

  constructor(line: string, table: Table) {
    this.#line = line;
    this.#table = table;
  }

  read(rules: LineRules): CheckedLine {
    const values = new Map<string, Token>();
    return this.#judge(rules, this.members(values), values);
  }

  /** The members of the line's object; adds their values by name to `values`. */
  members(values: Map<string, Token> = new Map()): readonly Member[] {
    this.#skipBlanks();
    if (this.#line[this.#at] !== "{") throw new BadLine("not a JSON object");
    const members: Member[] = [];
    this.#object((rawKey, name) => {
      if (values.has(name)) throw new BadLine(`key ${JSON.stringify(name)} appears twice`);
      const at = this.#at;
      const token = this.#value(1);
      values.set(name, token);
      const column = this.#column(name);
      members.push({ rawKey, name, column, nested: token.kind === "nested", at, end: this.#at });
    });
    this.#skipBlanks();
    if (this.#at < this.#line.length) throw new BadLine(`text after the object at character ${this.#at + 1}`);
    return members;
  }

  #judge(
    { table, runId, instanceId, exactTypes }: LineRules,
    members: readonly Member[],
    values: ReadonlyMap<string, Token>,
  ): CheckedLine {
    if (values.has(notARow)) throw new BadLine(`it has ${notARow}, which no row has`);
    const texts = new Map<string, string>();
    for (const column of table.columns) {
      const token = values.get(column.name);
      if (token === undefined) throw new BadLine(`field ${column.name} is missing`);
      texts.set(column.name, columnText(column, token.kind, token.text));
    }
    const seq = texts.get("seq") ?? "";
    for (const [column, expected] of [
      ["run_id", runId],
      ["instance_id", instanceId],
    ] as const) {
      const value = texts.get(column) ?? "";
      if (value !== expected) return { kind: "conflict", column, value, seq };
    }
    for (const column of table.columns) {
      const value = texts.get(column.name) ?? "";
      const type = unfitType(column, value, exactTypes);
      if (type !== undefined) return { kind: "range", column: column.name, value, type, seq };
    }
    return {
      kind: "row",
      members,
      unknown: members.filter((member) => member.column === undefined).map(({ name }) => name),
    };
  }

  #column(name: string): Column | undefined {
    let columns = columnsByName.get(this.#table);
    if (columns === undefined) {
      columns = new Map(this.#table.columns.map((column) => [column.name, column]));
      columnsByName.set(this.#table, columns);
    }
    return columns.get(name);
  }

  /** Reads an object from its brace; `member` reads each key's value. */
  #object(member: (rawKey: string, name: string) => void): void {
    this.#at++;
    this.#skipBlanks();
    if (this.#take("}")) return;
    do {
      this.#skipBlanks();
      const rawKey = this.#string();
      if (rawKey === undefined) throw this.#unexpected("a key");
      this.#skipBlanks();
      if (!this.#take(":")) throw this.#unexpected("a colon");
      this.#skipBlanks();
      member(rawKey, textOf(rawKey));
      this.#skipBlanks();
    } while (this.#take(","));
    if (!this.#take("}")) throw this.#unexpected("a comma or the end of the object");
  }

  #array(depth: number): void {
    this.#at++;
    this.#skipBlanks();
    if (this.#take("]")) return;
    do {
      this.#skipBlanks();
      this.#value(depth + 1);
      this.#skipBlanks();
    } while (this.#take(","));
    if (!this.#take("]")) throw this.#unexpected("a comma or the end of the array");
  }

  #value(depth: number): Token {
    const text = this.#string();
    if (text !== undefined) return { kind: "string", text: textOf(text) };
    const number = this.#match(numberToken);
    if (number !== undefined) return { kind: "number", text: number };
    const word = this.#match(wordToken);
    if (word !== undefined) return { kind: "word", text: word };
    if (depth > nestingLimit) throw new BadLine(`values nested deeper than ${nestingLimit} levels`);
    if (this.#line[this.#at] === "{") {
      const seen = new Set<string>();
      this.#object((_, name) => {
        if (seen.has(name)) throw new BadLine(`key ${JSON.stringify(name)} appears twice`);
        seen.add(name);
        this.#value(depth + 1);
      });
      return { kind: "nested", text: "" };
    }
    if (this.#line[this.#at] === "[") {
      this.#array(depth);
      return { kind: "nested", text: "" };
    }
    throw this.#unexpected("a value");
  }

  /** A string with its quotes, if there is one here. */
  #string(): string | undefined {
    const line = this.#line;
    const start = this.#at;
    if (line[start] !== '"') return undefined;
    let at = start + 1;
    while (line[at] !== '"') {
      stringPiece.lastIndex = at;
      if (!stringPiece.test(line)) return undefined;
      at = stringPiece.lastIndex;
    }
    this.#at = at + 1;
    return line.slice(start, at + 1);
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const text = pattern.exec(this.#line)?.[0];
    if (text !== undefined) this.#at += text.length;
    return text;
  }

  #skipBlanks(): void {
    if (this.#line.charCodeAt(this.#at) <= 32) this.#match(blanks);
  }

  #take(character: string): boolean {
    if (this.#line[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  #unexpected(wanted: string): BadLine {
    const found = this.#line[this.#at];
    const what = found === undefined ? "the line ends" : `found ${JSON.stringify(found)}`;
    return new BadLine(`${what} at character ${this.#at + 1} where ${wanted} is expected`);
  }
}

function textOf(token: string): string {
  if (!token.includes("\\")) return token.slice(1, -1);
  const text = JSON.parse(token) as string;
  // half a surrogate pair has no UTF-8 form, so it could not be stored unchanged
  if (!text.isWellFormed()) throw new BadLine("half a surrogate pair in a string");
  return text;
}

/** The value's text, once its token is of the kind that the column takes. */
function columnText(column: Column, kind: TokenKind, text: string): string {
  const wrong = (wanted: string) => {
    const shown =
      kind === "nested" ? "an object or array" : kind === "string" ? `the string ${shorten(text)}` : text;
    return new BadLine(`${column.name} is ${shown} where ${wanted} is expected`);
  };
  switch (column.kind) {
    case "uint64":
      if (kind !== "string" || !uintPattern.test(text)) throw wrong("an unsigned integer in a string");
      return text;
    case "int64":
    case "timestamp":
      if (kind !== "string" || !intPattern.test(text)) throw wrong("an integer in a string");
      return text;
    case "exact":
      if (kind !== "string" || !decimalPattern.test(text)) throw wrong("a decimal in a string");
      return text;
    case "uint32":
      if (kind !== "number" || !uintPattern.test(text)) throw wrong("an unsigned integer");
      return text;
    case "double":
      if (kind === "number" || (kind === "string" && specialDoublePattern.test(text))) return text;
      throw wrong('a number, "NaN", "Infinity" or "-Infinity"');
    case "string":
      if (kind !== "string") throw wrong("a string");
      return text;
  }
}

/** The type that cannot hold the value, for the message; undefined if it fits. */
function unfitType(column: Column, value: string, exactTypes: ExactTypes): string | undefined {
  switch (column.kind) {
    case "uint64":
      return value.length > 20 || BigInt(value) > 18_446_744_073_709_551_615n ? "uint64" : undefined;
    case "int64":
      return value.length > 20 || BigInt.asIntN(64, BigInt(value)) !== BigInt(value) ? "int64" : undefined;
    case "timestamp":
      return value.length > 20 || BigInt(value) < timestampMin || BigInt(value) > timestampMax
        ? "TIMESTAMP_NS"
        : undefined;
    case "uint32":
      return value.length > 10 || Number(value) > 4_294_967_295 ? "uint32" : undefined;
    case "double":
      return specialDoublePattern.test(value) || Number.isFinite(Number(value)) ? undefined : "double";
    case "exact": {
      const type = exactType(exactTypes, column.name);
      return hasRoom(type, digitsOf(value)) ? undefined : `DECIMAL(${type.precision},${type.scale})`;
    }
    case "string":
      return undefined;
  }
}

/** A value in a message, shortened if it is long. */
export function shorten(text: string, limit = 120): string {
  const shown = JSON.stringify(text);
  return shown.length <= limit ? shown : `${shown.slice(0, limit)}… (${text.length} characters)`;
}
