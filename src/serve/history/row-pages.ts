import { RunvaultError } from "../../model/error.ts";
import { tableNamed } from "../../model/profile/table.ts";
import type { HistorySource } from "../../model/source.ts";
import { type RowForm, RowWire } from "../../row/wire/row-wire.ts";
import { maxPageBytes, type Page, type RowChange } from "../wire-hook.ts";
import type { CursorPool } from "./cursor-pool.ts";
import { type Listing, type PagePosition, type PageTokens, rowMark } from "./page-token.ts";
import { RowCursor } from "./row-cursor.ts";

// for the next token, and what surrounds the rows
const roomBesideRows = 16 * 1024;
const maxRowsBytes = maxPageBytes - roomBesideRows;
// the row that shows that a page is full is written, then taken back
const roomForLast = 64 * 1024;
// JSON's overhead per row beyond its line: its name in PreviewRow and a comma
const jsonRowBytes = 32;

export interface PageRequest {
  readonly listing: Listing;
  readonly form: RowForm;
  /** Most rows; undefined for as many as fit. */
  readonly limit: number | undefined;
  /** Empty for the first page. */
  readonly token: string;
  /** The page will be sent as JSON, which is longer. */
  readonly isJson: boolean;
  readonly signal: AbortSignal;
  readonly change?: RowChange | undefined;
}

/**
 * A page of a listing: at least one row, up to its limit or 4 MiB. The next page continues the same answer of the
 * source while that is kept open, else a new one. Throws `invalid_argument` for a token of another listing, or whose
 * rows no longer exist.
 */
export async function rowPage(
  source: HistorySource,
  pool: CursorPool,
  tokens: PageTokens,
  request: PageRequest,
): Promise<Page> {
  const { listing, limit, token, signal } = request;
  const table = tableNamed(listing.table);
  const position = token === "" ? undefined : tokens.parse(token, listing);
  const expectedBytes = Math.min(maxRowsBytes, (limit ?? maxRowsBytes) * 512) + roomForLast;
  const wire = new RowWire(table, request.form, expectedBytes);
  const cursor = pool.take(token) ?? (await openCursor(source, listing, position, wire, signal));
  try {
    await fillPage(cursor, wire, request);
    const number = cursor.page;
    if (wire.rows === 0 || !(await cursor.hasMore(signal))) {
      pool.close(cursor);
      return { wire: wire.written(), rows: wire.rows, number, nextToken: "" };
    }
    cursor.page += 1;
    const event = BigInt.asIntN(64, (BigInt(cursor.eventHigh) << 32n) | BigInt(cursor.eventLow));
    const { page, given } = cursor;
    const nextToken = tokens.format(listing, { page, event, given, mark: rowMark(cursor.keptLine) });
    cursor.forgetLine();
    pool.put(nextToken, cursor);
    return { wire: wire.written(), rows: wire.rows, number, nextToken };
  } catch (error) {
    pool.close(cursor);
    throw error;
  }
}

async function fillPage(cursor: RowCursor, wire: RowWire, request: PageRequest): Promise<void> {
  const { limit = Number.POSITIVE_INFINITY, isJson, signal, change } = request;
  let jsonBytes = 0;
  while (wire.rows < limit) {
    if (cursor.next(wire) === "wait") {
      if (await cursor.more(signal)) continue;
      return;
    }
    if (change !== undefined) {
      const changed = change(cursor.line, wire.lastMessage());
      if (changed !== undefined) {
        wire.dropLast();
        wire.appendMessage(changed);
      }
    }
    if (isJson) jsonBytes += cursor.lineBytes + jsonRowBytes;
    if ((isJson ? jsonBytes : wire.size) > maxRowsBytes && wire.rows > 1) {
      wire.dropLast();
      cursor.stepBack();
      return;
    }
    cursor.keep(wire);
  }
}

/** A cursor at the beginning of a listing, or after the rows already returned. */
async function openCursor(
  source: HistorySource,
  { run, table, from, to, filters }: Listing,
  position: PagePosition | undefined,
  wire: RowWire,
  signal: AbortSignal,
): Promise<RowCursor> {
  const start = position?.event ?? from;
  const cursor = new RowCursor(source, { ...run, table, from: start, to, filters });
  if (position === undefined) return cursor;
  try {
    cursor.page = position.page;
    const event = BigInt.asUintN(64, position.event);
    const high = Number(event >> 32n);
    const low = Number(event & 0xffff_ffffn);
    while (cursor.given < position.given) {
      const step = cursor.next(wire);
      if (step === "wait" && !(await cursor.more(signal))) throw rowsGone(position);
      if (step === "wait") continue;
      cursor.keep(wire);
      wire.clear();
      if (cursor.eventHigh !== high || cursor.eventLow !== low) throw rowsGone(position);
    }
    if (rowMark(cursor.keptLine) !== position.mark) throw rowsGone(position);
    return cursor;
  } catch (error) {
    await cursor[Symbol.asyncDispose]();
    throw error;
  }
}

/** Continuing at the same place would skip or repeat a row. */
function rowsGone({ event }: PagePosition): RunvaultError {
  return new RunvaultError(
    "invalid_argument",
    `page_token has expired: the rows at ${event} are not those given before`,
    { hint: "Start again from the last timestamp whose rows are complete." },
  );
}
