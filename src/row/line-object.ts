import { isDeeper } from "../model/outside-json.ts";

const openBrace = 123;
const closeBrace = 125;

/** Whether a line, or what there is of it, has nothing but blanks. */
export function isBlank(buffer: Buffer, start: number, end: number): boolean {
  for (let i = start; i < end; i++) {
    if (!isSpace(buffer[i])) return false;
  }
  return true;
}

function isSpace(byte: number | undefined): boolean {
  return byte === 13 || byte === 32 || byte === 9;
}

/** The JSON object in some bytes; null if there is none, or it is nested too deep for a row. */
export function parseObject(bytes: Buffer, start: number, end: number): Record<string, unknown> | null {
  // usually the ends show that it is not an object; a parser error would cost as much as ten rows
  let first = start;
  while (isSpace(bytes[first])) first++;
  let last = end - 1;
  while (isSpace(bytes[last])) last--;
  if (bytes[first] !== openBrace || bytes[last] !== closeBrace) return null;
  if (isDeeper(bytes.subarray(first, last + 1))) return null;
  try {
    return JSON.parse(bytes.toString("utf8", first, last + 1)) as Record<string, unknown>;
  } catch {
    return null;
  }
}
