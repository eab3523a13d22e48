import { createHash } from "node:crypto";
import { RunvaultError } from "../model/error.ts";
import type { RunRef } from "../model/source.ts";
import type { FilterName, TableName } from "../model/table.ts";
import type { Nanoseconds, TimeBounds } from "../model/time.ts";

/** What a listing of rows is of. A token goes on with this listing and no other. */
export interface Listing extends TimeBounds {
  readonly run: RunRef;
  readonly table: TableName;
  readonly filters: Readonly<Partial<Record<FilterName, string>>>;
}

/** Where a listing stands after a page. */
export interface PagePosition {
  /** Number of the page to come, from 1. */
  readonly page: number;
  /** `ts_event` of the last row given. */
  readonly event: Nanoseconds;
  /** Rows of that `ts_event` given so far. */
  readonly given: number;
  /** Fingerprint of the last row given, as `rowMark` makes it. */
  readonly mark: string;
}

interface PageToken extends PagePosition {
  readonly runId: string;
}

const markBytes = 8;
const sealBytes = 12;
const fixedBytes = 1 + 4 + 8 + 4 + markBytes + sealBytes;
const version = 1;
// run ids may be long, but a request is not a place to store things
const maxTokenLength = 8192;

/** Tells one row from another that may have come to stand in its place. */
export function rowMark(line: Uint8Array): string {
  return createHash("sha256")
    .update(line)
    .digest("hex")
    .slice(0, 2 * markBytes);
}

/**
 * A position as an opaque token. It holds the run, so that a listing of an instance's latest run stays with the run that
 * it began with, and a seal over listing and position, so that it fits no other listing.
 */
export function formatPageToken(listing: Listing, position: PagePosition): string {
  const bytes = Buffer.alloc(fixedBytes);
  bytes.writeUInt8(version, 0);
  bytes.writeUInt32BE(position.page, 1);
  bytes.writeBigInt64BE(position.event, 5);
  bytes.writeUInt32BE(position.given, 13);
  bytes.write(position.mark, 17, "hex");
  const head = Buffer.concat([bytes.subarray(0, fixedBytes - sealBytes), Buffer.from(listing.run.runId)]);
  return Buffer.concat([sealOf(listing, head), head]).toString("base64url");
}

/** The run that a token's listing is of, for a request that leaves the run open. Throws `invalid_argument`. */
export function runOfToken(text: string): string {
  return decoded(text).token.runId;
}

/** Where to go on. Throws `invalid_argument` where the text is no token, or one of another listing. */
export function parsePageToken(text: string, listing: Listing): PagePosition {
  const { token, seal, head } = decoded(text);
  if (token.runId !== listing.run.runId || !sealOf(listing, head).equals(seal)) {
    throw new RunvaultError("invalid_argument", "page_token belongs to another request", {
      hint: "Ask for a next page with the parameters of the page before.",
    });
  }
  return token;
}

function decoded(text: string): { token: PageToken; seal: Buffer; head: Buffer } {
  const bytes = text.length <= maxTokenLength ? Buffer.from(text, "base64url") : Buffer.alloc(0);
  if (bytes.length < fixedBytes || bytes.toString("base64url") !== text || bytes[sealBytes] !== version) {
    throw new RunvaultError("invalid_argument", "page_token is no token of this service", {
      hint: "Give the next_page_token of the page before, or nothing for the first page.",
    });
  }
  const head = bytes.subarray(sealBytes);
  const token = {
    page: head.readUInt32BE(1),
    event: head.readBigInt64BE(5),
    given: head.readUInt32BE(13),
    mark: head.toString("hex", 17, 17 + markBytes),
    runId: head.toString("utf8", fixedBytes - sealBytes),
  };
  return { token, seal: bytes.subarray(0, sealBytes), head };
}

function sealOf({ run, table, filters, from, to }: Listing, head: Uint8Array): Buffer {
  const sorted = Object.entries(filters).sort(([a], [b]) => (a < b ? -1 : 1));
  const identity = JSON.stringify([run.instanceId, run.runId, table, `${from}`, `${to}`, sorted]);
  return createHash("sha256").update(head).update(identity).digest().subarray(0, sealBytes);
}
