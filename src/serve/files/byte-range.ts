import type { IncomingHttpHeaders } from "node:http";

/** What of a file is asked for: the bytes from `from` to `to`, excluded. */
export interface FileRange {
  readonly from: number;
  readonly to: number;
}

/** Headers of requests for parts of a file, and of their answers, that pages of another origin may use. */
export const rangeHeaders = {
  asked: ["range", "if-range", "if-match", "if-none-match"],
  answered: ["accept-ranges", "content-range", "etag"],
} as const;

/**
 * How a request for a file is answered, by RFC 9110: 200 with all of it, 206 with a range, 304 to clients that have it, 412 where
 * it is another than the one wanted, 416 where the range has nothing of it. Several ranges are answered with all of it,
 * as is a range of a unit or form that nobody knows. Ranges are for GET alone.
 */
export function askedRange(
  method: string,
  headers: IncomingHttpHeaders,
  etag: string,
  bytes: number,
): { readonly status: 200 | 206 | 304 | 412 | 416; readonly range: FileRange } {
  const range = { from: 0, to: bytes };
  const { "if-match": ifMatch, "if-none-match": ifNoneMatch, "if-range": ifRange } = headers;
  // a weak tag never matches where bytes count; for 304 it does
  if (ifMatch !== undefined && !names(ifMatch, etag)) return { status: 412, range };
  if (ifNoneMatch !== undefined && names(ifNoneMatch.replaceAll("W/", ""), etag))
    return { status: 304, range };
  // a date never matches: files have none
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
