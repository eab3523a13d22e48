import { RunvaultError } from "../../model/error.ts";
import type { OpenEnd } from "../fetch/slice.ts";
import { bagOfRows, bagOfText, isSameBag, isWithinBag } from "../plan/line-bag.ts";
import { listedFilters } from "../plan/listed-filters.ts";
import { routeOf } from "../plan/route.ts";
import {
  type AnswerWithin,
  answerWithin,
  type Filters,
  type GroupRow,
  isRefusal,
  leastLimit,
  linesOf,
  pagesOf,
  probe,
  type TableAsks,
} from "../plan/table-asks.ts";
import { grounds } from "./grounds.ts";
import type { SeenSource } from "./seen-source.ts";

/** The last timestamp of a table whose route stops short, and how to request it. */
interface CutRoute {
  readonly asks: TableAsks;
  readonly end: OpenEnd;
  readonly mostBytes: number;
  readonly seen: SeenSource;
}

/** Thrown if more rows turn up than the end is known to have. */
export class MoreRows extends Error {}

/**
 * The ground that an answer ending with the table's last timestamp is complete, although answers of its route stop
 * short: at a number of rows, of bytes as text or on the wire, or after some time. Undefined if there is none. Throws
 * `MoreRows`.
 */
export async function showUncut(route: CutRoute): Promise<string | undefined> {
  const { asks, end } = route;
  const own = await askEnd(route, end);
  if (own !== undefined) {
    const shown = await shownByAnswers(route, end, own, undefined);
    if (shown !== undefined) return shown;
  }
  if (await isShownByPages(route, own)) return grounds.pages;
  // if a table comes whole, its parts do, too
  if (own === undefined || end.isAll || routeOf(asks.source, asks.table).numbers === "arrival")
    return undefined;
  return (await isShownByParts(route, own)) ? grounds.parts : undefined;
}

/** The ground, from answers alone, that the end's rows, or those with some value of a filter, are not cut. */
async function shownByAnswers(
  route: CutRoute,
  end: OpenEnd,
  own: AnswerWithin,
  filters: Filters | undefined,
): Promise<string | undefined> {
  const { asks, seen } = route;
  const longest = Math.max(seen.longestLineOf(asks.table.name), longestOf(own.rows));
  if (seen.hadRoomFor(asks.table.name, own.size, longest) && (await isInTime(route, end, own, filters)))
    return grounds.largerAnswers;
  return (await isHeldWithMore(route, end, own, longest, filters)) ? grounds.heldWithMore : undefined;
}

/** The end's rows, requested again; undefined if they differ from those known. */
async function askEnd(
  { asks }: CutRoute,
  end: OpenEnd,
  filters?: Filters,
): Promise<AnswerWithin | undefined> {
  const own = await answerWithin(asks, end, filters, limitFor(end.rows));
  if (own === undefined || end.isAll) return own;
  if (own.rows.length > end.rows) throw new MoreRows();
  return own.rows.length === end.rows ? own : undefined;
}

/** Some gateways return more if more is requested; fetching uses the same limit. */
const limitFor = (rows: number) => Math.max(leastLimit, rows * 4);

/** No gateway's time limit is shorter than this. */
const leastCapMs = 20;

/**
 * True if a time limit did not end the answer: it took clearly less than any that stopped short, or hardly longer than
 * a single row. Requests up to three times, because a busy machine may delay either.
 */
async function isInTime(
  { asks, seen }: CutRoute,
  end: OpenEnd,
  own: AnswerWithin,
  filters: Filters | undefined,
): Promise<boolean> {
  const cutMs = seen.cutMsOf(asks.table.name);
  let { ms } = own;
  for (let left = 3; ms !== undefined && ms * 1.2 + 5 > cutMs; left--) {
    if (left === 0) return false;
    const begin = performance.now();
    await probe(asks, end);
    const middle = performance.now();
    const again = await answerWithin(asks, end, filters, limitFor(end.rows));
    if (again?.rows.length !== own.rows.length) return false;
    if (performance.now() - middle - (middle - begin) < leastCapMs) return true;
    ms = again.ms;
  }
  return true;
}

/**
 * True if an answer has the whole end with so much before it that without that a cap would have left room for another
 * row: two rows, and a quarter more than the longest row, as text and on the wire.
 */
async function isHeldWithMore(
  { asks, seen }: CutRoute,
  end: OpenEnd,
  own: AnswerWithin,
  longest: number,
  filters: Filters | undefined,
): Promise<boolean> {
  const { bytes, wireBytes } = own.size;
  const isGiven = routeOf(asks.source, asks.table).numbers === "given";
  for (const from of end.ahead) {
    const answer = await answerWithin(asks, { from, to: end.to }, filters, limitFor(end.rows));
    if (answer === undefined) return false;
    const last = answer.rows.filter((row) => row === undefined || row.ts_event >= end.from);
    if (last.length > own.rows.length) throw new MoreRows();
    if (last.length < own.rows.length) {
      seen.foundCap(asks.table.name, answer.ms);
      return false;
    }
    if (!isGiven && !isSameBag(bagOfRows(last), bagOfRows(own.rows))) return false;
    const ahead = {
      rows: answer.rows.length - last.length,
      bytes: answer.size.bytes - bytes,
      wireBytes: answer.size.wireBytes - wireBytes,
    };
    const least = 1.25 * longest;
    if (ahead.rows >= 2 && ahead.bytes >= least && ahead.wireBytes >= (least * wireBytes) / bytes)
      return true;
  }
  return false;
}

/** True if pages of at most half as many rows have the same rows, and the gateway says that no other page follows. */
async function isShownByPages(
  { asks, end, mostBytes }: CutRoute,
  own: AnswerWithin | undefined,
): Promise<boolean> {
  const most = Math.floor(end.rows / 2);
  const pages = await pagesOf(asks, end, mostBytes, false, Math.max(1, most)).catch((error: unknown) => {
    // a page with more rows than were requested
    if (isRefusal(error) || (error instanceof RunvaultError && error.code === "refused")) return undefined;
    throw error;
  });
  if (pages === undefined) return false;
  const rows = linesOf(pages).length;
  if (rows > end.rows) throw new MoreRows();
  if (most === 0 || rows < end.rows) return false;
  return (
    routeOf(asks.source, asks.table).numbers === "given" ||
    (own !== undefined && isSameBag(bagOfRows(own.rows), bagOfText(pages)))
  );
}

/** The most values of a filter, each of which takes a request. */
const mostParts = 200;

/**
 * True if a filter splits the rows, a list names all its values, and the answers show that no part is cut. Parts that
 * only add up to the same rows show nothing: the rows cut off may all have a value that never came.
 */
async function isShownByParts(route: CutRoute, own: AnswerWithin): Promise<boolean> {
  const { asks, end } = route;
  const listed = await listedFilters(asks);
  const known = bagOfRows(own.rows);
  for (const filter of routeOf(asks.source, asks.table).filters) {
    const values = new Set(listed.map((entry) => entry[filter] ?? ""));
    if (values.size < 2 || values.size > mostParts || values.has("")) continue;
    if (!own.rows.every((row) => values.has(row?.[filter] ?? ""))) continue;
    let rows = 0;
    for (const value of values) {
      const filters = { [filter]: value };
      const part = await answerWithin(asks, end, filters, limitFor(end.rows));
      if (part === undefined || !part.rows.every((row) => row?.[filter] === value)) break;
      if (!isWithinBag(bagOfRows(part.rows), known)) throw new MoreRows();
      const isShown =
        part.rows.length === 0 ||
        (await shownByAnswers(route, { ...end, rows: part.rows.length }, part, filters)) !== undefined;
      if (!isShown) break;
      rows += part.rows.length;
    }
    if (rows === end.rows) return true;
  }
  return false;
}

function longestOf(rows: readonly (GroupRow | undefined)[]): number {
  return rows.reduce((longest, row) => Math.max(longest, row?.line.byteLength ?? 0), 0);
}
