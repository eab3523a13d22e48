import { setImmediate as nextTurn } from "node:timers/promises";
import { type ErrorPlace, RunvaultError } from "../../model/error.ts";
import type { Table } from "../../model/profile/table.ts";
import { Turns } from "../../model/turns.ts";
import { indexPage, type PageIndex, type PageLayout } from "../../row/wire/page-index.ts";
import type { PageLines, RowTranscoder } from "../../row/wire/row-transcoder.ts";
import type { RpcRules } from "../contract.ts";
import type { HttpSession } from "../http/http-session.ts";
import type { RowRate } from "../http/row-rate.ts";
import { openRequestScope } from "../request-scope.ts";
import type { PageSize } from "./page-size.ts";
import type { RpcClient } from "./rpc-client.ts";
import type { SeenPages } from "./seen-pages.ts";

/** How pages of rows are requested. */
export interface PageSource {
  readonly table: Table;
  readonly method: Parameters<RpcClient["call"]>[0]["method"];
  readonly layout: PageLayout;
  readonly size: PageSize;
  readonly transcoder: PageTranscoder;
  /** Remembers pages; each reading has its own. */
  readonly seen: SeenPages;
  /** False if the request does not say how many rows a page may have. */
  readonly isSized?: boolean;
  /** Fewest bytes of a row on the wire. */
  readonly leastRowBytes: number;
  /** The request's bytes for a page of so many rows, after a token. */
  readonly request: (rows: number, token: string) => Uint8Array;
}

/** Makes lines of a page's rows: see RowTranscoder. */
export type PageTranscoder = Pick<RowTranscoder, "transcode">;

export interface PageReading {
  readonly session: HttpSession;
  readonly client: RpcClient;
  readonly rules: RpcRules;
  readonly place: ErrorPlace;
  readonly signal: AbortSignal;
  /** Most rows in total. */
  readonly limit: number;
  /** Most rows of one page; by default as many as fit. */
  readonly pageRows?: number | undefined;
  /** The minimum rate for all pages together. */
  readonly rate: RowRate;
}

/** Most consecutive pages without a row: a gateway may search a stretch without finding any. */
const mostEmptyPages = 16;

/**
 * Most bytes of a single row: the longest line, its tags and its token. If a page of one row is still over the page
 * limit, the gateway does not keep to the limit.
 */
const loneRowBytes = 17 * 1024 * 1024;

/** Most rows of a page whose size cannot be requested: no more lines than the largest possible page. */
const mostUnsizedRows = 100_000;

/**
 * The rows of a table, page by page, as canonical lines; the next page is requested while one is read. Every page is
 * read to its end before any of it is returned. An incomplete one is requested again with the same token, and one that
 * is too large with half the rows. Tokens end with the iteration.
 *
 * Throws `stream_cut` if the pages are inconsistent: a repeated page, a token that leads back or is no longer accepted,
 * nothing but empty pages. Everything returned before that is complete, in key order.
 */
export async function* readPages(
  source: PageSource,
  reading: PageReading,
): AsyncGenerator<Uint8Array, undefined> {
  const { limit, place } = reading;
  const leaving = new AbortController();
  using scope = openRequestScope([reading.signal, leaving.signal]);
  const { signal } = scope;
  let token = "";
  let out = 0;
  let empty = 0;
  try {
    let page = await fetchPage(source, reading, token, limit, signal);
    for (;;) {
      const wanted = limit - out;
      const { nextToken } = page.index;
      const isLast = nextToken === "" || page.index.rows >= wanted;
      // repeating a token would return the same pages forever
      const leadsBack = nextToken === token || source.seen.hasToken(nextToken);
      const goesOn = !isLast && !leadsBack;
      using ahead = goesOn
        ? startAhead(signal, (own) => fetchPage(source, reading, nextToken, wanted - page.index.rows, own))
        : undefined;
      // reading the page blocks the thread, so the next request must be sent first
      if (ahead !== undefined) await letGoOut();
      const lines = page.lines ?? (await tryTranscode(source, page.index, wanted));
      if (lines instanceof RunvaultError) {
        ahead?.[Symbol.dispose]();
        page = await fetchLines(source, reading, token, wanted, signal, lines);
        continue;
      }
      if (source.seen.hasPage(page.index, lines)) throw cut("the same page came twice", place);
      empty = lines.rows > 0 ? 0 : empty + 1;
      out += lines.rows;
      yield* lines.chunks;
      if (isLast) return;
      if (ahead === undefined) throw cut("a page's token leads back to an earlier page", place);
      if (empty > mostEmptyPages)
        throw cut(`${empty} pages in a row were empty, but there is a token for yet another`, place);
      token = nextToken;
      source.seen.addToken(token);
      page = await ahead.page;
    }
  } finally {
    leaving.abort(new RunvaultError("interrupted", "the reader stopped reading"));
  }
}

/** A page as it came; its lines if they were already made. */
interface FetchedPage {
  readonly index: PageIndex;
  readonly lines?: PageLines;
}

/** One page, requested until it is complete. */
function fetchPage(
  source: PageSource,
  reading: PageReading,
  token: string,
  wanted: number,
  signal: AbortSignal,
): Promise<FetchedPage> {
  const { session, place } = reading;
  return session.retrying(
    signal,
    async () => ({ index: await attemptPage(source, reading, token, wanted, { place, signal }) }),
    canComeWhole,
  );
}

/** The same for a page whose rows could not be read in the first attempt. */
function fetchLines(
  source: PageSource,
  reading: PageReading,
  token: string,
  wanted: number,
  signal: AbortSignal,
  failure: RunvaultError,
): Promise<FetchedPage> {
  const { session, place } = reading;
  return session.retrying(
    signal,
    async (attempt) => {
      if (attempt === 1) throw failure;
      const index = await attemptPage(source, reading, token, wanted, { place, signal });
      return { index, lines: await transcode(source, index, wanted) };
    },
    canComeWhole,
  );
}

/**
 * Requests one page, with fewer rows while it is too large. Throws `limit_exceeded` if a single row is. If more rows
 * than ever before are refused, their number is blamed first, then the token or the request.
 */
async function attemptPage(
  source: PageSource,
  { session, client, rules, rate, pageRows = Number.POSITIVE_INFINITY }: PageReading,
  token: string,
  wanted: number,
  context: Parameters<RpcClient["call"]>[1],
): Promise<PageIndex> {
  const { method, size, layout } = source;
  let refusedRows: number | undefined;
  for (;;) {
    const rows = Math.min(size.rows, wanted, pageRows);
    const request = source.request(rows, token);
    const isSized = source.isSized !== false;
    const mostBytes = rows === 1 || !isSized ? loneRowBytes : rules.pageBytes;
    try {
      const bytes = await client.call({ method, request, withToken: token !== "", mostBytes, rate }, context);
      const index = indexPage(bytes, layout, isSized ? rows : mostUnsizedRows);
      judgePage(index, source, session, context.place);
      if (refusedRows !== undefined) size.refuse(refusedRows);
      size.learn(rows, index.rows, bytes.byteLength);
      return index;
    } catch (thrown) {
      if (!(thrown instanceof RunvaultError)) throw thrown;
      // some servers use the code for quotas also for a page that they cannot send
      if (thrown.code === "rate_limited" && thrown.retryAfterMs === undefined) size.halve(rows);
      // made or sent too slowly: fewer rows come sooner
      if (thrown.code === "timeout") size.slowDown(rows);
      if (isRefusedArgument(thrown) && size.goBack(rows)) {
        refusedRows = rows;
        session.countRetry(context.place);
        continue;
      }
      if (thrown.code !== "limit_exceeded" || !size.halve(rows)) throw thrown;
    }
  }
}

/**
 * Rows under another field number would be overlooked: in a page without rows, no unknown field may be as long as a
 * row.
 */
function judgePage(
  { rows, unknown }: PageIndex,
  { method, leastRowBytes }: PageSource,
  session: HttpSession,
  place: ErrorPlace,
): void {
  const all = [...unknown];
  const named = (fields: typeof all) => fields.map(([number]) => `#${number}`);
  session.unknown.judge(
    {
      what: `a page of ${method.name}`,
      fields: named(all),
      candidates: named(all.filter(([, bytes]) => bytes >= leastRowBytes)),
      empty: rows === 0 ? "rows" : undefined,
    },
    place,
  );
}

/** Whether a page's request was refused for its contents: its token, page size, or anything else. */
function isRefusedArgument({ code, status }: RunvaultError): boolean {
  return status === 400 && (code === "stream_cut" || code === "refused");
}

/** Whether a new request may bring the complete page: also after a decoding error, but not after a refused token. */
function canComeWhole({ code, retry, status }: RunvaultError): boolean {
  if (code === "malformed_row") return true;
  return retry === "again" && !(code === "stream_cut" && status !== undefined);
}

/** The page's lines, with turns of the event loop between chunks. */
async function transcode(source: PageSource, index: PageIndex, most: number): Promise<PageLines> {
  const turns = new Turns();
  const steps = source.transcoder.transcode(index, most);
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    if (turns.isDue(step.value)) await turns.next();
  }
}

/** The page's lines, or why its rows cannot be read. */
async function tryTranscode(
  source: PageSource,
  index: PageIndex,
  most: number,
): Promise<PageLines | RunvaultError> {
  try {
    return await transcode(source, index, most);
  } catch (thrown) {
    if (thrown instanceof RunvaultError && thrown.code === "malformed_row") return thrown;
    throw thrown;
  }
}

/** A page that is requested while another is read; disposing cancels it. */
interface PageAhead extends Disposable {
  readonly page: Promise<FetchedPage>;
}

function startAhead(signal: AbortSignal, fetch: (signal: AbortSignal) => Promise<FetchedPage>): PageAhead {
  const givingUp = new AbortController();
  const scope = openRequestScope([signal, givingUp.signal]);
  const page = fetch(scope.signal).finally(() => scope[Symbol.dispose]());
  // it may fail before or after anyone waits for it
  page.catch(() => undefined);
  return {
    page,
    [Symbol.dispose]: () => givingUp.abort(new RunvaultError("interrupted", "the page ahead is not needed")),
  };
}

/** undici needs a turn of the event loop to end the previous answer, one to write a request, and one for TLS. */
const turnsToGoOut = 3;

async function letGoOut(): Promise<void> {
  for (let turn = 0; turn < turnsToGoOut; turn++) await nextTurn();
}

function cut(what: string, place: ErrorPlace): RunvaultError {
  return new RunvaultError("stream_cut", `the pages of rows are inconsistent: ${what}`, { place });
}
