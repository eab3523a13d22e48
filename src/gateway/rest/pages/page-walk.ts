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

/** One page under way. Disposing it gives the rest up. */
export interface OpenPage extends AsyncDisposable {
  readonly headers: AnswerHeaders;
  readonly rows: PageRows;
  /** The answer's bytes. */
  chunks(): AsyncGenerator<Uint8Array, undefined>;
}

/** How the pages of one answer are asked for. */
export interface PageWalk extends Announcement {
  /** Rows to ask for in a page; undefined where the request says nothing of it. */
  readonly size: number | undefined;
  /** No row is to come any more into what is asked for: its end has passed, or the run's. */
  readonly isClosed: boolean;
  /** Rows may be equal, since no number tells them apart: then only whole pages that differ in themselves are told apart. */
  readonly hasTwins: boolean;
  /** Whether rows that come in another order are others: that of their arrival is kept. */
  readonly isArrivalKept: boolean;
  /** Told of each page that ended, with the rows that were handed out of it. */
  readonly onPageEnd?: ((rows: number) => void) | undefined;
  /** The same request with the parameters of a page. */
  open(more: Readonly<Record<string, string | number>>): Promise<OpenPage>;
  /** The page at an address that a page named. */
  openAddress(address: string): Promise<OpenPage>;
  /** Called at the end of pages that name the next one, where the first was the last: whether anything stood there. */
  readonly onOnlyPage?:
    | ((told: { readonly rows: number; readonly isThere: boolean }) => Promise<void>)
    | undefined;
}

/** What a page says beside its rows, once it has ended. */
export function toldOf({ headers, rows }: OpenPage): PageTold {
  return { headers, value: (index) => rows.value(index) };
}

/** Pages without a row that may follow each other: a gateway may look through a stretch and find nothing in it. */
const mostEmptyPages = 16;
/** Pages that are the same and hold equal rows alone that may follow each other: a gateway may give its last page forever. */
const mostAlikePages = 200;
/** Rows of a page where neither the profile nor the request says how many. */
export const usualSize = 1000;

/**
 * The rows of all pages, one a line, in the order in which they came.
 *
 * Throws `rows_missing` where fewer came than the pages announce, and nobody else judges that.
 * Throws `stream_cut` where the pages stop making sense: what was handed out is whole up to there. Pages by number are
 * handed out once they have come twice, so that nothing is; of what is not closed they are `incomplete` behind the first.
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

/** Cursors, addresses and links: the end is a page that names no next one, and never a short one. */
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
        if (!walk.hasTwins && firsts.isAgain(watch.first)) throw cut("a page came a second time", place);
      }
      yield rows;
    }
    if (walk.hasTwins && isPageAgain(watch, firsts, alike)) throw cut("a page came a second time", place);
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
    if (cursors.isAgain(next)) throw cut("a page names a next one that came before", place);
    if (empty > mostEmptyPages) throw cut(`${empty} pages in a row were empty, and there is another`, place);
  }
}

/**
 * Each page begins one row early, and that row has to be the last of the page before: nothing came between them.
 *
 * This holds whether or not more rows are to come. Rows are added and not taken away, so a row that comes in ahead of the
 * join moves it, and one that comes in behind it is still to be read: at the end there is what the gateway had at the last
 * page. Only where rows are equal may a join move and look the same; those of its time are then asked for by themselves,
 * as is done in page-joins.ts.
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
    if (watch.mark === mark) throw cut("a page came a second time", place);
    mark = watch.mark;
    last = watch.last;
  }
}

/**
 * Pages by number say nothing of what moved between them: all of them have to come a second time, cut elsewhere, with the
 * same rows, whose ties may come in another order. Until then none of them is handed out but a first page that is all that
 * was asked for. They end with as many rows as they announce, for some refuse a page behind the last; then the last page
 * of the second pass is not a full one, so that a total that is too low shows.
 *
 * Where rows keep coming, two passes over all of it would agree by chance alone. So what is not closed is not joined: one
 * answer is all of it by its total, which a smaller page has as well, or it is `incomplete`.
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
  // a gateway that gives fewer rows than it is asked for would count pages by those it was asked for, and leave out
  // the same rows each time, were it asked for as many as it gives or more
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
      throw cut("in pages of another size other rows came", place);
  }
  yield* spool.forward();
}

/** Whether what is put aside comes once more, in pages of this size, where each answer may print a row otherwise. */
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

/** What one way through all pages showed. */
interface Pass {
  /** Rows of the largest page. */
  most: number;
  pages: number;
  rows: number;
  /** Rows that its last page announced. */
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
        if (!walk.hasTwins && firsts.isAgain(watch.first)) throw cut("a page came a second time", place);
      }
      pass.rows = before + page.rows.rows;
      yield rows;
    }
    const { rows } = page.rows;
    pass.rows = before + rows;
    pass.most = Math.max(pass.most, rows);
    if (walk.hasTwins && isPageAgain(watch, firsts, alike)) throw cut("a page came a second time", place);
    pass.total = announced.see(toldOf(page));
    if (rows === 0) return await announced.requireCame(pass.rows);
    if (pass.total === BigInt(pass.rows)) return;
    if (!walk.isClosed) throw notClosed(place);
  }
}

/** Whether all of a page came before; one of equal rows alone may come as often as there are such rows. */
function isPageAgain({ first, last, mark }: PageWatch, seen: SeenOnce, alike: AlikePages): boolean {
  if (first === undefined || last === undefined) return false;
  if (Buffer.compare(first, last) === 0) return alike.isEndless(mark);
  return seen.isAgain(mark);
}

/** Pages of equal rows alone that follow each other. Such rows may be there; no gateway has so many of them. */
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
  return cut("the total is another on each page", place);
}

function notClosed(place: ErrorPlace): RunvaultError {
  return new RunvaultError(
    "incomplete",
    "rows come in pages by number, which move when rows come, and more are to come into what is asked for",
    {
      place,
      hint: "Ask up to an instant that has passed; of a run that has ended, the request says so by `final`.",
    },
  );
}

function notJoined(place: ErrorPlace): RunvaultError {
  return cut("a page does not begin with the last row of the page before: rows moved meanwhile", place);
}

function cut(what: string, place: ErrorPlace): RunvaultError {
  return new RunvaultError("stream_cut", `the pages of rows make no sense: ${what}`, { place });
}
