/** Values nested deeper than this are refused wherever JSON comes from outside: reading them may take the whole stack. */
export const deepestJson = 64;

const quote = 34;
const backslash = 92;

/**
 * Whether objects and arrays of a JSON text lie within each other more than `most` levels deep. Only brackets outside of
 * strings are counted, without recursion; of a text that is no JSON the answer means nothing.
 */
export function isDeeper(text: Uint8Array, most: number = deepestJson): boolean {
  // a text this short has no room for as many brackets
  if (text.byteLength <= most) return false;
  let depth = 0;
  for (let at = 0; at < text.byteLength; at++) {
    const byte = text[at]!;
    if (byte === quote) {
      at++;
      while (at < text.byteLength && text[at] !== quote) at += text[at] === backslash ? 2 : 1;
      // `{` and `[` differ in one bit, as `}` and `]` do
    } else if ((byte & 0xdf) === 0x5b) {
      if (++depth > most) return true;
    } else if ((byte & 0xdf) === 0x5d) {
      depth--;
    }
  }
  return false;
}
