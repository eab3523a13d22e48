import type { TableName } from "../model/profile/table.ts";
import type { HistorySource, RunRef } from "../model/source.ts";
import type { Transport } from "./transport.ts";

/** The history documents on REST, by the last part of their path. */
export const documentRoutes = ["instances", "runs", "resources", "storage", "summary"] as const;
export type DocumentRoute = (typeof documentRoutes)[number];

/** What an answer about history is of. */
export type Asked = DocumentRoute | TableName;

/**
 * Asked by a server about each answer from history, to make what goes out differ from what the source holds. A server
 * without one sends what there is.
 */
export interface WireHook {
  /** What the answers of each transport are made from. */
  readonly sources: Readonly<Record<Transport, HistorySource>>;
  /** Ahead of an answer, which waits for it; what it throws is told to the client. `signal` fires when nobody waits any more. */
  before(asked: Asked, transport: Transport, signal: AbortSignal): Promise<void>;
  /** Where an answer with rows over REST stops. */
  stops(table: TableName): { readonly rows: readonly RowStop[]; readonly bytes: readonly ByteStop[] };
  /** Ahead of a page over RPC, whose number counts from 1 in its listing. What it throws is told to the client. */
  beforePage(table: RunRef & { readonly table: TableName }, number: number): Promise<PageShape>;
  /** The page as it is sent to whoever came with `token`. */
  page(table: TableName, token: string, page: Page): Page;
  /** A field added to the message of a page in binary; undefined for none. */
  pageField(table: TableName, page: Page): UnknownField | undefined;
  /** A whole answer over RPC as it is sent. `rows` is how many are in it, `accepted` the client's Accept-Encoding. */
  answer(asked: Asked, rows: number | undefined, accepted: string, made: RpcAnswer): SentAnswer;
}

/**
 * How the answer goes out of the world: `whole` is closed as complete, `cut` loses its connection without the end of
 * the chunked body, `stalled` stays open without another byte, `left` was given up by the client.
 */
export type Ending = "whole" | "cut" | "stalled" | "left";

/** Where an answer is stopped on purpose: after `rows` rows, if `hit` says so when it gets there. */
export interface RowStop {
  readonly rows: number;
  readonly ending: Ending;
  hit(): boolean;
}

/** Where a body is stopped on purpose: after `bytes` bytes as sent, if `hit` says so when it gets there. */
export interface ByteStop {
  readonly bytes: number;
  readonly ending: "cut" | "whole";
  hit(): boolean;
}

export interface PageShape {
  /** Most rows, beside the other limits. */
  readonly most?: number | undefined;
  readonly change?: RowChange | undefined;
}

/** Told of every row, its line and the bytes of its message: the bytes to send instead, or undefined to leave it. */
export type RowChange = (line: Uint8Array, message: Uint8Array) => Uint8Array | undefined;

/** Most bytes of a response with rows, as the interface has it. */
export const maxPageBytes = 4 * 1024 * 1024;

export interface Page {
  /** Rows as they stand in the response, each with the tag of field 1 before it. */
  readonly wire: Uint8Array;
  readonly rows: number;
  /** Number of the page in its listing, from 1. */
  readonly number: number;
  /** Empty on the last page. */
  readonly nextToken: string;
}

export interface UnknownField {
  readonly no: number;
  readonly wireType: number;
  readonly data: Uint8Array;
}

/** The head and body of an answer over RPC, which is all there before any of it is sent. */
export interface RpcAnswer {
  readonly header: Headers;
  readonly body: Uint8Array;
}

export interface SentAnswer extends RpcAnswer {
  readonly ending: Ending;
}
