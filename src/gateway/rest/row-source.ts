import { type ErrorCode, type ErrorPlace, RunvaultError } from "../../model/error.ts";
import { hasDerivedSeq } from "../../model/profile/row-map.ts";
import type { FilterName, Table } from "../../model/profile/table.ts";
import type { RouteTraits } from "../../model/route-traits.ts";
import type { AskedRun, RowRequest, RunRef } from "../../model/source.ts";
import { floorDivide, formatTime, type TimeBounds } from "../../model/time.ts";
import type { HttpSession } from "../http/http-session.ts";
import type { RowRate } from "../http/row-rate.ts";
import type { RestProfile, RestRoute } from "../profile/profile.ts";
import { withLikelyTimes } from "../profile/rows/likely-times.ts";
import type { RowNormaliser } from "../profile/rows/row-normaliser.ts";
import { checkedBounds } from "../request-checks.ts";
import type { ListedIds } from "./filter-probe.ts";
import { nextTarget } from "./next-target.ts";
import { asBuffer, clipRows, timeIn } from "./pages/clip-rows.ts";
import { firstPage, placesInBody, totalOf } from "./pages/next-page.ts";
import { checkJoins, PageEnds } from "./pages/page-joins.ts";
import { type PageRows, pageRows, uncountedLines } from "./pages/page-rows.ts";
import { type OpenPage, type PageWalk, toldOf, usualSize, walkPages } from "./pages/page-walk.ts";
import { RowSpool } from "./pages/row-spool.ts";
import { takeRows, wholeLines } from "./pages/take-rows.ts";
import { type FilterKnowledge, type FilterProbe, notThere, requireFiltered } from "./require-filtered.ts";
import { restCall } from "./rest-call.ts";
import type { RestClient } from "./rest-client.ts";
import { stepOf, writeBounds } from "./written-bounds.ts";

/** How rows are requested, in the profile's terms. */
export interface RowRoute {
  readonly session: HttpSession;
  readonly client: RestClient;
  readonly rest: RestProfile;
  readonly route: RestRoute;
  readonly table: Table;
  readonly traits: RouteTraits;
  /** Makes a run's rows canonical; undefined if they already are. */
  readonly normaliserOf: (run: RunRef) => RowNormaliser | undefined;
  /** The ids that the gateway lists, or an instance's runs; undefined if a list fails. */
  readonly listed: (instanceId: string, signal: AbortSignal) => Promise<ListedIds | undefined>;
  /** What answers have shown about the route. */
  readonly known: RouteKnowledge;
}

export interface RouteKnowledge extends FilterKnowledge {
  /** Whether pages were seen to name the next one, or have no place for it. */
  namesNext: boolean;
  /** Whether the announced total respects a bound, if that was seen. */
  readonly totalHeeds: { from?: boolean | undefined; to?: boolean | undefined };
}

/** One answer's rows as requested. */
interface Asked extends TimeBounds {
  readonly run: AskedRun;
  readonly filters: readonly (readonly [FilterName, string])[];
  /** Enough rows; undefined if all are wanted, or if the number is unknown. */
  readonly wanted: number | undefined;
  readonly onTotal?: RowRequest["onTotal"];
}

interface Reading {
  readonly place: ErrorPlace;
  readonly signal: AbortSignal;
  readonly rate: RowRate;
}

/** Bounds beyond which no row lies. */
const year2100 = 4_102_444_800_000_000_000n;
const dayOf1970 = 86_400_000_000_000n;

/** A route about a single run also says so. */
const noSuchRun: ReadonlySet<ErrorCode> = new Set([...notThere, "route_not_found"]);

/** The rows of a request as canonical lines, in key order if the route has any order. */
export async function* profileRows(
  source: RowRoute,
  request: RowRequest,
  filters: readonly (readonly [FilterName, string])[],
  place: ErrorPlace,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, undefined> {
  const { session, route } = source;
  session.options.onRowBuffers?.();
  using _place = await session.gate.rows(signal);
  const reading = { place, signal, rate: session.rowRate(place, request.onBody) };
  const { instanceId, runId, final, limit, onTotal } = request;
  const run = { instanceId, runId, final };
  const asked = { run, filters, ...checkedBounds(request), wanted: limit, onTotal };
  if (route.order === "descending")
    yield* takeRows(turnedRows(source, { ...asked, wanted: undefined }, reading), limit);
  else yield* takeRows(clippedRows(source, asked, reading), limit);
}

/** Reverses rows that come newest first. */
async function* turnedRows(
  source: RowRoute,
  asked: Asked,
  reading: Reading,
): AsyncGenerator<Uint8Array, undefined> {
  const { session, route } = source;
  let inBody = false;
  const onOpen = () => {
    inBody = true;
  };
  await using spool = await session.retrying(
    reading.signal,
    async () => {
      const spool = await RowSpool.open();
      try {
        inBody = false;
        if (route.pages.by === "none" && route.parameters.to !== undefined) {
          await fillDown(source, asked, reading, spool, onOpen);
        } else {
          const rows = clippedRows(source, asked, reading, onOpen);
          for await (const chunk of rows) await spool.add(chunk);
        }
        return spool;
      } catch (thrown) {
        await spool[Symbol.asyncDispose]();
        throw thrown;
      }
    },
    // a failure before the answer was already retried there
    ({ retry }) => inBody && retry === "again",
  );
  yield* spool.backward();
}

/**
 * Answers without pages that come newest first may each lack the oldest rows. So each further request ends with the
 * oldest timestamp of the last one and includes its rows, until nothing else comes. Throws `timestamp_capped` if a cap
 * may hide rows of one timestamp.
 */
async function fillDown(
  source: RowRoute,
  asked: Asked,
  reading: Reading,
  spool: RowSpool,
  onOpen: () => void,
): Promise<void> {
  const { place } = reading;
  let most = 0;
  let to = asked.to;
  /** The oldest timestamp so far, and where its rows begin. */
  let oldest: bigint | undefined;
  let oldestAt = 0;
  for (;;) {
    const before = oldest;
    if (before !== undefined) await spool.cutTo(oldestAt);
    let last: PageRows | undefined;
    const onRows = (rows: PageRows) => {
      last = rows;
      onOpen();
    };
    let times = 0;
    let text: string | undefined;
    for await (const chunk of wholeLines(clippedRows(source, { ...asked, to }, reading, onRows))) {
      const lines = asBuffer(chunk);
      const base = spool.bytes;
      for (let start = 0; start < lines.length; ) {
        const end = lines.indexOf(0x0a, start) + 1 || lines.length;
        const time = timeIn(lines, start, end);
        if (time !== undefined && time !== text && /^-?\d{1,19}$/.test(time)) {
          const ts = BigInt(time);
          if (oldest !== undefined && ts > oldest) {
            throw new RunvaultError("row_order", "rows did not come newest first", {
              place,
              hint: "Correct the order in the profile, or the end of the time window, which the gateway may ignore.",
            });
          }
          text = time;
          times++;
          oldest = ts;
          oldestAt = base + start;
        }
        start = end;
      }
      await spool.add(lines);
    }
    const rows = last?.rows ?? 0;
    if (oldest === undefined) return;
    if (before !== undefined && times === 0) {
      throw new RunvaultError("stream_cut", "rows that came before are missing from a later answer", {
        place,
      });
    }
    if (times === 1 && (before === undefined || oldest === before)) {
      // a single timestamp in the only answer is for its reader to judge
      if (before === undefined || rows < most) return;
      throw new RunvaultError(
        "timestamp_capped",
        `answers end after ${rows} rows, before all rows of ${formatTime(oldest)} have come`,
        {
          place,
          hint: "Ask the gateway's operator for larger answers, or set largest_limit in the profile.",
        },
      );
    }
    most = Math.max(most, rows);
    to = oldest + 1n;
  }
}

/** The rows of an answer as canonical lines, within its bounds, in order of arrival. */
function clippedRows(
  source: RowRoute,
  asked: Asked,
  reading: Reading,
  onRows: (rows: PageRows) => void = () => {},
): AsyncGenerator<Uint8Array, undefined> {
  const { route } = source;
  const { clipFrom } = writeBounds(route, asked);
  if (clipFrom?.farthest === undefined || route.pages.by !== "none" || route.order === "descending") {
    return rowsWithin(source, asked, reading, onRows);
  }
  return rowsBehindClipped(source, asked, reading, onRows);
}

/**
 * The same if the answer begins before the requested time and may be capped: if no row of it is within bounds, rows
 * from the next whole unit on are requested. Throws `timestamp_capped` if there are some.
 */
async function* rowsBehindClipped(
  source: RowRoute,
  asked: Asked,
  reading: Reading,
  onRows: (rows: PageRows) => void,
): AsyncGenerator<Uint8Array, undefined> {
  let last: PageRows | undefined;
  let isEmpty = true;
  const rows = rowsWithin(source, asked, reading, (page) => {
    last = page;
    onRows(page);
  });
  for await (const chunk of rows) {
    isEmpty = false;
    yield chunk;
  }
  if (!isEmpty || (last?.rows ?? 0) === 0 || asked.from === undefined) return;
  const unit = stepOf(source.route.times);
  const from = (floorDivide(asked.from, unit) + 1n) * unit;
  if (asked.to !== undefined && from >= asked.to) return;
  for await (const _ of rowsWithin(source, { ...asked, from }, reading, () => {})) {
    throw new RunvaultError(
      "timestamp_capped",
      `answers end after ${last?.rows} rows, all before ${formatTime(asked.from)}, although there are later ones`,
      {
        place: reading.place,
        hint: "Ask the gateway's operator for larger answers, or set largest_limit in the profile.",
      },
    );
  }
}

function rowsWithin(
  source: RowRoute,
  asked: Asked,
  reading: Reading,
  onRows: (rows: PageRows) => void,
): AsyncGenerator<Uint8Array, undefined> {
  const { clipFrom, clipTo } = writeBounds(source.route, asked);
  // the number of rows clipped from the front is unknown
  const wanted = clipFrom === undefined ? asked.wanted : undefined;
  const ends = new PageEnds();
  const raw = provenRows(source, { ...asked, wanted }, reading, onRows, (rows) => ends.add(rows));
  const canonical = canonicalRows(source, asked.run, raw);
  const isOrdered = source.route.order !== "none";
  if (!isJoinedByPlace(source)) return clipRows(canonical, clipFrom, clipTo, isOrdered);
  const joined = checkJoins(canonical, {
    ends,
    place: reading.place,
    isFull: (rows) => rows >= (wanted ?? Number.POSITIVE_INFINITY),
    linesAt: (time) => linesAt(source, { ...asked, from: time, to: time + 1n, wanted: undefined }, reading),
  });
  return clipRows(joined, clipFrom, clipTo, isOrdered);
}

/** Whether rows without numbers come in pages that may count places: then a row may come twice, and hide another. */
function isJoinedByPlace({ traits, route }: RowRoute): boolean {
  const { by } = route.pages;
  return hasDerivedSeq(traits.map) && by !== "none" && by !== "number";
}

/** The lines of one time, requested separately. */
async function linesAt(source: RowRoute, asked: Asked, reading: Reading): Promise<readonly string[]> {
  const { clipFrom, clipTo } = writeBounds(source.route, asked);
  const raw = walkPages(pageWalk(source, { ...asked, onTotal: undefined }, reading, () => {}));
  const parts: Uint8Array[] = [];
  for await (const chunk of clipRows(canonicalRows(source, asked.run, raw), clipFrom, clipTo, false)) {
    parts.push(Uint8Array.from(chunk));
  }
  return Buffer.concat(parts).toString("utf8").split("\n").slice(0, -1);
}

function canonicalRows(
  source: RowRoute,
  run: RunRef,
  raw: AsyncGenerator<Uint8Array, undefined>,
): AsyncIterable<Uint8Array> {
  const { table, traits } = source;
  const normaliser = source.normaliserOf(run);
  if (normaliser === undefined || traits.map === undefined) return raw;
  return withLikelyTimes(table, traits.map, normaliser.over(raw));
}

/** The gateway's rows; before the first ones it is proven that they are this run's alone. */
async function* provenRows(
  source: RowRoute,
  asked: Asked,
  reading: Reading,
  onRows: (rows: PageRows) => void,
  onPageEnd: (rows: number) => void,
): AsyncGenerator<Uint8Array, undefined> {
  const probe: FilterProbe = {
    ...source,
    request: source.route,
    notThere: noSuchRun,
    rowsOf: (run) =>
      walkPages(pageWalk(source, { ...asked, run, wanted: 1, onTotal: undefined }, reading, () => {})),
  };
  for await (const chunk of walkPages({ ...pageWalk(source, asked, reading, onRows), onPageEnd })) {
    if (chunk.length > 0) await requireFiltered(probe, asked.run, reading.place, reading.signal);
    yield chunk;
  }
}

function pageWalk(
  { session, client, rest, route, table, traits, known }: RowRoute,
  asked: Asked,
  reading: Reading,
  onRows: (rows: PageRows) => void,
): PageWalk {
  const { place, signal, rate } = reading;
  const { run, filters } = asked;
  const bounds = writeBounds(route, asked);
  const size = leastOf(asked.wanted, route.largestLimit);
  const accept = route.rows.mediaTypes;
  const values = placesInBody(route.pages);
  const call = (limit: number | undefined, more: Readonly<Record<string, string | number>>) =>
    restCall(rest.base, route, { ...run, bounds, limit, filters, more }, accept);
  let target: string = session.address.basePath + call(size, {}).path;

  const isPlain =
    asked.wanted === undefined &&
    route.pages.by === "none" &&
    route.rows.form === "lines" &&
    route.order !== "descending";
  const opened = async (request: ReturnType<typeof call>): Promise<OpenPage> => {
    const answer = await client.openRows(request, { place, signal }, rate);
    if (answer.status === 204) session.noContent.note(run, table.name, "nothing");
    // no content: no rows, whatever form they would have
    const rows =
      answer.status === 204
        ? pageRows({ form: "lines", mediaTypes: [] }, [], place)
        : isPlain
          ? uncountedLines()
          : pageRows(route.rows, values, place);
    onRows(rows);
    return {
      headers: answer.headers,
      rows,
      chunks: () => answer.chunks(),
      [Symbol.asyncDispose]: () => answer[Symbol.asyncDispose](),
    };
  };

  /** Whether a total of so many respects a bound: beyond all rows it would be zero. Undefined if nothing shows it. */
  const heeds = async (side: "from" | "to", total: bigint): Promise<boolean | undefined> => {
    const beyond = writeBounds(route, side === "from" ? { from: year2100 } : { to: dayOf1970 });
    const more = firstPage(route.pages, size ?? usualSize);
    try {
      await using page = await opened(
        restCall(rest.base, route, { ...run, bounds: beyond, limit: size, filters, more }, accept),
      );
      for await (const chunk of page.chunks()) page.rows.push(chunk);
      page.rows.end();
      if (page.rows.rows > 0) return undefined;
      return (totalOf(route.pages, toldOf(page), place) ?? 0n) < total;
    } catch (thrown) {
      // the gateway may refuse such an unusual bound in any way
      if (!(thrown instanceof RunvaultError) || signal.aborted) throw thrown;
      return undefined;
    }
  };

  return {
    pages: route.pages,
    place,
    size,
    wanted: asked.wanted,
    isClosed: isClosed(session, route, asked),
    hasTwins: traits.map !== undefined && hasDerivedSeq(traits.map),
    isArrivalKept: traits.map !== undefined && hasDerivedSeq(traits.map) && traits.map.ties === "arrival",
    isOfThese: async (total) => {
      // parts by filter must add up to the total count
      if (filters.length > 0) return false;
      for (const side of ["from", "to"] as const) {
        if (bounds[side] === undefined) continue;
        known.totalHeeds[side] ??= await heeds(side, total);
        if (known.totalHeeds[side] === false) return false;
      }
      return true;
    },
    isOpen: asked.from === undefined && asked.to === undefined && filters.length === 0,
    onTotal: asked.onTotal,
    tell: (text) => session.notices.tell(text),
    open: (more) => opened(call(size, more)),
    openAddress: (address) => {
      target = nextTarget(session, address, target, place);
      return opened({ method: "GET", path: target, isFromOrigin: true, accept });
    },
    onOnlyPage: async ({ rows, isThere }) => {
      if (known.namesNext) return;
      if (isThere) known.namesNext = true;
      if (isThere || rows < 2 || route.parameters.limit === undefined) return;
      await using page = await opened(call(1, {}));
      for await (const chunk of page.chunks()) page.rows.push(chunk);
      page.rows.end();
      // a gateway that ignores the limit cannot be tested that way
      if (page.rows.rows === 1) requireNext(route, page, place);
      known.namesNext = true;
    },
  };
}

/**
 * Whether the requested range is closed: the run has ended, or the end of the range has passed. The end as sent may be
 * up to a unit later; it is compared with the gateway's clock, which has whole seconds, or with ours.
 */
function isClosed(session: HttpSession, { parameters, times }: RestRoute, { run, to }: Asked): boolean {
  if (run.final === true) return true;
  if (to === undefined || parameters.to === undefined) return false;
  const unit = stepOf(times);
  const end = -floorDivide(-to, unit) * unit;
  return end <= BigInt(Date.now()) * 1_000_000n || end <= (session.now() ?? end - 1n);
}

/** Throws `not_a_gateway` if a page of one row among several names no next one: nothing would ever follow. */
function requireNext({ pages }: RestRoute, { headers, rows }: OpenPage, place: ErrorPlace): void {
  const isThere =
    pages.by === "link"
      ? headers.link !== undefined
      : "next" in pages &&
        ("header" in pages.next
          ? headers[pages.next.header.toLowerCase()] !== undefined
          : rows.value(0) !== undefined);
  if (isThere) return;
  const where =
    pages.by === "link" || !("next" in pages)
      ? "in a Link header"
      : "header" in pages.next
        ? `in the header ${pages.next.header}`
        : `at ${pages.next.body.join(".")}`;
  throw new RunvaultError(
    "not_a_gateway",
    `the answer is not as the profile says: a page of one row names no next page ${where}, although there are more rows`,
    {
      place,
      status: 200,
      hint: "Correct the profile's pages, or its limit: otherwise all rows after the first page would be missing.",
    },
  );
}

function leastOf(...values: readonly (number | undefined)[]): number | undefined {
  const given = values.filter((value) => value !== undefined);
  return given.length === 0 ? undefined : Math.min(...given);
}
