import type { Archive } from "../../archive/archive.ts";
import type { Manifest, Segment } from "../../archive/manifest/manifest.ts";
import { joinAddress, knownSource } from "../../archive/sources.ts";
import { mostSegmentBytes, readSegment } from "../../archive/write/segment.ts";
import { RunvaultError } from "../../model/error.ts";
import { type Table, type TableName, tables } from "../../model/profile/table.ts";
import type { RetryPolicy } from "../../model/retry/retry-policy.ts";
import type { HistorySource } from "../../model/source.ts";
import { formatTime, type Nanoseconds } from "../../model/time.ts";
import { comparableLine } from "../../row/same-line.ts";
import { asked, routeOf } from "../plan/route.ts";
import { askSmall, isRefusal, linesIn, linesOf, probe, timeOf } from "../plan/table-asks.ts";
import type { RunDescription } from "./run-description.ts";
import { isSameBeginning } from "./same-beginning.ts";

export interface RunIdentity {
  readonly source: HistorySource;
  readonly archive: Archive;
  readonly run: RunDescription;
  readonly committed: Manifest;
  /** The operator says that this is the same source at a new address. */
  readonly isMoved: boolean;
  /** True once rows of the run are to be fetched: then a source that gives no beginning has to show a known row. */
  readonly isToFetch: boolean;
  /** The work is only planned: nothing is remembered. */
  readonly isDry?: boolean;
  readonly retry: RetryPolicy;
  readonly signal: AbortSignal;
}

/** How many of the requested proven rows a source gives exactly as stored. */
type Given = "all" | "some" | "none";

/**
 * Throws `history_identity_conflict` if the source has another run under the id of an archived one: it began at another
 * time or, at a new address or without a known beginning, its rows differ. An address that gave proven rows is remembered
 * as the source's; a run without proven rows shows nothing.
 *
 * True if it gave only some of the requested rows as stored: then the address is remembered once all held rows are
 * compared.
 */
export async function requireSameRun(identity: RunIdentity): Promise<boolean> {
  const { source, archive, run, committed, isMoved, isToFetch } = identity;
  const before = toldBeginning(committed.run.started);
  const now = toldBeginning(run.started);
  if (before !== undefined && now !== undefined && !isSameBeginning(before, now)) {
    throw conflict(
      identity,
      `the run archived under this id began at ${formatTime(before)}, but the gateway's run began at ${formatTime(now)}`,
      "What is archived stays as it is. Archive the gateway's run into another archive.",
    );
  }
  const isKnown =
    committed.source === source.label ||
    (await knownSource(archive, committed.source)).addresses.includes(source.label);
  if (isKnown && (before !== undefined || !isToFetch)) return false;
  if (!isKnown && isMoved) {
    if (identity.isDry !== true) await joinAddress(archive, committed.source, source.label);
    return false;
  }
  const given = await givenRows(identity);
  if (identity.isDry === true && given !== "none") return given === "some";
  if (given === "none") {
    const what = isKnown ? "the gateway" : `${source.label}, which is not the address it was archived from,`;
    throw conflict(
      identity,
      `${what} gives neither the first, the middle nor the last row of the run as proven`,
      "What is archived stays as it is. Archive the other run into another archive; if it is the same gateway at a new " +
        "address, say so once with --source-moved.",
    );
  }
  if (!isKnown && given === "all") await joinAddress(archive, committed.source, source.label);
  return given === "some";
}

/** When a run began; undefined if not given, or given as 0. */
function toldBeginning(started: string | bigint | null | undefined): bigint | undefined {
  return started == null || BigInt(started) === 0n ? undefined : BigInt(started);
}

/** Tables whose rows are the same at every gateway, so they cannot tell gateways apart. */
const marketData: ReadonlySet<TableName> = new Set(["bars", "order_book", "factors"]);

/**
 * How many of the first, the middle and the last proven row the source gives, for the first table that retention has not
 * emptied. Market data decides only if no other table has rows. Undefined if no row was ever proven. Throws the error of a
 * table, or of damaged files, if no other table decides.
 */
async function givenRows(identity: RunIdentity): Promise<Given | undefined> {
  const proven = tables.flatMap((table) => {
    const segments = identity.committed.tables[table.name]?.proven?.segments ?? [];
    const filled = segments.filter(({ rows }) => rows > 0);
    return filled.length === 0 ? [] : [{ table, segments: filled }];
  });
  const own = proven.filter(({ table }) => !marketData.has(table.name));
  let failure: unknown;
  for (const { table, segments } of own.length > 0 ? own : proven) {
    try {
      const given = await givenOf(identity, table, segments);
      // retention may have emptied this table and left another
      if (given !== undefined) return given;
    } catch (thrown) {
      identity.signal.throwIfAborted();
      const { scope, code } = RunvaultError.from(thrown);
      if (scope !== "table" && code !== "archive_damaged") throw thrown;
      failure ??= thrown;
    }
  }
  if (failure !== undefined) throw failure;
  return proven.length === 0 ? undefined : "none";
}

interface StoredRow {
  readonly segment: Segment;
  readonly line: string;
}

/** The same for one table; undefined if the source no longer has any of its rows. */
async function givenOf(
  identity: RunIdentity,
  table: Table,
  segments: readonly Segment[],
): Promise<Given | undefined> {
  const rows = await rowsToAsk(identity, segments);
  const given = await givenAmong(identity, table, rows);
  if (given === "all") return given;
  const begins = await firstLeft(identity, table, rows);
  if (begins === null) return undefined;
  if (begins === undefined) return given;
  return await givenAmong(identity, table, await rowsToAsk(identity, segments, begins));
}

/** The first, the middle and the last row of some segments, counting only rows from `from` on if it is given. */
async function rowsToAsk(
  { archive, committed }: RunIdentity,
  segments: readonly Segment[],
  from?: Nanoseconds,
): Promise<StoredRow[]> {
  const left = segments.filter(({ to }) => from === undefined || BigInt(to) > from);
  const rows = new Map<string, StoredRow>();
  const take = async (segment: Segment | undefined, at: number) => {
    if (segment === undefined) return;
    const key = archive.layout.committedKey(committed, "data", segment.file);
    const lines = linesOf(await readSegment(archive.store, key, segment)).map((line) =>
      line.toString("utf8"),
    );
    const isLeft = (line: string) => from === undefined || BigInt(timeOf(line) ?? from) >= from;
    const line = lines.slice(at).find(isLeft);
    if (line !== undefined) rows.set(line, { segment, line });
  };
  await take(left[0], 0);
  let middle = (left.reduce((sum, segment) => sum + segment.rows, 0) - 1) >> 1;
  const inMiddle = left.find(({ rows: count }) => {
    if (middle < count) return true;
    middle -= count;
    return false;
  });
  await take(inMiddle, middle);
  await take(left.at(-1), -1);
  return [...rows.values()];
}

async function givenAmong(identity: RunIdentity, table: Table, rows: readonly StoredRow[]): Promise<Given> {
  let number = 0;
  for (const { segment, line } of rows) if (await gives(identity, table, segment, line)) number++;
  return number === 0 ? "none" : number === rows.length ? "all" : "some";
}

/** Where the source's rows now begin among those stored; undefined if at the first, null if it has none. */
async function firstLeft(
  { source, run, retry, signal }: RunIdentity,
  table: Table,
  rows: readonly StoredRow[],
): Promise<Nanoseconds | undefined | null> {
  const [first, last] = [rows[0], rows.at(-1)].map((row) => row && timeOf(row.line));
  if (first == null || last == null) return undefined;
  const { instanceId, runId, final } = run;
  const asks = { source, run: { instanceId, runId, final }, table, retry, signal };
  try {
    const found = await probe(asks, { from: BigInt(first), to: BigInt(last) + 1n });
    if (found === undefined) return null;
    return found.ts === undefined || found.ts === BigInt(first) ? undefined : found.ts;
  } catch (thrown) {
    if (!isRefusal(thrown)) throw thrown;
    return undefined;
  }
}

/** Whether the source gives this line among the rows of its timestamp, which fit into a segment. */
async function gives(
  { source, run, retry, signal }: RunIdentity,
  table: Table,
  segment: Segment,
  line: string,
): Promise<boolean> {
  const time = timeOf(line);
  if (time === null) return false;
  const { instanceId, runId, final } = run;
  const from = BigInt(time);
  const to = from + 1n < BigInt(segment.to) ? from + 1n : BigInt(segment.to);
  const asks = { source, run: { instanceId, runId, final }, table, retry, signal };
  const route = routeOf(source, table);
  // a seq numbered here is not part of the source's row
  const comparable = (text: string) =>
    comparableLine(table, route.numbers === "given" ? text : text.replace(/"seq":"\d*"/, '"seq":"0"'));
  const wanted = comparable(line);
  return await askSmall(asks, async () => {
    const request = { ...asks.run, table: table.name, ...asked(route, from, to), signal };
    const mostBytes = route.bounds.from && route.bounds.to ? mostSegmentBytes : Number.POSITIVE_INFINITY;
    for await (const found of linesIn(source.rows(request), mostBytes)) {
      if (comparable(found.toString("utf8")) === wanted) return true;
    }
    return false;
  });
}

function conflict({ run }: RunIdentity, message: string, hint: string): RunvaultError {
  return new RunvaultError("history_identity_conflict", message, {
    scope: "run",
    place: { instance: run.instanceId, run: run.runId },
    hint,
  });
}
