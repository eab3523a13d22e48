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

/** The object that some bytes are as JSON; null where they are none, or one that is nested too deep to be a row. */
export function parseObject(bytes: Buffer, start: number, end: number): Record<string, unknown> | null {
  // most of what is no object shows at its ends, where finding out costs nothing; the parser's error costs ten rows
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
