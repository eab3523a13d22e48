import { formatScaled } from "../../model/fixed-point.ts";
import { agreeing, countText } from "../../model/text/plural.ts";
import { formatTime } from "../../model/time.ts";
import type { BarSource, Exact } from "../instruments/instrument.ts";
import type { InstrumentsFile } from "../instruments/read-instruments.ts";
import { resolveInstruments } from "../instruments/resolve-instruments.ts";
import { readRunFacts } from "../instruments/run-facts.ts";
import type { FillColumns, FillOrder } from "../trades/fill-columns.ts";
import { readFills } from "../trades/read-fills.ts";
import { pricesTogether, tradedTables } from "../trades/traded-tables.ts";
import { type MoveColumns, readMoves } from "./account-rows.ts";
import { type BarCloses, readCloses } from "./bar-closes.ts";
import type { BooksSource } from "./books-source.ts";
import { BreakLog, type Off } from "./break-log.ts";
import { type EquityPoints, openPoints } from "./equity-points.ts";
import type { Break, Finding } from "./reconcile-report.ts";
import { mayBeOf, strayText } from "./stray-moves.ts";
import { type Accounting, type Books, type Bridge, type Costs, type Kept, walkBooks } from "./walk-books.ts";

export interface BooksOptions {
  readonly instruments: InstrumentsFile | null;
  readonly accounting: Accounting | "auto";
  readonly order: FillOrder | "auto";
  readonly tolerance: Exact | null;
}

export interface CheckedBooks {
  readonly findings: readonly Finding[];
  readonly points: EquityPoints | null;
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
    "cash and position value separately",
    "spot: position_value = Σ position × last close; margin: that minus its cost",
  ],
  [
    "realized and unrealized profit",
    "unrealized = value - cost of what is open; realized = the rest, minus fees",
  ],
  [
    "positions over all venues",
    "position = Σ bought - Σ sold at all venues; where it is 0, so are position_value and unrealized; from point to point without a fill between them, either moves by Σ position × step of the mark × multiplier",
  ],
] as const;

/** Checks 1 to 5: equity points against fills, money that moved, and bars. */
export async function checkBooks(source: BooksSource, options: BooksOptions): Promise<CheckedBooks> {
  const { lacking } = source;
  const noPoints = lacking("equity");
  if (noPoints !== null) return await unread([noPoints], null);
  const points = await openPoints(source);
  if (points.count === 0) return await unread(["there are no equity points"], points);
  if (points.missing.length > 0) {
    return await unread([`the equity points have no ${points.missing.join(", no ")}`], null);
  }
  const missing = (["fills", "events", "bars"] as const).flatMap((table) => lacking(table) ?? []);
  const moves = lacking("events") === null ? await readOwnMoves(source, points) : null;
  if (lacking("fills") !== null) return { ...(await unread(missing, points)), moves };
  const orders: readonly FillOrder[] = options.order === "auto" ? ["trade_id", "key"] : [options.order];
  const own = new BookRows(source, points, moves, options.instruments);
  let best: {
    readonly books: Books;
    readonly kept: Kept;
    readonly order: FillOrder;
    readonly read: Read;
  } | null = null;
  for (const order of orders) {
    // the rows of one order at a time
    if (best !== null && areInKeyOrder(best.read.fills)) break;
    const read = await own.read(order);
    const books = await walkBooks({ ...read, points, moves: moves ?? noMoves, tolerance: options.tolerance });
    const kept = bestKept(books.kept, options.accounting);
    if (best === null || breaksOf(kept) < breaksOf(best.kept)) best = { books, kept, order, read };
    if (breaksOf(kept) === 0) break;
  }
  const { books, kept, order, read } = best!;
  const { fills } = read;
  const finding = (
    number: 1 | 2 | 3 | 4 | 5,
    log: BreakLog,
    unchecked: readonly string[],
    notes: string[],
  ): Finding => {
    const [name, formula] = names[number - 1]!;
    const first = log.first.map((off) =>
      breakOf(off, { points, moves: moves ?? noMoves, read, scale: books.scale, sumOnly: number === 1 }),
    );
    const largest = log.breaks === 0 ? null : formatScaled(log.largest, books.scale);
    return { number, name, formula, rows: log.rows, breaks: log.breaks, largest, notes, first, unchecked };
  };
  const { after } = books;
  const isAfter = `${after} ${agreeing(after, "fill or event comes", "fills and events come")} after the last point of their account, and ${agreeing(after, "is", "are")} in no point`;
  // if the run is still growing, the next point will include them
  const unseen = source.isFinal && after > 0 ? [isAfter] : [];
  const unknown = [...read.unknown, ...unseen];
  const others = bestKept(books.kept, "auto");
  const bridge = finalQuantities(fills).map(({ quantity, count }, position) => {
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
      ...(after > 0 && !source.isFinal ? [isAfter] : []),
    ]),
    finding(
      3,
      kept.parts,
      unknown,
      kept.parts.rows === 0
        ? []
        : [
            `${kept.accounting} accounting${options.accounting === "auto" ? " (detected)" : ""}`,
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
              ? "average cost, the cost of closed parts truncated toward zero at the ninth decimal"
              : "first in, first out",
            `fills in the order of ${order === "key" ? "their keys" : "their trade ids"}${options.order === "auto" ? " (chosen automatically)" : ""}`,
            ...(kept.toldAbove === 0
              ? []
              : [
                  `${countText(kept.toldAbove, "point")} ${agreeing(kept.toldAbove, "is", "are")} off by the same amount as cash or position value, which checks 1 to 3 report`,
                ]),
          ],
    ),
    finding(5, books.bridge.log, read.unmarked, [...bridge, ...shownNotes(books.bridge, fills)]),
  ];
  const found = kept.parts.rows === 0 ? { accounting: null, costs: null, order: null } : { ...kept, order };
  const { accounting, costs, order: inOrder } = found;
  return { findings, points, moves, accounting, costs, order: inOrder, instruments: read.taken };
}

/** Used if money is unknown: none moved. */
const noMoves: MoveColumns = {
  ...{ count: 0, scale: 0, amount: [] },
  ...{ ts: new BigInt64Array(0), seq: new BigUint64Array(0), key: new Int32Array(0) },
  isTransfer: new Uint8Array(0),
  strays: [],
};

/** Notes about positions in points, if other checks report deviations. */
function shownNotes({ toldAbove, firstTold }: Bridge, fills: FillColumns): string[] {
  if (toldAbove === 0) return [];
  const note = `${countText(toldAbove, "point")} ${agreeing(toldAbove, "moves", "move")} as if another position were held, which checks 1 to 4 report`;
  if (firstTold === null) return [note];
  const { ts, seq, position, shown, filled } = firstTold;
  const { symbol } = fills.positions[position]!.instrument;
  const [held, left] = [shown, filled].map((quantity) => formatScaled(quantity, fills.scales.quantity));
  return [
    `${note}: the first, equity ${seq} at ${formatTime(ts)}, as if ${held} ${symbol} were held, but the fills leave ${left}`,
  ];
}

/** What the fills of each position leave. */
function finalQuantities({ count, position, quantity, isBuy, positions }: FillColumns) {
  const left = positions.map(() => ({ quantity: 0n, count: 0 }));
  for (let fill = 0; fill < count; fill++) {
    const own = left[position[fill]!]!;
    own.quantity += isBuy[fill] === 1 ? quantity[fill]! : -quantity[fill]!;
    own.count++;
  }
  return left;
}

/** Whether trade ids and keys give the same order of fills. */
function areInKeyOrder({ count, ts, seq }: FillColumns): boolean {
  for (let fill = 1; fill < count; fill++)
    if (ts[fill] === ts[fill - 1] && seq[fill]! < seq[fill - 1]!) return false;
  return true;
}

async function readOwnMoves(source: BooksSource, points: EquityPoints): Promise<MoveColumns> {
  await source.showOnly("events", source.run);
  return await readMoves(source.connection, source.exactTypes("events"), points.keys);
}

/** Only the first check, which needs just the points. */
async function unread(reasons: readonly string[], points: EquityPoints | null): Promise<CheckedBooks> {
  const unchecked = reasons.length === 0 ? ["rows are missing"] : reasons;
  const none = { rows: 0, breaks: 0, largest: null, notes: [], first: [], unchecked };
  const findings = names.map(([name, formula], index): Finding => {
    return { number: index + 1, name, formula, ...none };
  });
  if (points !== null && points.count > 0) findings[0] = { ...findings[0]!, ...(await sumsOf(points)) };
  return { findings, points, moves: null, accounting: null, costs: null, order: null, instruments: [] };
}

/** The first check if only the points can be read. */
async function sumsOf(
  points: EquityPoints,
): Promise<Pick<Finding, "rows" | "breaks" | "largest" | "first" | "unchecked">> {
  const log = new BreakLog();
  for await (const { rows, ts, seq, key, ...amounts } of points.chunks()) {
    for (let row = 0; row < rows; row++) {
      const off = amounts.equity[row]! - amounts.cash[row]! - amounts.positionValue[row]!;
      const at = { series: key[row]!, ts: ts[row]!, seq: seq[row]! };
      log.add(at, off, "equity is not cash + position_value");
    }
  }
  const { scale } = points;
  const first = log.first.map((off) =>
    breakOf(off, { points, moves: noMoves, read: null, scale, sumOnly: true }),
  );
  const largest = log.breaks === 0 ? null : formatScaled(log.largest, scale);
  return { rows: points.count, breaks: log.breaks, largest, first, unchecked: [] };
}

/** What the pass needs beside points and moves. */
interface Read {
  readonly fills: FillColumns;
  readonly closes: BarCloses;
  readonly sources: readonly number[];
  readonly keys: readonly number[];
  readonly isKnown: readonly boolean[];
  readonly isMarked: readonly boolean[];
  /** Why money or positions are unknown. */
  readonly unknown: readonly string[];
  readonly unmarked: readonly string[];
  /** The properties used for the instruments. */
  readonly taken: readonly string[];
}

/** Reads a run's fills in either order, and its bars and instruments once. */
class BookRows {
  readonly #source: BooksSource;
  readonly #points: EquityPoints;
  readonly #moves: MoveColumns | null;
  readonly #file: InstrumentsFile | null;
  #instruments: ReturnType<typeof resolveInstruments> | null = null;
  #closes: { readonly closes: BarCloses; readonly sources: readonly number[] } | null = null;

  constructor(
    source: BooksSource,
    points: EquityPoints,
    moves: MoveColumns | null,
    file: InstrumentsFile | null,
  ) {
    this.#source = source;
    this.#points = points;
    this.#moves = moves;
    this.#file = file;
  }

  async read(order: FillOrder): Promise<Read> {
    const { run, connection, exactTypes } = this.#source;
    for (const table of tradedTables) await this.#source.showOnly(table, run);
    this.#instruments ??= resolveInstruments(await readRunFacts(connection, run), this.#file);
    const instruments = this.#instruments;
    const fills = await readFills(connection, {
      ...{ run, instruments, exactTypes: exactTypes("fills"), priceType: pricesTogether(exactTypes) },
      ...{ order, withOrders: false },
    });
    this.#closes ??= await this.#readCloses(fills);
    return { fills, ...this.#closes, ...this.#judge(fills), taken: instruments.taken };
  }

  async #readCloses(fills: FillColumns) {
    const found = new Map<string, number>();
    const wanted: BarSource[] = [];
    const sources = fills.positions.map(({ instrument: { bars } }) => {
      if (bars === null) return -1;
      const name = JSON.stringify([bars.symbol, bars.venue, `${bars.intervalNs}`]);
      const source = found.get(name) ?? wanted.push(bars) - 1;
      found.set(name, source);
      return source;
    });
    const { connection, exactTypes } = this.#source;
    return { closes: await readCloses(connection, wanted, pricesTogether(exactTypes)), sources };
  }

  /** Which keys can be checked, and why the others cannot. */
  #judge(fills: FillColumns): Pick<Read, "keys" | "isKnown" | "isMarked" | "unknown" | "unmarked"> {
    const [source, points, moves] = [this.#source, this.#points, this.#moves];
    const { closes, sources } = this.#closes!;
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
      if (noBars === null && (closes.counts[sources[position]!] ?? 0) === 0)
        loseMark(key, `there are no bars of ${text} to mark it with`);
    }
    for (const [position, { count, seq, currencies }] of foreignFees(fills)) {
      const { account, portfolio, instrument } = fills.positions[position]!;
      const { symbol, currency } = instrument;
      // no row says whether the account paid them in their own currency, or their value in the other
      for (const [place, key] of points.keys.entries())
        if (key.account === account && key.portfolio === portfolio && currencies.has(key.currency))
          isKnown[place] = false;
      lose(
        keys[position]!,
        `${countText(count, "fill")} of ${symbol} ${agreeing(count, "has a fee", "have fees")} in a currency other than ${currency}, the first with seq ${seq}`,
      );
    }
    for (const stray of moves?.strays ?? []) {
      unknown.push(strayText(stray));
      for (const [key, own] of points.keys.entries()) if (mayBeOf(stray, own)) isKnown[key] = false;
    }
    return { keys, isKnown, isMarked, unknown, unmarked };
  }
}

interface ForeignFees {
  count: number;
  /** Of the first of these fills. */
  readonly seq: bigint;
  readonly currencies: Set<string>;
}

/** By position: the fills whose fee is in another currency than the instrument's. */
function foreignFees(fills: FillColumns): ReadonlyMap<number, ForeignFees> {
  const foreign = new Map<number, ForeignFees>();
  for (let fill = 0; fill < fills.count; fill++) {
    const position = fills.position[fill]!;
    const currency = fills.feeCurrencies[fills.feeCurrency[fill]!]!;
    if (fills.fee[fill] === 0n || currency === fills.positions[position]!.instrument.currency) continue;
    const seen = foreign.get(position) ?? { count: 0, seq: fills.seq[fill]!, currencies: new Set() };
    seen.count++;
    seen.currencies.add(currency);
    foreign.set(position, seen);
  }
  return foreign;
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
  readonly points: EquityPoints;
  readonly moves: MoveColumns;
  /** Null if only the points were read. */
  readonly read: Pick<Read, "fills" | "keys"> | null;
  readonly scale: number;
  readonly sumOnly: boolean;
}

/** A break with the rows between the last good point and it. */
function breakOf({ series, ts, seq, before, amount, what }: Off, around: Around): Break {
  const { points, moves, read, scale, sumOnly } = around;
  const rows: { table: string; seq: string }[] = [];
  let found = 0;
  const take = (table: string, of: bigint) => {
    found++;
    if (rows.length < mostRows - 1) rows.push({ table, seq: String(of) });
  };
  if (!sumOnly && read !== null) {
    const { fills, keys } = read;
    for (let fill = firstAfter(fills.ts, before); fill < fills.count && fills.ts[fill]! <= ts; fill++) {
      if (keys[fills.position[fill]!] === series) take("fills", fills.seq[fill]!);
    }
    for (let move = firstAfter(moves.ts, before); move < moves.count && moves.ts[move]! <= ts; move++) {
      if (moves.key[move] === series) take("events", moves.seq[move]!);
    }
  }
  const moreRows = found - rows.length;
  rows.push({ table: "equity", seq: String(seq) });
  return {
    at: formatTime(ts),
    amount: formatScaled(amount, scale),
    unit: points.keys[series]!.currency,
    what,
    rows,
    moreRows,
  };
}

/** The first index in a rising column after an instant; 0 without one. */
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
