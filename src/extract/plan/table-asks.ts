import { z } from "zod";
import { mostSegmentBytes } from "../../archive/write/segment.ts";
import { RunvaultError } from "../../model/error.ts";
import { parseJson } from "../../model/outside-json.ts";
import { Pieces } from "../../model/pieces.ts";
import type { FilterName, Table } from "../../model/profile/table.ts";
import { withRetries } from "../../model/retry/retry.ts";
import type { RetryPolicy } from "../../model/retry/retry-policy.ts";
import type { AskedRun, HistorySource, RowRequest } from "../../model/source.ts";
import { rowText } from "../../model/text/operator-text.ts";
import { int64Max, int64Min, type Nanoseconds, type TimeBounds } from "../../model/time.ts";
import { Turns } from "../../model/turns.ts";
import { blankLinesIn, refuseEndlessBlanks } from "../../row/blank-lines.ts";
import { lineTooLong, longestLineBytes } from "../../row/line.ts";
import { AnswerEar, type AnswerSize } from "./answer-size.ts";
import { boundsCause, OutsideBounds, type WhyOutside, whyByRow } from "./coarse-bounds.ts";
import type { Window } from "./held-window.ts";
import { asked, behindStep, type Route, routeOf } from "./route.ts";
import { type Came, rowKey } from "./row-key.ts";

/** What small requests about one table of a run need: the source, and how to retry. */
export interface TableAsks {
  readonly source: HistorySource;
  readonly run: AskedRun;
  readonly table: Table;
  readonly retry: RetryPolicy;
  readonly signal: AbortSignal;
  /** Called with the rows that an answer brought, for any table, from the first one's time to the last one's. */
  readonly onCame?: ((asks: TableAsks, came: Came) => void) | undefined;
}

/** Sends a request whose answer is small enough to request again if it is cut off. */
export function askSmall<T>({ retry, signal }: TableAsks, ask: () => Promise<T>): Promise<T> {
  return withRetries(ask, retry, signal);
}

/** Whether a source refused a limit, a filter or bounds. */
export function isRefusal(error: unknown): boolean {
  if (!(error instanceof RunvaultError)) return false;
  return error.status === 400 || error.code === "invalid_argument" || error.code === "limit_exceeded";
}

/** A gateway that refuses a window shorter than a day refuses any. */
export const shortestRefusedNs = 86_400_000_000_000n;

/** The first row of a window; `ts` is undefined for a line without a time. */
export interface ProbedRow {
  readonly ts: Nanoseconds | undefined;
  readonly line: string;
}

/**
 * Asks for the first row of a window; undefined if the source sends none. If the source takes no limit, it asks for all
 * rows and reads a few more; if it takes no bounds, it reads up to the first row in the window. Throws what the source
 * throws, and `history_identity_conflict` if the row belongs to another run or lies outside the bounds asked for.
 */
export async function probe(asks: TableAsks, window: Window): Promise<ProbedRow | undefined> {
  const { from, to } = window;
  const found = await probeAsAsked(asks, window);
  // a bound rounded to a coarser unit brings earlier rows too, which are left out: a cap may have cut off the later ones
  const next = from > int64Min ? behindStep(routeOf(asks.source, asks.table), from - 1n) : from;
  return found ?? (next > from && next < to ? await probeAsAsked(asks, { from: next, to }) : undefined);
}

/** How much of an answer without a limit is read after its first row: the rows that come are evidence. */
const mostProbedBytes = 2 ** 16;

async function probeAsAsked(asks: TableAsks, window: Window): Promise<ProbedRow | undefined> {
  const { run, table, source, signal } = asks;
  const { from, to } = window;
  const route = routeOf(source, table);
  const request = { ...run, table: table.name, ...asked(route, from, to), signal };
  const first = (limit: number | undefined) =>
    askSmall(asks, async () => {
      const came: Buffer[] = [];
      let bytes = 0;
      let found: ProbedRow | undefined;
      let outside: OutsideBounds | undefined;
      try {
        for await (const line of linesIn(source.rows({ ...request, limit }))) {
          if (found === undefined) {
            const text = line.toString("utf8").replace(/^[\s\uFEFF]+/, "");
            if (text === "") continue;
            const time = timeOf(text);
            const ts = time === null ? undefined : BigInt(time);
            requireOwn(asks, window, text);
            if (!route.bounds.from && from > int64Min && (ts === undefined || ts < from)) continue;
            if (ts !== undefined && ts >= to && !route.bounds.to) {
              if (route.order === "none") continue;
              return undefined;
            }
            found = { ts, line: text };
            if (ts !== undefined && (ts < from || ts >= to)) {
              outside = new OutsideBounds(ts, window);
              break;
            }
          }
          came.push(line, lineEnd);
          bytes += line.byteLength;
          if (limit === 1 || bytes > mostProbedBytes) break;
        }
      } catch (error) {
        signal.throwIfAborted();
        // the first row answers the question; the others are only evidence
        if (found === undefined) throw error;
      }
      // asked once the answer is closed: while it is open, no other may get a turn
      if (outside !== undefined) throw notAsAsked(window, found!.line, await whyOutside(asks, outside));
      const all = (await rowsOf(Buffer.concat(came), mostAnswerLines, route.numbers)) ?? [];
      const isWithin = (row: GroupRow | undefined) =>
        row !== undefined && row.ts_event >= from && row.ts_event < to;
      tellCame(
        asks,
        route,
        all.filter((row, at) => isWithin(row) && !isDouble(row, all[at - 1], route)),
      );
      return found;
    });
  const isAll = !route.bounds.from || (!route.bounds.to && route.order === "none");
  if (!route.takesLimit || isAll) return await first(undefined);
  return await first(1).catch((error: unknown) => {
    if (!(error instanceof RunvaultError) || error.code !== "limit_exceeded") throw error;
    return first(undefined);
  });
}

/** Why a source sent a row outside the bounds, by further requests as far as it answers them. */
export async function whyOutside(asks: TableAsks, outside: OutsideBounds): Promise<WhyOutside> {
  const { run, table, source, signal } = asks;
  const route = routeOf(source, table);
  const timesWithin = async function* ({ from = int64Min, to = int64Max }: TimeBounds) {
    const request = { ...run, table: table.name, ...asked(route, from, to), signal };
    const limit = route.takesLimit && to === int64Max ? 1 : undefined;
    for await (const line of linesIn(source.rows({ ...request, limit }))) {
      const time = timeOf(line.toString("utf8"));
      if (time !== null) yield BigInt(time);
    }
  };
  try {
    return await boundsCause(outside, timesWithin, route.stepNs);
  } catch {
    signal.throwIfAborted();
    // a request that only explains an error must not replace it
    return whyByRow(outside, route.stepNs);
  }
}

function requireOwn({ run }: TableAsks, window: Window, line: string): void {
  const row = jsonOf(Buffer.from(line)) as { run_id?: unknown; instance_id?: unknown } | null | undefined;
  const isForeign = (id: unknown, own: string) => typeof id === "string" && id !== own;
  if (isForeign(row?.run_id, run.runId) || isForeign(row?.instance_id, run.instanceId))
    throw notAsAsked(window, line);
}

function notAsAsked({ from, to }: Window, line: string, why?: WhyOutside): RunvaultError {
  if (why !== undefined && why.text !== "") {
    const { text, hint } = why;
    return new RunvaultError(
      "history_identity_conflict",
      `asked for one row in [${from}, ${to}), the gateway sent the row at ${timeOf(line)}${text}`,
      { hint },
    );
  }
  return new RunvaultError(
    "history_identity_conflict",
    `asked for one row in [${from}, ${to}), the gateway sent ${rowText(line)}`,
    {
      hint:
        "The gateway's answer does not fit the request. If a profile says how bounds are written (`times`), compare it " +
        "with the gateway by `runvault profile check`; otherwise tell the gateway's operator. Nothing of this table is proven.",
    },
  );
}

/**
 * The lines of an answer as they arrive, without blank ones, up to `mostBytes` in all; the last may be cut off. Throws
 * `line_too_long`, and `malformed_row` for endless blank lines.
 */
export async function* linesIn(
  answer: AsyncIterable<Uint8Array>,
  mostBytes = Number.POSITIVE_INFINITY,
): AsyncGenerator<Buffer> {
  const turns = new Turns();
  const parts = new Pieces();
  let bytes = 0;
  let lines = 0;
  let blankLines = 0;
  for await (const chunk of answer) {
    bytes += chunk.byteLength;
    if (bytes > mostBytes) return;
    for (let start = 0; start < chunk.byteLength; ) {
      const end = chunk.indexOf(10, start);
      const stop = end < 0 ? chunk.byteLength : end;
      parts.add(chunk.subarray(start, stop));
      if (parts.bytes > longestLineBytes) {
        throw lineTooLong("line");
      }
      if (turns.isDue(stop - start)) await turns.next();
      if (end < 0) break;
      const line = parts.take();
      if (isBlank(line)) {
        blankLines += blankLinesIn(line.byteLength);
        refuseEndlessBlanks(blankLines, lines);
      } else {
        lines++;
        yield line;
      }
      start = end + 1;
    }
  }
  const rest = parts.take();
  if (!isBlank(rest)) yield rest;
}

function isBlank(line: Uint8Array): boolean {
  return line.every((byte) => byte === 32 || byte === 9 || byte === 13);
}

/** The most of an answer kept in memory: the rows of two timestamps. */
const mostAnswerBytes = 2 * mostSegmentBytes;
/** The most rows of that answer: each is also kept as an object, and takes more than 128 bytes of text. */
export const mostAnswerLines = mostAnswerBytes / 128;
/** The smallest limit to ask with: an answer with fewer rows was not cut by it. */
export const leastLimit = 100_000;

/**
 * The window's rows, only those that match `filters` if given; undefined if the source does not take these, or if the rows
 * exceed 128 MiB or a million lines.
 */
export async function rowsWithin(
  asks: TableAsks,
  window: Window,
  filters?: Filters,
  wanted?: number,
): Promise<(GroupRow | undefined)[] | undefined> {
  return (await answerWithin(asks, window, filters, wanted))?.rows;
}

/** Values of filters to ask with. */
export type Filters = Readonly<Partial<Record<FilterName, string>>>;

/** Rows of one answer, and its size. */
export interface AnswerWithin {
  readonly rows: (GroupRow | undefined)[];
  readonly size: AnswerSize;
  /** Milliseconds from its first byte to its last; undefined if there is no wire. */
  readonly ms: number | undefined;
}

/** The same rows with the size of their answer. */
export async function answerWithin(
  asks: TableAsks,
  { from, to }: Window,
  filters?: Filters,
  wanted?: number,
): Promise<AnswerWithin | undefined> {
  const { run, table, source, signal } = asks;
  const route = routeOf(source, table);
  const limit = route.takesLimit ? wanted : undefined;
  const request: RowRequest = {
    ...run,
    table: table.name,
    ...asked(route, from, to),
    filters,
    limit,
    signal,
  };
  const { bounds } = route;
  // it is unknown whether a line that is not a row lies in a window that was not sent
  const isWithin = (row: GroupRow | undefined) =>
    row === undefined
      ? bounds.from
      : (bounds.from || row.ts_event >= from) && (bounds.to || row.ts_event < to);
  try {
    return await askSmall(asks, async () => {
      const answer = new Pieces();
      const ear = new AnswerEar();
      for await (const chunk of source.rows({ ...request, onBody: ear.onBody })) {
        answer.add(chunk);
        if (answer.bytes > mostAnswerBytes) return undefined;
      }
      const { bytes } = answer;
      const all = await rowsOf(answer.take(), mostAnswerLines, route.numbers);
      if (all === undefined) return undefined;
      const rows = all.filter((row, at) => isWithin(row) && !isDouble(row, all[at - 1], route));
      tellCame(asks, route, rows);
      return { rows, size: ear.sizeOf(all.length, bytes), ms: ear.ms };
    });
  } catch (error) {
    if (!isRefusal(error)) throw error;
    return limit === undefined ? undefined : await answerWithin(asks, { from, to }, filters);
  }
}

function tellCame(asks: TableAsks, { numbers }: Route, all: readonly (GroupRow | undefined)[]): void {
  const rows = all.filter((row) => row !== undefined);
  if (rows.length === 0) return;
  const first = rows.reduce((a, b) => (b.ts_event < a.ts_event ? b : a));
  const last = rows.reduce((a, b) => (b.ts_event >= a.ts_event ? b : a));
  const key = ({ line }: GroupRow) => rowKey(asks.table, numbers === "given", line.toString("utf8"));
  const window = { from: first.ts_event, to: last.ts_event + 1n };
  asks.onCame?.(asks, { ...window, rows: rows.length, firstKey: key(first), lastKey: key(last) });
}

/**
 * The window's lines, fetched page by page; undefined if the source has no pages, or if they exceed `mostBytes`. With
 * `isToPassWindow`, reading goes on to a row after the window, and the result is undefined if there is none. `pageRows` is
 * the most rows of a page.
 */
export async function pagesOf(
  asks: TableAsks,
  window: Window,
  mostBytes: number,
  isToPassWindow: boolean,
  pageRows?: number,
): Promise<Buffer | undefined> {
  const { run, table, source, signal } = asks;
  if (source.pagedRows === undefined) return undefined;
  const route = routeOf(source, table);
  const { from, to } = asked(route, window.from, window.to);
  const bounds = isToPassWindow ? { from } : { from, to };
  const schema = rowSchemas[route.numbers];
  const kept: Buffer[] = [];
  let left: Buffer = Buffer.alloc(0);
  let bytes = 0;
  let isPassed = false;
  try {
    for await (const chunk of source.pagedRows({ ...run, table: table.name, ...bounds, signal, pageRows })) {
      const text = Buffer.concat([left, chunk]);
      const whole = text.lastIndexOf(10) + 1;
      left = text.subarray(whole);
      for (const line of linesOf(text.subarray(0, whole))) {
        const { data } = schema.safeParse(jsonOf(line));
        if (data !== undefined && data.ts_event >= window.to) isPassed = true;
        else if (route.bounds.from || data === undefined || data.ts_event >= window.from)
          kept.push(line, lineEnd);
      }
      if (isPassed) break;
      bytes += chunk.byteLength;
      if (bytes > mostBytes) return undefined;
    }
  } catch (thrown) {
    if (thrown instanceof RunvaultError && thrown.code === "route_not_found") return undefined;
    throw thrown;
  }
  if (isToPassWindow && !isPassed) return undefined;
  if (!isPassed && left.byteLength > 0) kept.push(left, lineEnd);
  return Buffer.concat(kept);
}

const lineEnd = Buffer.from("\n");

const value = z.string().optional();
/** Filter values as rows and a run's resources state them. */
export const filterFields = {
  resource_key: value,
  symbol: value,
  venue: value,
  account: value,
  portfolio: value,
};

const integer = z
  .string()
  .regex(/^-?\d{1,20}$/)
  .transform((digits) => BigInt(digits));
const given = z.object({ ts_event: integer, seq: integer, ...filterFields });
const numberedHere = z.object({ ts_event: integer, seq: z.literal("").transform(() => 0n), ...filterFields });
const rowSchemas = { given, bytes: numberedHere, arrival: numberedHere } as const;

/** A row as needed for a split; its seq is 0 if rows have none. */
export interface GroupRow extends z.output<typeof given> {
  readonly line: Buffer;
}

/** The lines of a text as rows, with undefined for a line that is not one; undefined if there are more than `most` lines. */
export async function rowsOf(
  text: Buffer,
  most: number,
  numbers: Route["numbers"],
): Promise<(GroupRow | undefined)[] | undefined> {
  const turns = new Turns();
  const rows: (GroupRow | undefined)[] = [];
  for (const line of eachLine(text)) {
    if (rows.length === most) return undefined;
    if (turns.isDue(line.byteLength)) await turns.next();
    const { data } = rowSchemas[numbers].safeParse(jsonOf(line));
    rows.push(data && { ...data, line });
  }
  return rows;
}

/** Whether a row repeats the one before it, by SegmentBuilder's rule. */
function isDouble(row: GroupRow | undefined, before: GroupRow | undefined, route: Route): boolean {
  const isTold = route.numbers === "given" && route.pages === "none";
  return isTold && row !== undefined && before?.line.equals(row.line) === true;
}

export function linesOf(text: Buffer): Buffer[] {
  return [...eachLine(text)];
}

/** The lines of a text, empty ones left out. */
export function* eachLine(text: Buffer): Generator<Buffer> {
  for (let start = 0; start < text.byteLength; ) {
    const end = text.indexOf(10, start);
    const stop = end < 0 ? text.byteLength : end;
    if (stop > start) yield text.subarray(start, stop);
    start = stop + 1;
  }
}
/** A line's ts_event, even if it is truncated or otherwise invalid JSON: its window must include it. */
export function timeOf(line: string): string | null {
  const row = jsonOf(Buffer.from(line)) as { ts_event?: unknown } | null | undefined;
  const found = typeof row?.ts_event === "string" ? /^(-?\d{1,19})$/.exec(row.ts_event) : null;
  const time = (found ?? /"ts_event":\s*"(-?\d{1,19})"/.exec(line))?.[1] ?? null;
  return time !== null && BigInt.asIntN(64, BigInt(time)) === BigInt(time) ? time : null;
}

/** The JSON value of some bytes; undefined if they are not JSON. */
export function jsonOf(bytes: Uint8Array): unknown {
  try {
    return parseJson(Buffer.from(bytes).toString("utf8"));
  } catch {
    return undefined;
  }
}
