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

/** Shows of each end that a pass over a table left open that no cap made it. Throws as `showWholeEnd` does. */
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
 * Shows that no cap cut a table's last timestamp short, and gives what shows it: larger answers, or pages that end behind the
 * same rows; undefined where an answer held it with others ahead, and no cap was met. To be asked once all tables have been read, for larger answers may be theirs. Throws `timestamp_capped` where more rows turn up, `unverified` where nothing tells.
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
  // a single row hides others only where each answer has but one
  if (end.rows === 1 && !seen.isCapped) return grounds.singleRow;
  const route = routeOf(asks.source, asks.table);
  const pages = await pagesOf(asks, end, mostBytes, false);
  const paged = pages === undefined ? undefined : linesOf(pages);
  if (pages !== undefined && route.numbers !== "given" && !(await isSameAsked(asks, end, pages)))
    throw cutShort(end);
  if (paged?.length === end.rows) return grounds.pages;
  if (paged !== undefined && paged.length > end.rows) throw cutShort(end);
  if (await anyUnseen(asks, end)) throw cutShort(end);
  // joined pages end where the gateway says so, and no earlier
  if (route.pages !== "none") return grounds.endedPages;
  throw mayBeCut(end, false);
}

/** The same for a table whose answers stopped short. */
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
      `nothing proves that the table has no more than ${countText(rows, "row")}: it cannot be asked for up to an instant, and ${why}`,
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
 * True when a filter brings a row that the answer did not. A cap takes the last rows away, so the last row's value is the
 * one to ask for: one request a filter at most. Parts that come to the same rows prove nothing: rows of a value that
 * never showed stay unseen.
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

/** True where an answer brings the same rows as some pages do, line by line. */
async function isSameAsked(asks: TableAsks, end: OpenEnd, pages: Buffer): Promise<boolean> {
  const rows = await rowsWithin(asks, end);
  return rows === undefined || isSameBag(bagOfRows(rows), bagOfText(pages));
}

function cutShort({ rows, from, isAll }: OpenEnd): RunvaultError {
  const where = isAll ? "" : ` at ts_event ${from} (${formatTime(from)})`;
  return new RunvaultError(
    "timestamp_capped",
    `the gateway gives ${countText(rows, "row")}${where}, but others when asked in another way`,
    { hint: "Raise the gateway's cap on rows per answer, or have it serve storage facts." },
  );
}
