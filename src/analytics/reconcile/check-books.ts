import type { DuckDBConnection } from "@duckdb/node-api";
import { formatScaled } from "../../model/fixed-point.ts";
import type { ExactTypes } from "../../model/profile/exact-types.ts";
import type { TableName } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import { agreeing, countText } from "../../model/text/plural.ts";
import { formatTime } from "../../model/time.ts";
import type { Exact } from "../instruments/instrument.ts";
import type { InstrumentsFile } from "../instruments/read-instruments.ts";
import type { FillColumns, FillOrder } from "../trades/fill-columns.ts";
import { type RunTrades, readRunTrades } from "../trades/run-trades.ts";
import { type MoveColumns, type PointColumns, readMoves, readPoints } from "./account-rows.ts";
import type { BreakLog, Off } from "./break-log.ts";
import type { Break, Finding } from "./reconcile-report.ts";
import { mayBeOf, strayText } from "./stray-moves.ts";
import { type Accounting, type Books, type Bridge, type Costs, type Kept, walkBooks } from "./walk-books.ts";

export interface BooksOptions {
  readonly instruments: InstrumentsFile | null;
  readonly accounting: Accounting | "auto";
  readonly order: FillOrder | "auto";
  readonly tolerance: Exact | null;
}

/** The rows of a run that its books are made of. */
export interface BooksSource {
  readonly run: RunRef;
  readonly connection: DuckDBConnection;
  showOnly(name: TableName, run: RunRef): Promise<void>;
  exactTypes(table: TableName): ExactTypes;
  /** Why the rows of a table cannot be relied on; null where they can. */
  lacking(table: TableName): string | null;
}

export interface CheckedBooks {
  readonly findings: readonly Finding[];
  readonly points: PointColumns | null;
  readonly moves: MoveColumns | null;
  readonly accounting: Accounting | null;
  readonly costs: Costs | null;
  readonly order: FillOrder | null;
  readonly instruments: readonly string[];
}

const names = [
  ["equity is the sum of its parts", "equity = cash + position_value"],
  [
    "equity from the rows",
    "equity = transfers + funding, interest, fees and adjustments of events + Σ fills (∓ price × quantity × multiplier - fee) + Σ position × last close × multiplier",
  ],
  [
    "cash and position value apart",
    "spot: position_value = Σ position × last close; margin: that less what it cost",
  ],
  [
    "realized and unrealized profit",
    "unrealized = value - cost of what is open; realized = the rest, less fees",
  ],
  [
    "positions over all venues",
    "position = Σ bought - Σ sold at all venues; where it is 0, so are position_value and unrealized; from point to point without a fill between them, either moves by Σ position × step of the mark × multiplier",
  ],
] as const;

/** Checks 1 to 5: equity points against fills, money that moved, and bars. */
export async function checkBooks(source: BooksSource, options: BooksOptions): Promise<CheckedBooks> {
  const { run, connection, lacking, exactTypes } = source;
  const noPoints = lacking("equity");
  if (noPoints !== null) return unread([noPoints], null, source);
  await source.showOnly("equity", run);
  const points = await readPoints(connection, exactTypes("equity"), run);
  if (points.count === 0) return unread(["there are no equity points"], points, source);
  const missing = (["fills", "events", "bars"] as const).flatMap((table) => lacking(table) ?? []);
  const moves = lacking("events") === null ? await readOwnMoves(source, points) : null;
  if (lacking("fills") !== null) return { ...unread(missing, points, source), moves };
  const orders: readonly FillOrder[] = options.order === "auto" ? ["trade_id", "key"] : [options.order];
  let best: {
    readonly books: Books;
    readonly kept: Kept;
    readonly order: FillOrder;
    readonly read: Read;
  } | null = null;
  for (const order of orders) {
    const read = await readBooks(source, points, moves, order, options.instruments);
    const books = walkBooks({ ...read, points, moves: moves ?? noMoves, tolerance: options.tolerance });
    const kept = bestKept(books.kept, options.accounting);
    if (best === null || breaksOf(kept) < breaksOf(best.kept)) best = { books, kept, order, read };
    if (breaksOf(kept) === 0) break;
  }
  const { books, kept, order, read } = best!;
  const { fills } = read;
  const unitOf = (point: number) => points.keys[points.key[point]!]!.currency;
  const finding = (
    number: 1 | 2 | 3 | 4 | 5,
    log: BreakLog,
    unchecked: readonly string[],
    notes: string[],
  ): Finding => {
    const [name, formula] = names[number - 1]!;
    const first = log.first.map((off) =>
      breakOf(off, {
        points,
        moves: moves ?? noMoves,
        fills,
        read,
        scale: books.scale,
        unitOf,
        sumOnly: number === 1,
      }),
    );
    const largest = log.breaks === 0 ? null : formatScaled(log.largest, books.scale);
    return { number, name, formula, rows: log.rows, breaks: log.breaks, largest, notes, first, unchecked };
  };
  const { unknown } = read;
  const others = bestKept(books.kept, "auto");
  const bridge = read.trades.walk("match").map(({ position, quantity, fills: count }) => {
    const { instrument } = fills.positions[position]!;
    const held = formatScaled(quantity, fills.scales.quantity);
    return `${instrument.symbol} at ${instrument.venues.join(", ")}: ${countText(count, "fill")} ${agreeing(count, "leaves", "leave")} ${held}`;
  });
  const findings = [
    finding(1, books.sum, [], []),
    finding(2, books.equity, unknown, [
      ...(books.markedAtFill === 0
        ? []
        : [
            `${countText(books.markedAtFill, "point")} ${agreeing(books.markedAtFill, "comes", "come")} before a symbol's first bar and ${agreeing(books.markedAtFill, "is", "are")} marked at its last fill`,
          ]),
      ...(books.after === 0
        ? []
        : [
            `${books.after} ${agreeing(books.after, "fill or event comes", "fills and events come")} after the last point, and ${agreeing(books.after, "is", "are")} in none`,
          ]),
    ]),
    finding(
      3,
      kept.parts,
      unknown,
      kept.parts.rows === 0
        ? []
        : [
            `${kept.accounting} accounting${options.accounting === "auto" ? ", found" : ""}`,
            ...(others.accounting !== kept.accounting && others.parts.breaks < kept.parts.breaks
              ? [
                  `under ${others.accounting} accounting ${countText(others.parts.breaks, "point")} ${agreeing(others.parts.breaks, "breaks", "break")}`,
                ]
              : []),
          ],
    ),
    finding(
      4,
      kept.profit,
      unknown,
      kept.profit.rows === 0
        ? []
        : [
            kept.costs === "average"
              ? "average cost, what is closed truncated toward zero at the ninth decimal"
              : "first in, first out",
            `fills in the order of ${order === "key" ? "their keys" : "their trade ids"}${options.order === "auto" ? ", found" : ""}`,
            ...(kept.toldAbove === 0
              ? []
              : [
                  `${countText(kept.toldAbove, "point")} ${agreeing(kept.toldAbove, "is", "are")} off by the same amount as cash or position value, which checks 1 to 3 tell`,
                ]),
          ],
    ),
    finding(5, books.bridge.log, read.unmarked, [...bridge, ...shownNotes(books.bridge, points, fills)]),
  ];
  const found = kept.parts.rows === 0 ? { accounting: null, costs: null, order: null } : { ...kept, order };
  const { accounting, costs, order: inOrder } = found;
  const { taken } = read.trades.instruments;
  return { findings, points, moves, accounting, costs, order: inOrder, instruments: taken };
}

/** Where nothing is known of money, none moved. */
const noMoves: MoveColumns = {
  ...{ count: 0, scale: 0, amount: [] },
  ...{ ts: new BigInt64Array(0), seq: new BigInt64Array(0), key: new Int32Array(0) },
  isTransfer: new Uint8Array(0),
  strays: [],
};

/** What points show of positions where other checks tell that something is off. */
function shownNotes({ toldAbove, firstTold }: Bridge, points: PointColumns, fills: FillColumns): string[] {
  if (toldAbove === 0) return [];
  const note = `${countText(toldAbove, "point")} ${agreeing(toldAbove, "moves", "move")} as another position would, of which checks 1 to 4 tell`;
  if (firstTold === null) return [note];
  const { point, position, shown, filled } = firstTold;
  const { symbol } = fills.positions[position]!.instrument;
  const [held, left] = [shown, filled].map((quantity) => formatScaled(quantity, fills.scales.quantity));
  return [
    `${note}: the first, equity ${points.seq[point]} at ${formatTime(points.ts[point]!)}, as ${held} ${symbol} would, and the fills leave ${left}`,
  ];
}

async function readOwnMoves(source: BooksSource, points: PointColumns): Promise<MoveColumns> {
  await source.showOnly("events", source.run);
  return await readMoves(source.connection, source.exactTypes("events"), points.keys);
}

/** Only the first check needs the points alone. */
function unread(reasons: readonly string[], points: PointColumns | null, _: BooksSource): CheckedBooks {
  const findings = names.map(([name, formula], index): Finding => {
    const unchecked = reasons.length === 0 ? ["rows are missing"] : reasons;
    const none = { rows: 0, breaks: 0, largest: null, notes: [], first: [], unchecked };
    if (index > 0 || points === null || points.count === 0)
      return { number: index + 1, name, formula, ...none };
    return { number: 1, name, formula, ...sumsOf(points) };
  });
  return { findings, points, moves: null, accounting: null, costs: null, order: null, instruments: [] };
}

/** The first check where there is nothing but the points. */
function sumsOf(
  points: PointColumns,
): Pick<Finding, "rows" | "breaks" | "largest" | "notes" | "first" | "unchecked"> {
  const first: Break[] = [];
  let [breaks, largest] = [0, 0n];
  for (let point = 0; point < points.count; point++) {
    const off = points.equity[point]! - points.cash[point]! - points.positionValue[point]!;
    if (off === 0n) continue;
    breaks++;
    if (off * off > largest * largest) largest = off;
    if (first.length === 20) continue;
    first.push({
      at: formatTime(points.ts[point]!),
      amount: formatScaled(off, points.scale),
      unit: points.keys[points.key[point]!]!.currency,
      what: "equity is not cash + position_value",
      rows: [{ table: "equity", seq: String(points.seq[point]) }],
      moreRows: 0,
    });
  }
  const shown = breaks === 0 ? null : formatScaled(largest, points.scale);
  return { rows: points.count, breaks, largest: shown, notes: [], first, unchecked: [] };
}

interface Read {
  readonly trades: RunTrades;
  readonly fills: FillColumns;
  readonly isKnown: readonly boolean[];
  readonly isMarked: readonly boolean[];
  /** Why money is not known, and why positions are not. */
  readonly unknown: readonly string[];
  readonly unmarked: readonly string[];
  barsOf: RunTrades["barsOf"];
  keyOf(position: number): number;
}

async function readBooks(
  source: BooksSource,
  points: PointColumns,
  moves: MoveColumns | null,
  order: FillOrder,
  instruments: InstrumentsFile | null,
): Promise<Read> {
  const trades = await readRunTrades(source, source.exactTypes, source.run, { instruments, order });
  const { fills } = trades;
  const keys = fills.positions.map(({ account, portfolio, instrument: { currency } }) =>
    points.keys.findIndex(
      (key) => key.account === account && key.portfolio === portfolio && key.currency === currency,
    ),
  );
  const unknown: string[] = [];
  const unmarked: string[] = [];
  const isKnown = points.keys.map(() => moves !== null);
  const isMarked = points.keys.map(() => true);
  if (moves === null) unknown.push(source.lacking("events")!);
  const lose = (key: number, reason: string) => {
    if (key >= 0) isKnown[key] = false;
    unknown.push(reason);
  };
  const loseMark = (key: number, reason: string) => {
    if (key >= 0) isMarked[key] = false;
    unmarked.push(reason);
    lose(key, reason);
  };
  const noBars = source.lacking("bars");
  if (noBars !== null) for (const key of points.keys.keys()) loseMark(key, noBars);
  for (const [position, { instrument }] of fills.positions.entries()) {
    const key = keys[position]!;
    const text = `${instrument.symbol} at ${instrument.venues.join(", ")}`;
    if (key < 0) loseMark(key, `there are no equity points in ${instrument.currency} for ${text}`);
    if (noBars === null && (trades.barsOf(position)?.count ?? 0) === 0)
      loseMark(key, `there are no bars of ${text} to mark it to`);
  }
  const foreign = new Map<number, { count: number; seq: bigint }>();
  for (let fill = 0; fill < fills.count; fill++) {
    const position = fills.position[fill]!;
    const currency = fills.feeCurrencies[fills.feeCurrency[fill]!];
    if (fills.fee[fill] === 0n || currency === fills.positions[position]!.instrument.currency) continue;
    const seen = foreign.get(position) ?? { count: 0, seq: fills.seq[fill]! };
    seen.count++;
    foreign.set(position, seen);
  }
  for (const [position, { count, seq }] of foreign) {
    const { instrument } = fills.positions[position]!;
    lose(
      keys[position]!,
      `${countText(count, "fill")} of ${instrument.symbol} ${agreeing(count, "has a fee", "have fees")} in another currency than ${instrument.currency}, the first with seq ${seq}`,
    );
  }
  for (const stray of moves?.strays ?? []) {
    unknown.push(strayText(stray));
    for (const [key, own] of points.keys.entries()) if (mayBeOf(stray, own)) isKnown[key] = false;
  }
  return {
    trades,
    fills,
    isKnown,
    isMarked,
    unknown,
    unmarked,
    barsOf: trades.barsOf,
    keyOf: (position) => keys[position]!,
  };
}

function breaksOf({ parts, profit }: Kept): number {
  return parts.breaks + profit.breaks;
}

function bestKept(kept: readonly Kept[], accounting: Accounting | "auto"): Kept {
  const allowed = kept.filter((one) => accounting === "auto" || one.accounting === accounting);
  return allowed.reduce((best, one) => (breaksOf(one) < breaksOf(best) ? one : best));
}

/** Rows that a break lists. */
const mostRows = 12;

interface Around {
  readonly points: PointColumns;
  readonly moves: MoveColumns;
  readonly fills: FillColumns;
  readonly read: Read;
  readonly scale: number;
  readonly sumOnly: boolean;
  unitOf(point: number): string;
}

/** A break with the rows between the last good point and it. */
function breakOf({ point, before, amount, what }: Off, around: Around): Break {
  const { points, moves, fills, read, scale, unitOf, sumOnly } = around;
  const to = points.ts[point]!;
  const key = points.key[point]!;
  const rows: { table: string; seq: string }[] = [];
  let found = 0;
  const take = (table: string, seq: bigint) => {
    found++;
    if (rows.length < mostRows - 1) rows.push({ table, seq: String(seq) });
  };
  const from = before < 0 ? null : points.ts[before]!;
  if (!sumOnly) {
    for (let fill = firstAfter(fills.ts, from); fill < fills.count && fills.ts[fill]! <= to; fill++) {
      if (read.keyOf(fills.position[fill]!) === key) take("fills", fills.seq[fill]!);
    }
    for (let move = firstAfter(moves.ts, from); move < moves.count && moves.ts[move]! <= to; move++) {
      if (moves.key[move] === key) take("events", moves.seq[move]!);
    }
  }
  const moreRows = found - rows.length;
  rows.push({ table: "equity", seq: String(points.seq[point]) });
  return {
    at: formatTime(to),
    amount: formatScaled(amount, scale),
    unit: unitOf(point),
    what,
    rows,
    moreRows,
  };
}

/** The first place in a rising column behind an instant; 0 where there is none. */
function firstAfter(ts: BigInt64Array, instant: bigint | null): number {
  if (instant === null) return 0;
  let [from, to] = [0, ts.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (ts[middle]! > instant) to = middle;
    else from = middle + 1;
  }
  return from;
}
