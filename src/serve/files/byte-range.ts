import type { IncomingHttpHeaders } from "node:http";

/** The requested part of a file: bytes `from` to `to`, exclusive. */
export interface FileRange {
  readonly from: number;
  readonly to: number;
}

/** Headers of range requests and their answers that pages of other origins may use. */
export const rangeHeaders = {
  asked: ["range", "if-range", "if-match", "if-none-match"],
  answered: ["accept-ranges", "content-range", "etag"],
} as const;

/**
 * How to answer a request for a file, by RFC 9110: 200 with all of it, 206 with a range, 304 if the client has it, 412
 * if it is not the wanted version, 416 if the range is outside. Several ranges, or an unknown unit or form, get all of
 * it. Ranges are only for GET.
 */
export function askedRange(
  method: string,
  headers: IncomingHttpHeaders,
  etag: string,
  bytes: number,
): { readonly status: 200 | 206 | 304 | 412 | 416; readonly range: FileRange } {
  const range = { from: 0, to: bytes };
  const { "if-match": ifMatch, "if-none-match": ifNoneMatch, "if-range": ifRange } = headers;
  // a weak tag never matches where bytes count, only for 304
  if (ifMatch !== undefined && !names(ifMatch, etag)) return { status: 412, range };
  if (ifNoneMatch !== undefined && names(ifNoneMatch.replaceAll("W/", ""), etag))
    return { status: 304, range };
  // a date never matches, because files have none
  if (method !== "GET" || (ifRange !== undefined && String(ifRange).trim() !== etag))
    return { status: 200, range };
  const [, first = "", last = ""] = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i.exec(headers.range ?? "") ?? [];
  if (first === "" && last === "") return { status: 200, range };
  if (first === "") {
    if (Number(last) === 0) return { status: 416, range };
    return { status: 206, range: { from: Math.max(0, bytes - Number(last)), to: bytes } };
  }
  if (last !== "" && BigInt(last) < BigInt(first)) return { status: 200, range };
  if (Number(first) >= bytes) return { status: 416, range };
  const to = last === "" ? bytes : Math.min(bytes, Number(last) + 1);
  return { status: 206, range: { from: Number(first), to } };
}

function names(header: string, etag: string): boolean {
  return header.trim() === "*" || header.split(",").some((tag) => tag.trim() === etag);
}
