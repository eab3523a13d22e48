import { isUtf8 } from "node:buffer";

/** Most bytes that a byte of text becomes: `\u001f`. */
export const escapedBytes = 6;

/** The escapes of bytes below 128 that JSON strings cannot contain literally. */
const escapes: readonly (Buffer | undefined)[] = Array.from({ length: 128 }, (_, byte) => {
  const text = JSON.stringify(String.fromCharCode(byte)).slice(1, -1);
  return text.length === 1 ? undefined : Buffer.from(text);
});

/**
 * Writes UTF-8 text as the inside of a JSON string, with the canonical line's escapes, and returns where it ends; -1 if
 * the text is not UTF-8. For text that is not plain ASCII; `writePlain` handles that.
 */
export function writeEscaped(
  out: Uint8Array,
  at: number,
  page: Uint8Array,
  start: number,
  end: number,
): number {
  if (!isUtf8(page.subarray(start, end))) return -1;
  let to = at;
  for (let i = start; i < end; i++) {
    const byte = page[i]!;
    const escaped = byte < 128 ? escapes[byte] : undefined;
    if (escaped === undefined) {
      out[to++] = byte;
    } else {
      out.set(escaped, to);
      to += escaped.length;
    }
  }
  return to;
}

/**
 * Copies plain ASCII text without quotes, backslashes and control characters, four bytes at a time, and returns where
 * it ends; -1 at any other byte.
 */
export function writePlain(out: DataView, at: number, page: DataView, start: number, end: number): number {
  const length = end - start;
  if (length < 4) {
    for (let i = 0; i < length; i++) {
      const byte = page.getUint8(start + i);
      if (byte < 0x20 || byte > 0x7f || byte === 0x22 || byte === 0x5c) return -1;
      out.setUint8(at + i, byte);
    }
    return at + length;
  }
  const last = length - 4;
  for (let i = 0; i < last; i += 4) {
    const word = page.getInt32(start + i, true);
    if (isOdd(word)) return -1;
    out.setInt32(at + i, word, true);
  }
  // the last word overlaps the one before if the length is not a multiple of four
  const word = page.getInt32(start + last, true);
  if (isOdd(word)) return -1;
  out.setInt32(at + last, word, true);
  return at + length;
}

/** Whether any of the word's four bytes cannot be copied unchanged. */
function isOdd(word: number): boolean {
  // subtracting from a smaller byte sets its high bit, which is also set in bytes of longer UTF-8 sequences
  const control = (word - 0x20202020) | 0;
  const quote = ((word ^ 0x22222222) - 0x01010101) | 0;
  const backslash = ((word ^ 0x5c5c5c5c) - 0x01010101) | 0;
  return ((word | control | quote | backslash) & 0x80808080) !== 0;
}
