/** Deeper nesting is refused in any JSON from outside: reading it could overflow the stack. */
export const deepestJson = 64;

/**
 * Parses JSON from outside. Throws SyntaxError if it is invalid or nested deeper than `deepestJson`: recursive code
 * such as JSON.stringify would overflow the stack.
 */
export function parseJson(text: string): unknown {
  if (isDeeper(text)) throw new SyntaxError(`JSON nested deeper than ${deepestJson} levels`);
  return JSON.parse(text);
}

const quote = 34;
const backslash = 92;
const colon = 58;

/** How much a JSON text may hold. */
interface Limits {
  readonly levels: number;
  /** Objects and lists in all: an empty one of two bytes takes a hundred in memory. */
  readonly containers: number;
  /** Names in one object: with so many, each takes about a hundred bytes. */
  readonly names: number;
}

/** For a document from outside: a list with as many runs as fit into 16 MiB stays below. */
const documentLimits: Limits = { levels: deepestJson, containers: 2 ** 19, names: 2 ** 17 };

/**
 * Whether objects and arrays in a JSON text are nested deeper than `most` levels. Counts only brackets outside of
 * strings, without recursion; the result means nothing for invalid JSON.
 */
export function isDeeper(text: Uint8Array | string, most: number = deepestJson): boolean {
  // a text this short cannot have so many brackets
  if (text.length <= most) return false;
  return excess(text, { levels: most, containers: Infinity, names: Infinity }) !== null;
}

/** Why a JSON document from outside would take far more memory than its size; null if it would not. */
export function excessOf(document: Uint8Array | string): string | null {
  return excess(document, documentLimits);
}

function excess(text: Uint8Array | string, limits: Limits): string | null {
  return typeof text === "string"
    ? excessBy((at) => text.charCodeAt(at), text.length, limits)
    : excessBy((at) => text[at]!, text.length, limits);
}

function excessBy(unitAt: (at: number) => number, length: number, limits: Limits): string | null {
  const { levels, containers, names } = limits;
  let depth = 0;
  let opened = 0;
  const namesAt: number[] = [];
  for (let at = 0; at < length; at++) {
    const byte = unitAt(at);
    if (byte === quote) {
      at++;
      while (at < length && unitAt(at) !== quote) at += unitAt(at) === backslash ? 2 : 1;
      // `{` and `[` differ in one bit, and so do `}` and `]`
    } else if ((byte & 0xdf) === 0x5b) {
      if (++depth > levels) return `is nested deeper than ${levels} levels`;
      if (++opened > containers) return `has more than ${containers} objects and lists`;
      namesAt[depth] = 0;
    } else if ((byte & 0xdf) === 0x5d) {
      depth--;
    } else if (byte === colon && ++namesAt[depth]! > names) {
      return `has an object with more than ${names} names`;
    }
  }
  return null;
}
