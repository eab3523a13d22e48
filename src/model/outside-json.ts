/** Values nested deeper than this are refused wherever JSON comes from outside: reading them may take the whole stack. */
export const deepestJson = 64;

/**
 * The value of a JSON text from outside. Throws SyntaxError where it is none, and where it is nested deeper than
 * `deepestJson`: what goes through such a value by calling itself, JSON.stringify for one, takes the whole stack.
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
  /** Names in one object: each takes some hundred bytes where there are so many. */
  readonly names: number;
}

/** Of a document from outside: a list of as many runs as 16 MiB have room for stays below. */
const documentLimits: Limits = { levels: deepestJson, containers: 2 ** 19, names: 2 ** 17 };

/**
 * Whether objects and arrays of a JSON text lie within each other more than `most` levels deep. Only brackets outside of
 * strings are counted, without recursion; of a text that is no JSON the answer means nothing.
 */
export function isDeeper(text: Uint8Array | string, most: number = deepestJson): boolean {
  // a text this short has no room for as many brackets
  if (text.length <= most) return false;
  return excess(text, { levels: most, containers: Infinity, names: Infinity }) !== null;
}

/** How a JSON document from outside would take far more memory to read than it has bytes; null where it would not. */
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
      // `{` and `[` differ in one bit, as `}` and `]` do
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
