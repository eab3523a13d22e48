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

/** A page of rows, by how it is asked for. */
export interface PageSource {
  readonly table: Table;
  readonly method: Parameters<RpcClient["call"]>[0]["method"];
  readonly layout: PageLayout;
  readonly size: PageSize;
  readonly transcoder: PageTranscoder;
  /** Knows the pages that came; of each reading its own. */
  readonly seen: SeenPages;
  /** False where the gateway is not told how many rows a page may have. */
  readonly isSized?: boolean;
  /** Bytes that no row on the wire is below. */
  readonly leastRowBytes: number;
  /** The request's bytes for a page of so many rows, from a token on. */
  readonly request: (rows: number, token: string) => Uint8Array;
}

/** What makes lines of a page's rows: see RowTranscoder. */
export type PageTranscoder = Pick<RowTranscoder, "transcode">;

export interface PageReading {
  readonly session: HttpSession;
  readonly client: RpcClient;
  readonly rules: RpcRules;
  readonly place: ErrorPlace;
  readonly signal: AbortSignal;
  /** Most rows in all. */
  readonly limit: number;
  /** Most rows of one page; as many as fit unless said. */
  readonly pageRows?: number | undefined;
  /** What all pages together are held to. */
  readonly rate: RowRate;
}

/** Pages without a row that may follow each other: a gateway may look through a stretch and find nothing in it. */
const mostEmptyPages = 16;

/**
 * A row alone may take this much: the longest line, its tags and its token. Where a page of one row is still over the
 * page limit, the limit is not what the gateway keeps to.
 */
const loneRowBytes = 17 * 1024 * 1024;

/** Rows of a page that nobody could ask to be smaller: as many as make no more lines than the largest page that can be. */
const mostUnsizedRows = 100_000;

/**
 * The rows of a table, page by page, as canonical lines: the next page is on its way while one is read. Every page is
 * whole and read to its end before any of it is handed out, and is asked for again, by the same token, while it is not;
 * a page that is too large is asked for by half. Tokens end with the iteration.
 *
 * Throws `stream_cut` where the pages stop making sense: one that came before, a token that leads to itself or is no
 * longer taken, nothing but empty ones. What was handed out is whole up to there, in key order.
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
      // a token that was sent before would bring the same pages for ever
      const leadsBack = nextToken === token || source.seen.hasToken(nextToken);
      const goesOn = !isLast && !leadsBack;
      using ahead = goesOn
        ? startAhead(signal, (own) => fetchPage(source, reading, nextToken, wanted - page.index.rows, own))
        : undefined;
      // reading the page keeps the thread: the request for the next has to be on its way first
      if (ahead !== undefined) await letGoOut();
      const lines = page.lines ?? (await tryTranscode(source, page.index, wanted));
      if (lines instanceof RunvaultError) {
        ahead?.[Symbol.dispose]();
        page = await fetchLines(source, reading, token, wanted, signal, lines);
        continue;
      }
      if (source.seen.hasPage(page.index, lines)) throw cut("a page came a second time", place);
      empty = lines.rows > 0 ? 0 : empty + 1;
      out += lines.rows;
      yield* lines.chunks;
      if (isLast) return;
      if (ahead === undefined) throw cut("the token of a page leads back to a page that came", place);
      if (empty > mostEmptyPages)
        throw cut(`${empty} pages in a row were empty, and there is a token for another`, place);
      token = nextToken;
      source.seen.addToken(token);
      page = await ahead.page;
    }
  } finally {
    leaving.abort(new RunvaultError("interrupted", "the reader stopped reading"));
  }
}

/** A page as it came; its lines where they were made already. */
interface FetchedPage {
  readonly index: PageIndex;
  readonly lines?: PageLines;
}

/** One page, asked for until it is whole. */
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

/** The same for a page whose rows could not be read, which was the first attempt: until they can. */
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
 * Asks for one page, with fewer rows while it is too large. Throws `limit_exceeded` where one row is. A refusal of more
 * rows than ever came is taken for one of their number first: only then for one of the token, or of the request.
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
      // the code that quotas have is also what some servers say of a page that they cannot send
      if (thrown.code === "rate_limited" && thrown.retryAfterMs === undefined) size.halve(rows);
      // whether it is made or sent too slowly: of fewer rows it comes sooner
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

/** Rows under another number would be taken for none: of a page without rows no unknown field may be as long as a row. */
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

/** Whether a page's request was refused for what it says: its token, its page size, or anything else in it. */
function isRefusedArgument({ code, status }: RunvaultError): boolean {
  return status === 400 && (code === "stream_cut" || code === "refused");
}

/** What may come whole when asked for again: also what did not decode, but not what a refused token was to bring. */
function canComeWhole({ code, retry, status }: RunvaultError): boolean {
  if (code === "malformed_row") return true;
  return retry === "again" && !(code === "stream_cut" && status !== undefined);
}

/** The page's lines, with turns of the event loop between their chunks. */
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

/** A page that is on its way while another is read; disposing gives it up. */
interface PageAhead extends Disposable {
  readonly page: Promise<FetchedPage>;
}

function startAhead(signal: AbortSignal, fetch: (signal: AbortSignal) => Promise<FetchedPage>): PageAhead {
  const givingUp = new AbortController();
  const scope = openRequestScope([signal, givingUp.signal]);
  const page = fetch(scope.signal).finally(() => scope[Symbol.dispose]());
  // it may fail while nobody waits for it yet, or any more
  page.catch(() => undefined);
  return {
    page,
    [Symbol.dispose]: () => givingUp.abort(new RunvaultError("interrupted", "the page ahead is not needed")),
  };
}

/** undici takes a turn of the event loop to end the answer before, and one to write a request; one more is for TLS. */
const turnsToGoOut = 3;

async function letGoOut(): Promise<void> {
  for (let turn = 0; turn < turnsToGoOut; turn++) await nextTurn();
}

function cut(what: string, place: ErrorPlace): RunvaultError {
  return new RunvaultError("stream_cut", `the pages of rows make no sense: ${what}`, { place });
}
