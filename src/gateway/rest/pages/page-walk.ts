import { type ErrorPlace, RunvaultError } from "../../../model/error.ts";
import type { AnswerHeaders } from "../../http/answer.ts";
import type { Pages } from "../../profile/profile.ts";
import { AnnouncedRows, type Announcement } from "./announced-rows.ts";
import { type PageTold, toldBy, totalOf } from "./next-page.ts";
import type { PageRows } from "./page-rows.ts";
import { PageWatch } from "./page-watch.ts";
import { rowMeaning } from "./row-meaning.ts";
import { RowSpool } from "./row-spool.ts";
import { RowSum } from "./row-sum.ts";
import { SeenOnce } from "./seen-once.ts";
import { takeRows } from "./take-rows.ts";

/** One open page. Disposing it drops the rest. */
export interface OpenPage extends AsyncDisposable {
  readonly headers: AnswerHeaders;
  readonly rows: PageRows;
  /** The answer's bytes. */
  chunks(): AsyncGenerator<Uint8Array, undefined>;
}

/** How the pages of one answer are requested. */
export interface PageWalk extends Announcement {
  /** Rows to request per page; undefined if the request does not say. */
  readonly size: number | undefined;
  /** No more rows can come into the requested range: its end, or the run's, has passed. */
  readonly isClosed: boolean;
  /** Rows may be equal, because they have no numbers: then only pages that differ in themselves can be told apart. */
  readonly hasTwins: boolean;
  /** Whether another order of rows counts as a difference: arrival order is kept. */
  readonly isArrivalKept: boolean;
  /** Called when a page ends, with the rows that were returned from it. */
  readonly onPageEnd?: ((rows: number) => void) | undefined;
  /** The same request with the parameters of a page. */
  open(more: Readonly<Record<string, string | number>>): Promise<OpenPage>;
  /** The page at an address that a page named. */
  openAddress(address: string): Promise<OpenPage>;
  /** Called at the end of pages that name the next one, if there was only one: whether the place for the next existed. */
  readonly onOnlyPage?:
    | ((told: { readonly rows: number; readonly isThere: boolean }) => Promise<void>)
    | undefined;
}

/** What a finished page says besides its rows. */
export function toldOf({ headers, rows }: OpenPage): PageTold {
  return { headers, value: (index) => rows.value(index) };
}

/** Most consecutive pages without a row: a gateway may search a stretch without finding any. */
const mostEmptyPages = 16;
/** Most consecutive identical pages of equal rows: a gateway may return its last page forever. */
const mostAlikePages = 200;
/** Rows per page if neither the profile nor the request says. */
export const usualSize = 1000;

/**
 * The rows of all pages, one per line, in order of arrival.
 *
 * Throws `rows_missing` if fewer came than announced and there is no `onTotal`, and `stream_cut` if the pages are
 * inconsistent; everything returned before that is complete. Pages by number are returned only once they have come
 * twice; for open ranges they are `incomplete` after the first.
 */
export function walkPages(walk: PageWalk): AsyncGenerator<Uint8Array, undefined> {
  switch (walk.pages.by) {
    case "none":
      return onlyPage(walk);
    case "offset":
      return byOffset(walk, walk.pages);
    case "number":
      return byNumber(walk, walk.pages);
    default:
      return byNext(walk);
  }
}

async function* onlyPage(walk: PageWalk): AsyncGenerator<Uint8Array, undefined> {
  await using page = await walk.open({});
  yield* rowsOf(page);
}

/** A page's rows. */
async function* rowsOf(page: OpenPage): AsyncGenerator<Uint8Array, undefined> {
  for await (const chunk of page.chunks()) {
    const rows = page.rows.push(chunk);
    if (rows.length > 0) yield rows;
  }
  const rest = page.rows.end();
  if (rest.length > 0) yield rest;
}

/** Cursors, addresses and links end with a page that names no next one, never with a short page. */
async function* byNext(walk: PageWalk): AsyncGenerator<Uint8Array, undefined> {
  const { pages, place } = walk;
  const cursors = new SeenOnce();
  const firsts = new SeenOnce();
  const alike = new AlikePages();
  const announced = new AnnouncedRows(walk);
  let got = 0;
  let empty = 0;
  let next: string | undefined;
  for (;;) {
    await using page = await (next === undefined
      ? walk.open({})
      : pages.by === "cursor"
        ? walk.open({ [pages.send]: next })
        : walk.openAddress(next));
    const watch = new PageWatch();
    let isNew = false;
    for await (const rows of rowsOf(page)) {
      watch.see(rows);
      if (!isNew && watch.first !== undefined) {
        isNew = true;
        if (!walk.hasTwins && firsts.isAgain(watch.first)) throw cut("the same page came twice", place);
      }
      yield rows;
    }
    if (walk.hasTwins && isPageAgain(watch, firsts, alike)) throw cut("the same page came twice", place);
    walk.onPageEnd?.(page.rows.rows);
    announced.see(toldOf(page));
    got += page.rows.rows;
    empty = page.rows.rows > 0 ? 0 : empty + 1;
    const told = toldBy(pages, toldOf(page), place);
    if (told.text === undefined) {
      if (next === undefined) await walk.onOnlyPage?.({ rows: page.rows.rows, isThere: told.isThere });
      return await announced.requireCame(got);
    }
    next = told.text;
    if (cursors.isAgain(next)) throw cut("a page's next page is one that came before", place);
    if (empty > mostEmptyPages)
      throw cut(`${empty} pages in a row were empty, and yet another follows`, place);
  }
}

/**
 * Each page begins one row early, and that row must be the last of the page before, so nothing is lost between them.
 *
 * This also works while rows are being added: none are removed, so a row inserted before the join shifts it, and one
 * after it has yet to be read. At the end the rows are those at the time of the last page. Only equal rows may hide a
 * shifted join; those of its time are then requested on their own, as in page-joins.ts.
 */
async function* byOffset(
  walk: PageWalk,
  pages: Extract<Pages, { by: "offset" }>,
): AsyncGenerator<Uint8Array, undefined> {
  const { place } = walk;
  const size = walk.size ?? usualSize;
  const announced = new AnnouncedRows(walk);
  let got = 0;
  let last: Uint8Array | undefined;
  let mark: string | undefined;
  for (;;) {
    const isJoined = last !== undefined;
    await using page = await walk.open({
      [pages.send]: isJoined ? got - 1 : 0,
      [pages.size]: isJoined ? Math.max(2, size) : size,
    });
    const watch = new PageWatch();
    let isToJoin = isJoined;
    const early: Uint8Array[] = [];
    for await (const rows of rowsOf(page)) {
      watch.see(rows);
      if (!isToJoin) {
        yield rows;
        continue;
      }
      early.push(rows);
      if (watch.first === undefined) continue;
      if (!isSameRow(watch.first, last!)) throw notJoined(place);
      const whole = early.length === 1 ? rows : Buffer.concat(early);
      const joined = watch.first.length + 1;
      if (whole.length > joined) yield whole.subarray(joined);
      isToJoin = false;
    }
    const { rows } = page.rows;
    announced.see(toldOf(page));
    if (isJoined && rows === 0) {
      throw cut("a page does not begin with the last row of the page before: it has none", place);
    }
    const fresh = isJoined ? rows - 1 : rows;
    got += fresh;
    walk.onPageEnd?.(fresh);
    if (fresh === 0) return await announced.requireCame(got);
    if (watch.mark === mark) throw cut("the same page came twice", place);
    mark = watch.mark;
    last = watch.last;
  }
}

/**
 * Page numbers do not show rows that moved between pages. So all pages must come twice, the second time with another
 * size, and have the same rows, perhaps with ties in another order. Until then nothing is returned, except a first page
 * that has everything. Pages end with as many rows as announced, because some gateways refuse a page after the last;
 * the second pass's last page is not full, so a total that is too low shows.
 *
 * While rows keep coming, two full passes would agree only by chance. So open ranges are not joined: a single answer
 * with all rows by its total is accepted, anything else is `incomplete`.
 */
async function* byNumber(
  walk: PageWalk,
  pages: Extract<Pages, { by: "number" }>,
): AsyncGenerator<Uint8Array, undefined> {
  const { place } = walk;
  const size = walk.size ?? usualSize;
  await using spool = await RowSpool.open();
  const sum = new RowSum(walk.isArrivalKept);
  const first: Pass = { most: 0, pages: 0, rows: 0, total: undefined };
  for await (const rows of takeRows(onePass(walk, pages, size, first), walk.wanted)) {
    sum.add(rows);
    await spool.add(rows);
  }
  const isOnePage = first.pages === 1 && first.rows >= (walk.wanted ?? Number.POSITIVE_INFINITY);
  // a gateway that caps pages would number them by the requested size and omit the same rows in each pass, if both
  // sizes were at or above its cap
  let other = first.most > 1 ? Math.floor((first.most * 2) / 3) : size === 1 ? 2 : 1;
  while (other > 2 && first.total !== undefined && first.total % BigInt(other) === 0n) other--;
  if (!walk.isClosed && !isOnePage && first.rows > 1) {
    await using page = await walk.open({ [pages.send]: pages.first, [pages.size]: other });
    for await (const _ of rowsOf(page));
    if (totalOf(pages, toldOf(page), place) !== BigInt(first.rows)) throw otherTotal(place);
  }
  if (walk.isClosed && !isOnePage) {
    const again = new RowSum(walk.isArrivalKept);
    const second: Pass = { most: 0, pages: 0, rows: 0, total: undefined };
    for await (const rows of takeRows(onePass(walk, pages, other, second), walk.wanted)) again.add(rows);
    if (again.take() !== sum.take() && !(await isSameByMeaning(walk, pages, other, spool)))
      throw cut("a second pass with another page size returned other rows", place);
  }
  yield* spool.forward();
}

/** Whether the stored rows come again in pages of this size; each answer may print a row differently. */
async function isSameByMeaning(
  walk: PageWalk,
  pages: Extract<Pages, { by: "number" }>,
  size: number,
  spool: RowSpool,
): Promise<boolean> {
  const [sum, again] = [0, 1].map(() => new RowSum(walk.isArrivalKept, rowMeaning));
  for await (const rows of spool.forward()) sum!.add(rows);
  const pass: Pass = { most: 0, pages: 0, rows: 0, total: undefined };
  for await (const rows of takeRows(onePass(walk, pages, size, pass), walk.wanted)) again!.add(rows);
  return sum!.take() === again!.take();
}

function isSameRow(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0 || rowMeaning(one) === rowMeaning(other);
}

/** What one pass through all pages showed. */
interface Pass {
  /** Rows of the largest page. */
  most: number;
  pages: number;
  rows: number;
  /** Total announced by its last page. */
  total: bigint | undefined;
}

async function* onePass(
  walk: PageWalk,
  pages: Extract<Pages, { by: "number" }>,
  size: number,
  pass: Pass,
): AsyncGenerator<Uint8Array, undefined> {
  const { place } = walk;
  const firsts = new SeenOnce();
  const alike = new AlikePages();
  const announced = new AnnouncedRows(walk);
  for (let number = 0; ; number++) {
    await using page = await walk.open({ [pages.send]: pages.first + number, [pages.size]: size });
    const watch = new PageWatch();
    pass.pages++;
    const before = pass.rows;
    let isNew = false;
    for await (const rows of rowsOf(page)) {
      watch.see(rows);
      if (!isNew && watch.first !== undefined) {
        isNew = true;
        if (!walk.hasTwins && firsts.isAgain(watch.first)) throw cut("the same page came twice", place);
      }
      pass.rows = before + page.rows.rows;
      yield rows;
    }
    const { rows } = page.rows;
    pass.rows = before + rows;
    pass.most = Math.max(pass.most, rows);
    if (walk.hasTwins && isPageAgain(watch, firsts, alike)) throw cut("the same page came twice", place);
    pass.total = announced.see(toldOf(page));
    if (rows === 0) return await announced.requireCame(pass.rows);
    if (pass.total === BigInt(pass.rows)) return;
    if (!walk.isClosed) throw notClosed(place);
  }
}

/** Whether all of a page came before; a page of equal rows may come as often as there are such rows. */
function isPageAgain({ first, last, mark }: PageWatch, seen: SeenOnce, alike: AlikePages): boolean {
  if (first === undefined || last === undefined) return false;
  if (Buffer.compare(first, last) === 0) return alike.isEndless(mark);
  return seen.isAgain(mark);
}

/** Consecutive pages of equal rows. Such rows may exist, but not that many. */
class AlikePages {
  #mark = "";
  #pages = 0;

  isEndless(mark: string): boolean {
    this.#pages = mark === this.#mark ? this.#pages + 1 : 1;
    this.#mark = mark;
    return this.#pages > mostAlikePages;
  }
}

function otherTotal(place: ErrorPlace): RunvaultError {
  return cut("the total differs between pages", place);
}

function notClosed(place: ErrorPlace): RunvaultError {
  return new RunvaultError(
    "incomplete",
    "the gateway numbers its pages, and rows that are still being added could shift them",
    {
      place,
      hint: "Request rows only up to a time that has passed; for a run that has ended, set `final` in the request.",
    },
  );
}

function notJoined(place: ErrorPlace): RunvaultError {
  return cut("a page does not begin with the last row of the page before: rows moved meanwhile", place);
}

function cut(what: string, place: ErrorPlace): RunvaultError {
  return new RunvaultError("stream_cut", `the pages of rows are inconsistent: ${what}`, { place });
}
