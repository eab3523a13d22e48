import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { RunvaultError } from "../../model/error.ts";
import type { FilterName, TableName } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import type { Nanoseconds, TimeBounds } from "../../model/time.ts";

/** The subject of a listing. A token only works for its own listing. */
export interface Listing extends TimeBounds {
  readonly run: RunRef;
  readonly table: TableName;
  readonly filters: Readonly<Partial<Record<FilterName, string>>>;
}

/** Where a listing stands after a page. */
export interface PagePosition {
  /** Number of the next page, from 1. */
  readonly page: number;
  /** `ts_event` of the last row returned. */
  readonly event: Nanoseconds;
  /** Rows of that `ts_event` returned so far. */
  readonly given: number;
  /** The `rowMark` of the last row returned. */
  readonly mark: string;
}

interface PageToken extends PagePosition {
  readonly runId: string;
}

const markBytes = 8;
const sealBytes = 16;
const keyIdBytes = 4;
const positionBytes = 4 + 8 + 4 + markBytes;
/** Where the position starts, after the seal, the version and the key's id. */
const positionAt = sealBytes + 1 + keyIdBytes;
const fixedBytes = positionAt + positionBytes;
const version = 2;
// run ids may be long, but a request must not be used as storage
const maxTokenLength = 8192;
/** Length of a key that cannot be found by trying. */
export const leastPageKeyBytes = 32;

/** Distinguishes a row from another one that may have replaced it. */
export function rowMark(line: Uint8Array): string {
  return createHash("sha256")
    .update(line)
    .digest("hex")
    .slice(0, 2 * markBytes);
}

/** The run in a token's listing, for a request that leaves the run open. Throws `invalid_argument`. */
export function runOfToken(text: string): string {
  return decoded(text).token.runId;
}

/** Writes and reads the page tokens of a server, or of several with the same key. */
export class PageTokens {
  readonly #key: Uint8Array;
  readonly #keyId: Buffer;

  /** Without a key, tokens are valid as long as this object exists. */
  constructor(key: Uint8Array = randomBytes(leastPageKeyBytes)) {
    this.#key = key;
    this.#keyId = createHmac("sha256", key).update("key id").digest().subarray(0, keyIdBytes);
  }

  /**
   * A position as an opaque token. It contains the run, because a listing of the latest run must stay with the first
   * one, and a seal over listing and position: it fits no other listing and cannot be forged.
   */
  format(listing: Listing, position: PagePosition): string {
    const bytes = Buffer.alloc(fixedBytes);
    bytes.writeUInt8(version, sealBytes);
    this.#keyId.copy(bytes, sealBytes + 1);
    bytes.writeUInt32BE(position.page, positionAt);
    bytes.writeBigInt64BE(position.event, positionAt + 4);
    bytes.writeUInt32BE(position.given, positionAt + 12);
    bytes.write(position.mark, positionAt + 16, "hex");
    const token = Buffer.concat([bytes, Buffer.from(listing.run.runId)]);
    this.#sealOf(listing, token.subarray(sealBytes)).copy(token);
    return token.toString("base64url");
  }

  /** The position in a token. Throws `invalid_argument` if it is invalid, or belongs to another listing or key. */
  parse(text: string, listing: Listing): PagePosition {
    const { token, bytes } = decoded(text);
    if (!this.#keyId.equals(bytes.subarray(sealBytes + 1, positionAt))) {
      throw new RunvaultError("invalid_argument", "page_token has expired: it was created with another key", {
        hint: "Start again from the last timestamp whose rows are complete; servers share tokens if they use the same --page-key-file.",
      });
    }
    const seal = this.#sealOf(listing, bytes.subarray(sealBytes));
    if (!timingSafeEqual(seal, bytes.subarray(0, sealBytes)) || token.runId !== listing.run.runId) {
      throw new RunvaultError("invalid_argument", "page_token belongs to another request", {
        hint: "Request the next page with the parameters of the first.",
      });
    }
    return token;
  }

  #sealOf({ run, table, filters, from, to }: Listing, head: Uint8Array): Buffer {
    const sorted = Object.entries(filters).sort(([a], [b]) => (a < b ? -1 : 1));
    const identity = JSON.stringify([run.instanceId, run.runId, table, `${from}`, `${to}`, sorted]);
    return createHmac("sha256", this.#key).update(head).update(identity).digest().subarray(0, sealBytes);
  }
}

function decoded(text: string): { token: PageToken; bytes: Buffer } {
  const bytes = text.length <= maxTokenLength ? Buffer.from(text, "base64url") : Buffer.alloc(0);
  if (bytes.length < fixedBytes || bytes.toString("base64url") !== text || bytes[sealBytes] !== version) {
    throw new RunvaultError("invalid_argument", "page_token is not a token of this server", {
      hint: "Send the next_page_token of the previous page, or nothing for the first page.",
    });
  }
  const token = {
    page: bytes.readUInt32BE(positionAt),
    event: bytes.readBigInt64BE(positionAt + 4),
    given: bytes.readUInt32BE(positionAt + 12),
    mark: bytes.toString("hex", positionAt + 16, fixedBytes),
    runId: bytes.toString("utf8", fixedBytes),
  };
  return { token, bytes };
}
