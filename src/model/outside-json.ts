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

/**
 * Whether objects and arrays of a JSON text lie within each other more than `most` levels deep. Only brackets outside of
 * strings are counted, without recursion; of a text that is no JSON the answer means nothing.
 */
export function isDeeper(text: Uint8Array | string, most: number = deepestJson): boolean {
  // a text this short has no room for as many brackets
  if (text.length <= most) return false;
  return typeof text === "string"
    ? isDeeperBy((at) => text.charCodeAt(at), text.length, most)
    : isDeeperBy((at) => text[at]!, text.length, most);
}

function isDeeperBy(unitAt: (at: number) => number, length: number, most: number): boolean {
  let depth = 0;
  for (let at = 0; at < length; at++) {
    const byte = unitAt(at);
    if (byte === quote) {
      at++;
      while (at < length && unitAt(at) !== quote) at += unitAt(at) === backslash ? 2 : 1;
      // `{` and `[` differ in one bit, as `}` and `]` do
    } else if ((byte & 0xdf) === 0x5b) {
      if (++depth > most) return true;
    } else if ((byte & 0xdf) === 0x5d) {
      depth--;
    }
  }
  return false;
}
