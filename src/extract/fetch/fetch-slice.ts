import { RunvaultError } from "../../model/error.ts";
import type { FilterName, Table } from "../../model/profile/table.ts";
import { rowsMissing } from "../../model/rows-missing.ts";
import { countText } from "../../model/text/plural.ts";
import type { Nanoseconds } from "../../model/time.ts";
import { earlierOf, formatTime, int64Max, int64Min } from "../../model/time.ts";
import { OutsideBounds, outsideWindow } from "../plan/coarse-bounds.ts";
import type { Window } from "../plan/held-window.ts";
import { bagOfRows, bagOfText, isSameBag, isWithinBag, type LineBag } from "../plan/line-bag.ts";
import { listedFilters } from "../plan/listed-filters.ts";
import { behindStep, routeOf, type SeqNumbers } from "../plan/route.ts";
import { type Came, rowKey } from "../plan/row-key.ts";
import {
  askSmall,
  eachLine,
  type GroupRow,
  leastLimit,
  linesOf,
  mostAnswerLines,
  pagesOf,
  probe,
  rowsOf,
  rowsWithin,
  type TableAsks,
  timeOf,
  whyOutside,
} from "../plan/table-asks.ts";
import type { SeenSource } from "../proof/seen-source.ts";
import { AnswerReader } from "./answer-reader.ts";
import { type Cut, OutOfOrder, SegmentBuilder } from "./segment-builder.ts";
import type { FetchedSegment, OpenEnd, Slice, SliceEvent, SliceWork } from "./slice.ts";

/**
 * Fetches a whole slice. One rule covers caps, cuts and retries: if an answer ended early, or may have, the rows that
 * share its last ts_event are dropped and requested again from exactly that timestamp. So segments are disjoint, and
 * no two answers are ever merged.
 *
 * A caller that takes the next segment before writing the current one keeps the network busy, but buffers that are not
 * released hold it up. A caller that stops early ends the current answer.
 *
 * If fewer rows came than an answer announced, continuing after the last one does not help, because the missing ones
 * come before it: the slice is requested again from its beginning, once, and is then `rows_missing`. It is also
 * requested again, a few times, if rows that came have since gone with all before them: the gateway drops its oldest.
 *
 * Throws what the source throws once all attempts are used up, `timestamp_capped` if one timestamp has more rows than
 * the gateway returns in any way, `row_order` if unsorted rows cannot be proven complete, and `RowsAround`.
 */
export async function* segmentsOf(slice: Slice, work: SliceWork): AsyncGenerator<SliceEvent, void> {
  try {
    for (let restarts = 0; ; restarts++) {
      try {
        return yield* segmentsOnce(slice, work);
      } catch (error) {
        if (!(await isToRestart(error, restarts, slice, work)))
          throw error instanceof GroupGone ? vanished(slice, error.ts) : error;
        yield { kind: "restart" };
      }
    }
  } catch (error) {
    throw place(await withCause(error, slice, work), slice);
  }
}

async function isToRestart(
  error: unknown,
  restarts: number,
  slice: Slice,
  work: SliceWork,
): Promise<boolean> {
  if (error instanceof RunvaultError && error.code === "rows_missing") return restarts === 0;
  if (!(error instanceof GroupGone) || restarts === mostBeginnings) return false;
  return (await probe(asksOf(slice, work), { from: slice.from, to: error.ts + 1n })) === undefined;
}

async function* segmentsOnce(slice: Slice, work: SliceWork): AsyncGenerator<SliceEvent, void> {
  try {
    yield* sortedSegments(slice, work);
  } catch (error) {
    if (!(error instanceof OutOfOrder)) throw error;
    yield { kind: "restart" };
    try {
      yield* unsortedSegments({ ...slice, around: undefined }, work);
    } catch (thrown) {
      // rows from before the requested window are outside of it, not out of order
      const isOrder = thrown instanceof RunvaultError && thrown.code === "row_order";
      throw isOrder && error.cause instanceof RunvaultError ? error.cause : thrown;
    }
  }
}

/** Adds to an error about a row outside of bounds why the gateway returned it. */
async function withCause(error: unknown, slice: Slice, work: SliceWork): Promise<unknown> {
  if (!(error instanceof RunvaultError) || !(error.cause instanceof OutsideBounds)) return error;
  return outsideWindow(error.cause, await whyOutside(asksOf(slice, work), error.cause));
}

/** How often a gateway may drop its oldest rows while one slice is fetched. */
const mostBeginnings = 5;

/** Thrown if rows of an instant came once but are gone when requested again. */
class GroupGone extends Error {
  readonly ts: Nanoseconds;
  constructor(ts: Nanoseconds) {
    super();
    this.ts = ts;
  }
}

/** Thrown if there are rows around a slice that belong to another slice, or to none that is known. */
export class RowsAround extends Error {}

async function* sortedSegments(slice: Slice, work: SliceWork): AsyncGenerator<SliceEvent, void> {
  const isAround = slice.around !== undefined;
  const text = gather(slice, work, false);
  let answers = 0;
  let size = 0;
  const cuts = sortedCuts(slice, work, text, () => answers++);
  let { from } = slice;
  try {
    for (;;) {
      const step = await cuts.next();
      if (step.done === true) {
        const { isRowFirst } = text.answer;
        const isAlone = isAround && isRowFirst && answers === 1 && text.totalRows === slice.expected;
        const { totalRows: rows, seen } = text;
        yield { kind: "end", rows, bytes: size, openEnd: step.value, isAlone, seen };
        return;
      }
      const { next, text: bytes, release } = step.value;
      if (isAround && !isWithin(slice, from === slice.from ? bytes : undefined, next ?? text.lastTs)) {
        // evidence that they exist, even if the slice is fetched without them
        const came = cameIn(slice.table, routeOf(work.source, slice.table).numbers, bytes);
        if (came !== undefined) work.onLost?.(slice.table.name, came);
        if (next !== undefined) work.onLost?.(slice.table.name, { from: next, to: next + 1n, rows: 1 });
        release();
        throw new RowsAround();
      }
      size += bytes.byteLength;
      const to = next ?? slice.to;
      yield segmentOf(slice, step.value, { from, to }, true);
      from = to;
    }
  } finally {
    await cuts.return(null);
    text.discard();
  }
}

/** Yields the slice in cuts; returns where it may be incomplete. */
async function* sortedCuts(
  slice: Slice,
  work: SliceWork,
  text: SegmentBuilder,
  onAnswer: () => void,
): AsyncGenerator<Cut, OpenEnd | null> {
  const { expected, table } = slice;
  const { from, to } = slice.around ?? slice;
  const { seen } = work;
  const route = routeOf(work.source, table);
  const { numbers, bounds, takesLimit } = route;
  const asker = new AnswerReader(slice, work);
  const asks = asksOf(slice, work);
  /** The last group of a complete answer: dropped and requested again. */
  let held: HeldGroup | undefined;
  let openEnd: OpenEnd | null = null;
  let ask = from;
  let limit: number | undefined;
  /** The first row's time. */
  let begin: Nanoseconds | undefined;
  /** Compares an answer with the requested group; true if the answer also has later groups. */
  const hasSeveral = (ended: boolean): boolean => {
    const { rows, first, firstRows, firstKeys } = text.answer;
    const several = rows > firstRows;
    if (held !== undefined && (ended || several)) {
      const isOther = firstRows === held.rows && firstKeys !== held.keys;
      if (first !== held.ts || firstRows < held.rows || isOther) {
        const ahead = numbers === "given" ? text.totalRows - rows : 0;
        // if the slice starts over without them, record that they came, with all rows before them
        const { came } = held;
        if (ahead > 0 && begin !== undefined)
          work.onLost?.(table.name, { from: begin, to: came.to, rows: ahead + held.rows });
        work.onLost?.(table.name, came);
        throw new GroupGone(held.ts);
      }
    }
    // the previous answer left out rows that this one has
    if (held !== undefined && !held.isLimited && (several || firstRows > held.rows))
      seen.foundCap(table.name, held.ms);
    return several;
  };
  let furthest: Nanoseconds | undefined;
  const progressed = () => {
    const reached = text.lastTs;
    if (reached === undefined || (furthest !== undefined && reached <= furthest)) return false;
    furthest = reached;
    return true;
  };
  // whole groups of a truncated answer are kept; the last one is requested again
  const goOn = () => {
    const several = hasSeveral(false);
    ask = text.dropLastGroup()?.ts ?? ask;
    if (several) held = undefined;
  };
  let firstAnswer: { readonly rows: number; readonly bytes: number } | undefined;
  for (;;) {
    yield* asker.ask((attempt) => {
      if (attempt > 1) goOn();
      onAnswer();
      return asker.answer(text, ask, limit);
    }, progressed);
    const several = hasSeveral(true);
    const { rows, first, leftOut, doubled } = text.answer;
    firstAnswer ??= { rows: rows + leftOut, bytes: asker.received };
    begin ??= first;
    if (expected !== undefined && text.totalRows === expected) break;
    // no rows, or rows beyond the window
    if (rows === 0 || text.isPast) break;
    const last = text.lastTs;
    // an answer without a single row counts as beginning where it was requested, after every row
    if (last === undefined || first === undefined || last < first) throw withoutTimes(rows);
    // requesting again would return the same answer
    if (!bounds.from && work.countRows === undefined) break;
    if (several || held === undefined || rows > held.rows) {
      // several groups, a new group, or more of it than before: request it again to see what follows
      const isLimited = limit !== undefined && rows + doubled >= leastLimit;
      const group = text.lastGroup();
      const lines = numbers === "given" ? undefined : bagOfText(group);
      const isTorn =
        !several && held?.lines !== undefined && (held.isTorn || !isWithinBag(held.lines, lines!));
      const dropped = text.dropLastGroup()!;
      const came = cameIn(table, numbers, group) ?? { from: dropped.ts, to: dropped.ts + 1n, rows: 0 };
      held = { ...dropped, came, answerRows: rows, ms: asker.ms, isLimited, lines, isTorn };
      ask = held.ts;
      // a raised limit stays: with a lower one the group may come incomplete
      if (!several && takesLimit) limit = Math.max(leastLimit, rows * 4);
      continue;
    }
    const isOther =
      held.isTorn || (held.lines !== undefined && !isSameBag(held.lines, bagOfText(text.lastGroup())));
    // a single group, with the same rows as before, or as many different ones
    const group = { from: held.ts, to: earlierOf(behindStep(route, last), to), rows };
    const wanted = await work.countRows?.(group.from, group.to);
    if (wanted !== undefined && wanted <= rows && isOther) throw otherRows(group);
    if (wanted === undefined) {
      if (!isOther && !(await anyFrom(slice, work, group.to))) {
        const bytes = text.lastGroup().byteLength;
        const ahead = text.before.steps.filter((ts) => ts < group.from);
        const isHeld = held.answerRows > rows || (await isWholeBehind(asks, text, group, seen));
        const isPaged =
          !isHeld &&
          rows > 1 &&
          // if larger answers came in this command, the end stays open, as a cap may still show
          !seen.gaveMoreThan(table.name, rows, bytes) &&
          (yield* appendPaged(slice, work, text, group, undefined));
        if (!isPaged) openEnd = { ...group, bytes, isHeld, ahead };
        break;
      }
      seen.foundCap(table.name, asker.ms);
      if (!(yield* appendPaged(slice, work, text, group, undefined))) throw tooFew(group, undefined, true);
    } else if (wanted > rows) {
      yield* appendSplit(slice, work, text, group, wanted);
    } else {
      // uncounted lines that are not rows belong after the group, and come again from there
      text.dropTail(rows - wanted);
    }
    if (group.to >= to) break;
    held = undefined;
    limit = undefined;
    ask = group.to;
  }
  // rows after the slice's end may be the rest of an answer that was capped or truncated
  const { announced = 0n } = asker;
  if (announced > text.totalRows) throw rowsMissing(announced, text.totalRows, placeOf(slice));
  yield* text.finish();
  // rows found after an answer show that a cap takes the last ones; without them, and without `to`, it may have taken
  // the first: only the answer's size can tell
  const keepsFirst = bounds.to || (bounds.from && seen.isRouteCapped(table.name));
  if (work.countRows !== undefined || keepsFirst || firstAnswer!.rows === 0) return openEnd;
  return { from, to, ...firstAnswer!, isHeld: false, ahead: [], isAll: true };
}

/**
 * True if an answer from the timestamp before the group on has the whole group and more. An answer with
 * less of the group than is known was capped.
 */
async function isWholeBehind(
  asks: TableAsks,
  text: SegmentBuilder,
  group: Group,
  seen: SeenSource,
): Promise<boolean> {
  const before = text.before.newest;
  if (before === undefined) return false;
  const rows = await rowsWithin(asks, { from: before, to: group.to });
  if (rows === undefined) return false;
  const own = rows.filter((row) => row === undefined || row.ts_event >= group.from);
  if (own.length < group.rows) seen.foundCap(asks.table.name);
  if (own.length !== group.rows || rows.length === own.length) return false;
  if (routeOf(asks.source, asks.table).numbers === "given") return true;
  // for lines that are not rows there are no bytes to compare
  return own.every((row) => row !== undefined) && isSameBag(bagOfRows(own), bagOfText(text.lastGroup()));
}

/** The last group of an answer, which is requested again. */
interface HeldGroup {
  readonly ts: Nanoseconds;
  readonly rows: number;
  /** A hash of its rows' seqs. */
  readonly keys: number;
  readonly came: Came;
  readonly answerRows: number;
  /** How long the answer took to arrive. */
  readonly ms: number | undefined;
  readonly isLimited: boolean;
  /** Its lines, if rows have no seq that identifies them. */
  readonly lines: LineBag | undefined;
  /** An earlier answer had rows that a larger one lacked. */
  readonly isTorn: boolean;
}

/** The rows in a text; undefined if no line has a time. */
function cameIn(table: Table, numbers: SeqNumbers, text: Buffer): Came | undefined {
  const lines = linesOf(text);
  const isTimed = (line: Buffer) => timeOf(line.toString("utf8")) !== null;
  const [first, last] = [lines.find(isTimed)?.toString("utf8"), lines.findLast(isTimed)?.toString("utf8")];
  if (first === undefined || last === undefined) return undefined;
  const keyOf = (line: string) => rowKey(table, numbers === "given", line);
  const window = { from: BigInt(timeOf(first)!), to: BigInt(timeOf(last)!) + 1n };
  return { ...window, rows: lines.length, firstKey: keyOf(first), lastKey: keyOf(last) };
}

/** Rows that can only be requested together: of one timestamp or unit of bounds, or of several that bad lines join. */
interface Group extends Window {
  readonly rows: number;
}

/** Whether a cut's newest row, and its first if its bytes are given, lie in the slice. */
function isWithin({ from, to }: Slice, bytes: Buffer | undefined, newest: Nanoseconds | undefined): boolean {
  if (newest !== undefined && newest >= to) return false;
  const [line] = bytes === undefined ? [] : eachLine(bytes);
  const first = line === undefined ? null : timeOf(line.toString("utf8"));
  return first === null || BigInt(first) >= from;
}

/** True if there are rows from `from` on. */
async function anyFrom(slice: Slice, work: SliceWork, from: Nanoseconds): Promise<boolean> {
  const { to } = slice.around ?? slice;
  // if answers always begin with the first row, another one shows nothing new
  if (!routeOf(work.source, slice.table).bounds.from) return false;
  return from < to && (await probe(asksOf(slice, work), { from, to })) !== undefined;
}

function asksOf({ run, table }: Slice, { source, retry, signal, onLost }: SliceWork): TableAsks {
  const onCame: TableAsks["onCame"] = (asks, came) => onLost?.(asks.table.name, came);
  return { source, run, table, retry, signal, onCame };
}

/**
 * The rows of a capped group, split by the first filter whose parts add up to the facts' count. Throws
 * `timestamp_capped` if no filter splits the rows finely enough.
 */
async function* appendSplit(
  slice: Slice,
  work: SliceWork,
  text: SegmentBuilder,
  group: Group,
  wanted: number,
): AsyncGenerator<Cut, void> {
  const { numbers, filters } = routeOf(work.source, slice.table);
  const own = (await rowsOf(text.lastGroup(), mostAnswerLines, numbers)) ?? [];
  const known: (Partial<Record<FilterName, string | undefined>> | undefined)[] = [...own];
  for (const resource of await listedFilters(asksOf(slice, work))) known.push(resource);
  // parts do not show in which order rows of different parts arrived
  for (const filter of numbers === "arrival" ? [] : filters) {
    const values = new Set(known.map((row) => row?.[filter] ?? ""));
    values.delete("");
    const parts: (GroupRow | undefined)[][] = [];
    for (const value of [...values].sort()) {
      parts.push((await rowsWithin(asksOf(slice, work), group, { [filter]: value }, wanted)) ?? []);
    }
    const lines = parts.flat();
    if (lines.length !== wanted) continue;
    // overlapping parts may add up, too, and without a seq nothing else shows a duplicate row
    if (numbers !== "given" && !arePartsOf(own, [...values].sort(), parts, filter)) continue;
    const rows = lines.filter((row) => row !== undefined);
    if (rows.length < wanted) throw withoutOrder(group);
    text.dropLastGroup();
    yield* text.push(Buffer.concat(inKeyOrder(rows).flatMap(({ line }) => [line, Buffer.from("\n")])));
    return;
  }
  if (yield* appendPaged(slice, work, text, group, wanted)) return;
  // it was capped if there are rows after the group; otherwise the counts disagree
  throw tooFew(group, wanted, await anyFrom(slice, work, group.to));
}

/**
 * The rows of a capped group, page by page if the source has pages, which no cap ends. False if it has none,
 * or if these rows are not proven to be all: by the facts' count, or without facts by a row after the group in
 * the same listing, because a listing that just ends may have been truncated, too.
 */
async function* appendPaged(
  slice: Slice,
  work: SliceWork,
  text: SegmentBuilder,
  group: Group,
  wanted: number | undefined,
): AsyncGenerator<Cut, boolean> {
  const asks = asksOf(slice, work);
  const pages = await askSmall(asks, () => pagesOf(asks, group, work.mostBytes, wanted === undefined));
  if (pages === undefined) return false;
  const lines = linesOf(pages).length;
  if (wanted === undefined ? lines < group.rows : lines !== wanted) return false;
  if (routeOf(work.source, slice.table).numbers !== "given") {
    // a row that arrives between two pages duplicates one row and hides another; without a seq this does not show
    const again = await askSmall(asks, () => pagesOf(asks, group, work.mostBytes, wanted === undefined));
    if (again === undefined || !isSameBag(bagOfText(pages), bagOfText(again))) return false;
    if (!isWithinBag(bagOfText(text.lastGroup()), bagOfText(pages))) return false;
  }
  text.dropLastGroup();
  yield* text.push(pages);
  return true;
}

/** True if each part has only rows with its own value, and together they have all known rows. */
function arePartsOf(
  known: readonly (GroupRow | undefined)[],
  values: readonly string[],
  parts: readonly (readonly (GroupRow | undefined)[])[],
  filter: FilterName,
): boolean {
  const isApart = parts.every((part, i) => part.every((row) => row?.[filter] === values[i]));
  return isApart && isWithinBag(bagOfRows(known), bagOfRows(parts.flat()));
}

function otherRows(group: Group): RunvaultError {
  return new RunvaultError(
    "incomplete",
    `the gateway returns ${countText(group.rows, "row")} at ts_event ${group.from} (${formatTime(group.from)}) each time, but not the same ones`,
    {
      hint: "Run the same command again; if it happens again, the gateway has more rows at this instant than it returns at once, or its count is wrong.",
    },
  );
}

function tooFew(group: Group, wanted: number | undefined, capped: boolean): RunvaultError {
  return new RunvaultError(
    capped ? "timestamp_capped" : "incomplete",
    `the gateway returns ${countText(group.rows, "row")} at ts_event ${group.from} (${formatTime(group.from)})` +
      (wanted === undefined ? ", and nothing proves that these are all of them" : `, but counts ${wanted}`),
    {
      hint: capped
        ? "Raise the gateway's cap on rows per answer, or have it serve storage facts."
        : "Run the same command again; if it happens again, ask the gateway's operator which is right.",
    },
  );
}

function inKeyOrder(rows: readonly GroupRow[]): GroupRow[] {
  const order = (a: bigint, b: bigint) => Number(a > b) - Number(a < b);
  return [...rows].sort((a, b) => order(a.ts_event, b.ts_event) || order(a.seq, b.seq));
}

/** Rows in any order: accepts the slice only as a single answer with every row. */
async function* unsortedSegments(slice: Slice, work: SliceWork): AsyncGenerator<SliceEvent, void> {
  const { from, expected, table } = slice;
  if (routeOf(work.source, table).numbers !== "given") {
    throw new RunvaultError(
      "row_order",
      "rows come in no order of ts_event and have no seq; runvault cannot yet number such rows",
      {
        hint: "Have the gateway sort rows by time, with a parameter of the route if there is one.",
      },
    );
  }
  if (expected === undefined) {
    throw new RunvaultError(
      "row_order",
      "rows come out of key order, and there are no storage facts to prove them complete",
      {
        hint: "Have the gateway send rows in the order of (ts_event, seq), or serve storage facts.",
      },
    );
  }
  let text = gather(slice, work, true);
  const asker = new AnswerReader(slice, work);
  const segments = async function* (cuts: AsyncGenerator<Cut, void>): AsyncGenerator<SliceEvent, void> {
    for await (const cut of cuts) yield segmentOf(slice, cut, slice, false);
  };
  const attempt = async function* (number: number): AsyncGenerator<SliceEvent, void> {
    if (number > 1) {
      // rows out of order cannot be combined with the next answer
      text.discard();
      text = gather(slice, work, true);
      yield { kind: "restart" };
    }
    yield* segments(asker.answer(text, from, undefined));
  };
  try {
    yield* asker.ask(attempt, () => false);
    if (text.totalRows !== expected) {
      throw new RunvaultError(
        "row_order",
        `rows come out of key order, and one answer had ${text.totalRows} of ${expected} rows: there is no place to continue from`,
        {
          hint: "Have the gateway send rows in the order of (ts_event, seq), or raise its cap on rows per answer.",
        },
      );
    }
    yield* segments(text.finish());
    const { totalRows: rows, seen } = text;
    yield { kind: "end", rows, bytes: 0, openEnd: null, isAlone: false, seen };
  } finally {
    text.discard();
  }
}

function gather(
  slice: Slice,
  { source, pool, segmentBytes, mostBytes }: SliceWork,
  unsorted: boolean,
): SegmentBuilder {
  const { run } = slice;
  const { from, to } = slice.around ?? slice;
  const { numbers, bounds, stepNs, pages } = routeOf(source, slice.table);
  const isAsked = bounds.from && bounds.to;
  return new SegmentBuilder({
    run,
    from: from <= int64Min ? undefined : from,
    to: to >= int64Max ? undefined : to,
    ...{ segmentBytes, mostBytes, unsorted, pool, numbers, stepNs, mergesDoubles: pages === "none" },
    ...(isAsked ? {} : { leavesOut: { early: !bounds.from, late: !bounds.to } }),
  });
}

function segmentOf(
  { bucket }: Slice,
  { text, release, rows, longestLine }: Cut,
  { from, to }: Window,
  sorted: boolean,
): FetchedSegment {
  const [begin, end] = [from.toString(), to.toString()];
  const draft = { bucket, from: begin, to: end, rows, bytes: text.byteLength, longestLine, sorted };
  return { kind: "segment", draft, text, release };
}

function withoutTimes(rows: number): RunvaultError {
  return new RunvaultError(
    "malformed_row",
    `none of the ${rows} lines of an answer has a ts_event and a seq, so it is not known whether there are more rows`,
    { hint: "Have the gateway's operator correct these rows, or serve storage facts." },
  );
}

function withoutOrder(group: Group): RunvaultError {
  return new RunvaultError(
    "incomplete",
    `the rows at ts_event ${group.from} (${formatTime(group.from)}) come only in parts, and a line among them is not a row, so its place is unknown`,
    { hint: "Have the gateway's operator correct this row, or raise the cap on rows per answer." },
  );
}

function vanished(slice: Slice, ts: Nanoseconds): RunvaultError {
  return new RunvaultError("incomplete", `rows at ts_event ${ts} came once, but not when asked for again`, {
    place: { ...placeOf(slice) },
    hint: "Run the same command again; if it happens again, the gateway is losing rows: tell its operator.",
  });
}

function place(error: unknown, slice: Slice): unknown {
  if (!(error instanceof RunvaultError)) return error;
  return error.at({ ...placeOf(slice), table: slice.table.name });
}

function placeOf(slice: Slice) {
  return {
    instance: slice.run.instanceId,
    run: slice.run.runId,
    slice: `[${slice.from}, ${slice.to})`,
  };
}
