import type { ScanRecord } from "../../archive/write/journal.ts";
import { RunvaultError } from "../../model/error.ts";
import { countText } from "../../model/text/plural.ts";
import { formatTime } from "../../model/time.ts";
import type { OpenEnd } from "../fetch/slice.ts";
import { bagOfRows, bagOfText, isSameBag, isWithinBag } from "../plan/line-bag.ts";
import { routeOf } from "../plan/route.ts";
import { linesOf, pagesOf, rowsWithin, type TableAsks } from "../plan/table-asks.ts";
import { grounds } from "./grounds.ts";
import type { SeenSource } from "./seen-source.ts";
import { MoreRows, showUncut } from "./uncut-end.ts";

/** Shows that no cap caused any of the ends that a pass over a table left open. Throws as `showWholeEnd` does. */
export async function showWholeEnds(
  asks: TableAsks,
  openEnds: ScanRecord["openEnds"],
  mostBytes: number,
  seen: SeenSource,
): Promise<string[]> {
  const shown: (string | undefined)[] = [];
  for (const { from, to, ahead, ...end } of openEnds) {
    const group = { ...end, from: BigInt(from), to: BigInt(to), ahead: ahead.map(BigInt) };
    shown.push(await showWholeEnd(asks, group, mostBytes, seen));
  }
  return shown.filter((ground) => ground !== undefined);
}

/**
 * Shows that no cap cut a table's last timestamp short, and returns the ground: larger answers, or pages that end after
 * the same rows; undefined if an answer had rows before it and no cap was seen. Call it after all tables have been
 * read, because theirs may be the larger answers. Throws `timestamp_capped` if more rows turn up, `unverified` if
 * nothing shows it.
 */
export async function showWholeEnd(
  asks: TableAsks,
  end: OpenEnd,
  mostBytes: number,
  seen: SeenSource,
): Promise<string | undefined> {
  const { rows, bytes } = end;
  if (seen.isRouteCapped(asks.table.name)) return await showUncutEnd(asks, end, mostBytes, seen);
  if (end.isHeld) return undefined;
  if (seen.gaveMoreThan(asks.table.name, rows, bytes)) return grounds.largerAnswers;
  if (seen.onceGaveMoreThan(rows, bytes)) return grounds.largerAnswers;
  // a single row can hide others only if every answer has just one
  if (end.rows === 1 && !seen.isCapped) return grounds.singleRow;
  const route = routeOf(asks.source, asks.table);
  const pages = await pagesOf(asks, end, mostBytes, false);
  const paged = pages === undefined ? undefined : linesOf(pages);
  if (pages !== undefined && route.numbers !== "given" && !(await isSameAsked(asks, end, pages)))
    throw cutShort(end);
  if (paged?.length === end.rows) return grounds.pages;
  if (paged !== undefined && paged.length > end.rows) throw cutShort(end);
  if (await anyUnseen(asks, end)) throw cutShort(end);
  // joined pages end only where the gateway says so
  if (route.pages !== "none") return grounds.endedPages;
  throw mayBeCut(end, false);
}

/** The same for a table whose answers have stopped short. */
async function showUncutEnd(
  asks: TableAsks,
  end: OpenEnd,
  mostBytes: number,
  seen: SeenSource,
): Promise<string> {
  const shown = await showUncut({ asks, end, mostBytes, seen }).catch((error: unknown) => {
    throw error instanceof MoreRows ? cutShort(end) : error;
  });
  if (shown !== undefined) return shown;
  if (await anyUnseen(asks, end)) throw cutShort(end);
  throw mayBeCut(end, true);
}

function mayBeCut(end: OpenEnd, isCapped: boolean): RunvaultError {
  const { rows } = end;
  const why = isCapped
    ? "answers of this table stop short, and nothing shows that this one did not"
    : "no other answer was larger, so a cap may have ended this one";
  if (end.isAll) {
    return new RunvaultError(
      "unverified",
      `nothing proves that the table has no more than ${countText(rows, "row")}: it cannot be requested up to an instant, and ${why}`,
      {
        hint: "Have the gateway serve storage facts, both time bounds or pages for it, and describe them in the profile; or archive the run together with others that have larger tables.",
      },
    );
  }
  return new RunvaultError(
    "unverified",
    `nothing proves that ts_event ${end.from} (${formatTime(end.from)}) has no more than ${countText(rows, "row")}: ${why}`,
    {
      hint: isCapped
        ? "Raise the gateway's cap on answers, or have it serve storage facts."
        : "Archive the run together with others that have larger tables, for example with INSTANCE --finished.",
    },
  );
}

/**
 * True if a filter returns a row that the answer lacked. A cap takes the last rows away, so the last row's value is the
 * one to request: at most one request per filter. Parts that add up to the same rows prove nothing: rows with a value
 * that has not appeared stay unseen.
 */
async function anyUnseen(asks: TableAsks, end: OpenEnd): Promise<boolean> {
  const rows = (await rowsWithin(asks, end)) ?? [];
  const { filters, numbers } = routeOf(asks.source, asks.table);
  const seqs = new Set(rows.map((row) => row?.seq));
  const lines = numbers === "given" ? undefined : bagOfRows(rows);
  for (const filter of filters) {
    const value = rows.at(-1)?.[filter] ?? "";
    if (value === "" || rows.every((row) => row?.[filter] === value)) continue;
    const part = await rowsWithin(asks, end, { [filter]: value });
    const isUnseen =
      lines === undefined
        ? part?.some((row) => row !== undefined && !seqs.has(row.seq))
        : part !== undefined && !isWithinBag(bagOfRows(part), lines);
    if (isUnseen) return true;
  }
  return false;
}

/** True if an answer has the same rows as the pages, line by line. */
async function isSameAsked(asks: TableAsks, end: OpenEnd, pages: Buffer): Promise<boolean> {
  const rows = await rowsWithin(asks, end);
  return rows === undefined || isSameBag(bagOfRows(rows), bagOfText(pages));
}

function cutShort({ rows, from, isAll }: OpenEnd): RunvaultError {
  const where = isAll ? "" : ` at ts_event ${from} (${formatTime(from)})`;
  return new RunvaultError(
    "timestamp_capped",
    `the gateway returns ${countText(rows, "row")}${where}, but different ones when asked in another way`,
    { hint: "Raise the gateway's cap on rows per answer, or have it serve storage facts." },
  );
}
