import type { Ending } from "../wire-hook.ts";

/** One answered request; plain JSON, one line in a request log. It is made just before the answer ends. */
export interface RequestLogEntry {
  /** Empty, as the path is, of a request that cannot be read as HTTP or did not come whole. */
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, unknown>>;
  /** 200 where the client left before there was one. */
  readonly status: number;
  /** `whole`, unless the answer was cut, stalled, or left by the client. */
  readonly ending: Ending;
  /** Rows sent; 0 for anything but rows. */
  readonly rows: number;
  /** Bytes of the body as sent. */
  readonly bytes: number;
  /** For requests for rows: what was asked, the run resolved, times in UNIX nanoseconds. */
  readonly table?: string;
  readonly instance?: string;
  readonly run?: string;
  readonly from?: string;
  readonly to?: string;
  /** Rows or page size asked for. */
  readonly limit?: number;
  /** Over RPC: a page token was given. The bounds are those of the listing, not of the page. */
  readonly continued?: boolean;
  /** Why an answer that had begun could not go on. */
  readonly error?: string;
}
