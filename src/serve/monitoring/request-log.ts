import type { Ending } from "../wire-hook.ts";

/** One answered request; plain JSON, one line in a request log. Made just before the answer ends. */
export interface RequestLogEntry {
  /** Empty, like the path, for a request that is not readable as HTTP or incomplete. */
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, unknown>>;
  /** 200 if the client left before there was one. */
  readonly status: number;
  /** `whole`, unless the answer was cut, stalled, or left by the client. */
  readonly ending: Ending;
  /** Rows sent; 0 for anything but rows. */
  readonly rows: number;
  /** Bytes of the body as sent. */
  readonly bytes: number;
  /** For row requests: the parameters, with the run resolved and times in UNIX nanoseconds. */
  readonly table?: string;
  readonly instance?: string;
  readonly run?: string;
  readonly from?: string;
  readonly to?: string;
  /** Requested rows or page size. */
  readonly limit?: number;
  /** Over RPC: the request had a page token. The bounds are the listing's, not the page's. */
  readonly continued?: boolean;
  /** Why an answer failed after it had begun. */
  readonly error?: string;
}
