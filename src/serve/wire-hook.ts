import type { TableName } from "../model/profile/table.ts";
import type { HistorySource, RunRef } from "../model/source.ts";
import type { Transport } from "./transport.ts";

/** The history documents on REST, by the last part of their path. */
export const documentRoutes = ["instances", "runs", "resources", "storage", "summary"] as const;
export type DocumentRoute = (typeof documentRoutes)[number];

/** The subject of an answer about history. */
export type Asked = DocumentRoute | TableName;

/**
 * Lets a server's answers differ from its source, for simulated faults. A server without one sends what the source has.
 */
export interface WireHook {
  /** The source of each transport's answers. */
  readonly sources: Readonly<Record<Transport, HistorySource>>;
  /**
   * Called before an answer, which waits for it; the client gets its errors. `signal` aborts when the client is gone.
   */
  before(asked: Asked, transport: Transport, signal: AbortSignal): Promise<void>;
  /** Where a REST answer with rows stops. */
  stops(table: TableName): { readonly rows: readonly RowStop[]; readonly bytes: readonly ByteStop[] };
  /** Called before an RPC page, numbered from 1 in its listing. The client gets its errors. */
  beforePage(table: RunRef & { readonly table: TableName }, number: number): Promise<PageShape>;
  /** The page as sent to the client with this `token`. */
  page(table: TableName, token: string, page: Page): Page;
  /** A field added to a binary page message; undefined for none. */
  pageField(table: TableName, page: Page): UnknownField | undefined;
  /** A whole RPC answer as sent. `rows` is the number in it, `accepted` the client's Accept-Encoding. */
  answer(asked: Asked, rows: number | undefined, accepted: string, made: RpcAnswer): SentAnswer;
}

/**
 * How an answer ends: `whole` is complete, `cut` loses its connection before the end of the chunked body, `stalled`
 * stays open without another byte, `left` was abandoned by the client.
 */
export type Ending = "whole" | "cut" | "stalled" | "left";

/** Where an answer is deliberately stopped: after `rows` rows, if `hit` then says so. */
export interface RowStop {
  readonly rows: number;
  readonly ending: Ending;
  hit(): boolean;
}

/** Where a body is deliberately stopped: after `bytes` bytes as sent, if `hit` then says so. */
export interface ByteStop {
  readonly bytes: number;
  readonly ending: "cut" | "whole";
  hit(): boolean;
}

export interface PageShape {
  /** Most rows, in addition to other limits. */
  readonly most?: number | undefined;
  readonly change?: RowChange | undefined;
}

/** Called for every row with its line and message bytes; returns bytes to send instead, or undefined. */
export type RowChange = (line: Uint8Array, message: Uint8Array) => Uint8Array | undefined;

/** Most bytes of a response with rows, as the interface has it. */
export const maxPageBytes = 4 * 1024 * 1024;

export interface Page {
  /** Rows as encoded in the response, each with the tag of field 1 before it. */
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

/** The head and body of an RPC answer, complete before any of it is sent. */
export interface RpcAnswer {
  readonly header: Headers;
  readonly body: Uint8Array;
}

export interface SentAnswer extends RpcAnswer {
  readonly ending: Ending;
}
