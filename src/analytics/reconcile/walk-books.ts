import { divideHalfEven } from "../../model/fixed-point.ts";
import type { FillColumns } from "../trades/fill-columns.ts";
import { valuationOf } from "../trades/valuation.ts";
import type { MoveColumns } from "./account-rows.ts";
import { AccountSums, HeldPosition } from "./account-sums.ts";
import type { BarCloses } from "./bar-closes.ts";
import { BreakLog, type Place } from "./break-log.ts";
import type { EquityPoints, PointChunk } from "./equity-points.ts";

/** How equity points report an account's holdings. */
export const accountings = ["spot", "margin"] as const;
export type Accounting = (typeof accountings)[number];
/** How the cost of a closed position is computed. */
export type Costs = "average" | "fifo";

/** A way of keeping books, and the deviations from it. */
export interface Kept {
  readonly accounting: Accounting;
  readonly costs: Costs;
  /** Cash and position value separately. */
  readonly parts: BreakLog;
  /** Realized and unrealized profit. */
  readonly profit: BreakLog;
  /** Points whose profit deviates as much as cash or position value, where it is reported. */
  toldAbove: number;
}

/** Findings about the books. Amounts are in money, of `scale` decimals. */
export interface Books {
  readonly scale: number;
  readonly sum: BreakLog;
  readonly equity: BreakLog;
  readonly kept: readonly Kept[];
  readonly bridge: Bridge;
  /** Points at which an open position was marked to its last fill, because its bars begin later. */
  readonly markedAtFill: number;
  /** Fills and events after their account's last point, which no reported figure covers. */
  readonly after: number;
}

/** What the rows show about positions, without cash, costs, fees or transfers. */
export interface Bridge {
  /**
   * Points without a position, and successive points without a fill in between, whose difference shows the holdings.
   */
  readonly log: BreakLog;
  /** Of the points: those at which the fills leave no position. */
  flat: number;
  /** Points that show another position than the fills, if checks 1 to 4 already report a deviation. */
  toldAbove: number;
  /** The first of these at which one position alone is open. */
  firstTold: ShownPosition | null;
}

/** A position that two points show, of a series with one instrument. */
export interface ShownPosition extends Place {
  /** By index. */
  readonly position: number;
  /** Signed, in units of the fills' quantities, rounded half-even. */
  readonly shown: bigint;
  readonly filled: bigint;
}

export interface BooksWalk {
  readonly points: EquityPoints;
  readonly moves: MoveColumns;
  readonly fills: FillColumns;
  readonly closes: BarCloses;
  /** By position: index in the sources of the closes; -1 if it has no bars. */
  readonly sources: readonly number[];
  /** By position: index in the keys of the points; -1 if there are none of its account, portfolio and currency. */
  readonly keys: readonly number[];
  /** By key: whether money can be computed from the rows. */
  readonly isKnown: readonly boolean[];
  /** By key: whether positions can be valued, whatever is known of money. */
  readonly isMarked: readonly boolean[];
  /** In money; null is zero, and for inverse contracts one unit of the ninth decimal a fill. */
  readonly tolerance: { readonly value: bigint; readonly scale: number } | null;
}

const bookedDecimals = 9;

/**
 * The one pass over a run's equity points with its fills, money and bars, in exact integers. Each deviation is reported
 * once, by the first check that can name it:
 *
 * - `sum`: equity is not cash + position_value.
 * - `equity`: neither equity nor cash + position_value matches the rows before it.
 * - `parts`: cash and position_value are both wrong. If only one is, their sum is wrong too, which `equity` reports,
 *   unless it is within a tolerance.
 * - `profit`: unrealized is off by another amount than position_value, or realized by another than cash.
 * - `bridge`: a point at which the fills leave no position, and position_value or unrealized is not zero; or that differs
 *   from the one before, without a fill between them, by another amount than the positions from fills times the step of
 *   their marks. If money is known, the checks above report the second, too, and it is only noted.
 */
export async function walkBooks(walk: BooksWalk): Promise<Books> {
  const pass = new BooksPass(walk);
  for await (const chunk of walk.points.chunks()) pass.take(chunk);
  return pass.books();
}

class BooksPass {
  readonly #walk: BooksWalk;
  readonly #scale: number;
  // what makes money of an amount
  readonly #ofPoint: bigint;
  readonly #ofMove: bigint;
  readonly #ofFee: bigint;
  readonly #given: bigint | null;
  readonly #accounts: readonly AccountSums[];
  readonly #positions: readonly HeldPosition[];
  readonly #stale: number[] = [];
  /** Positions by the source of their bars, and the last bar of each that has closed. */
  readonly #bySource: readonly (readonly number[])[];
  readonly #bars: Int32Array;
  #fill = 0;
  #move = 0;
  #bar = 0;
  readonly #sum = new BreakLog();
  readonly #equity = new BreakLog();
  readonly #spotAverage: Kept;
  readonly #spotFifo: Kept;
  readonly #marginAverage: Kept;
  readonly #marginFifo: Kept;
  readonly #bridge: Bridge = { log: new BreakLog(), flat: 0, toldAbove: 0, firstTold: null };
  #markedAtFill = 0;
  /** By key: the instant of the last point. */
  readonly #lastPoints: BigInt64Array;

  constructor(walk: BooksWalk) {
    const { points, moves, tolerance, sources } = walk;
    const scale = Math.max(walk.fills.scales.money, points.scale, moves.scale, tolerance?.scale ?? 0);
    const fills = { ...walk.fills, scales: { ...walk.fills.scales, money: scale } };
    const up = (from: number) => 10n ** BigInt(scale - from);
    this.#walk = walk;
    this.#scale = scale;
    [this.#ofPoint, this.#ofMove, this.#ofFee] = [up(points.scale), up(moves.scale), up(fills.scales.fee)];
    this.#given = tolerance === null ? null : tolerance.value * up(tolerance.scale);
    this.#accounts = points.keys.map(() => new AccountSums());
    this.#lastPoints = new BigInt64Array(points.keys.length);
    this.#positions = fills.positions.map(({ instrument }, position) => {
      // accounts without points get their own sums
      const account = this.#accounts[walk.keys[position]!] ?? new AccountSums();
      const value = valuationOf(instrument, fills.scales);
      return new HeldPosition(account, fills, value, instrument.kind === "linear");
    });
    const bySource = walk.closes.counts.map((): number[] => []);
    for (const [position, source] of sources.entries()) bySource[source]?.push(position);
    this.#bySource = bySource;
    this.#bars = new Int32Array(bySource.length).fill(-1);
    // a position's cost is in neither part under spot
    const spotParts = new BreakLog();
    this.#spotAverage = newKept("spot", "average", spotParts);
    this.#spotFifo = newKept("spot", "fifo", spotParts);
    this.#marginAverage = newKept("margin", "average", new BreakLog());
    this.#marginFifo = newKept("margin", "fifo", new BreakLog());
  }

  books(): Books {
    const kept = [this.#spotAverage, this.#spotFifo, this.#marginAverage, this.#marginFifo];
    return {
      ...{ scale: this.#scale, sum: this.#sum, equity: this.#equity, kept, bridge: this.#bridge },
      markedAtFill: this.#markedAtFill,
      after: this.#countAfter(),
    };
  }

  #countAfter(): number {
    const { fills, moves, keys } = this.#walk;
    const last = this.#lastPoints;
    const earliest = last.reduce((least, ts) => (ts < least ? ts : least), last[0] ?? 0n);
    let after = 0;
    const count = (ts: bigint, key: number) => {
      // money without any point is reported separately
      if (key >= 0 && ts > last[key]!) after++;
    };
    for (let fill = fills.count - 1; fill >= 0 && fills.ts[fill]! > earliest; fill--)
      count(fills.ts[fill]!, keys[fills.position[fill]!]!);
    for (let move = moves.count - 1; move >= 0 && moves.ts[move]! > earliest; move--)
      count(moves.ts[move]!, moves.key[move]!);
    return after;
  }

  take(chunk: PointChunk): void {
    const { rows, ts, key } = chunk;
    const at = new RowPlace(chunk);
    for (let row = 0; row < rows; row++) {
      at.row = row;
      this.#advance(ts[row]!);
      this.#check(at, chunk, row, this.#accounts[key[row]!]!);
      this.#lastPoints[key[row]!] = ts[row]!;
    }
  }

  /** Books everything that happened up to and including an instant. */
  #advance(ts: bigint): void {
    const { fills, moves, closes, keys, sources } = this.#walk;
    for (; this.#bar < closes.count && closes.ts[this.#bar]! <= ts; this.#bar++) {
      const source = closes.source[this.#bar]!;
      this.#bars[source] = this.#bar;
      for (const position of this.#bySource[source]!)
        if (this.#positions[position]!.isOpen) this.#unsettle(position);
    }
    for (; this.#fill < fills.count && fills.ts[this.#fill]! <= ts; this.#fill++) {
      const position = fills.position[this.#fill]!;
      this.#positions[position]!.add(this.#fill, fills.fee[this.#fill]! * this.#ofFee);
      this.#unsettle(position);
    }
    for (; this.#move < moves.count && moves.ts[this.#move]! <= ts; this.#move++) {
      const account = this.#accounts[moves.key[this.#move]!];
      if (account === undefined) continue;
      const amount = moves.amount[this.#move]! * this.#ofMove;
      account.paid += amount;
      if (moves.isTransfer[this.#move] === 1) account.transfers += amount;
    }
    for (let position = this.#stale.pop(); position !== undefined; position = this.#stale.pop()) {
      // a position without points needs no value
      const bar = keys[position]! < 0 ? -1 : (this.#bars[sources[position]!] ?? -1);
      this.#positions[position]!.settle(bar < 0 ? null : closes.price[bar]!);
    }
  }

  #unsettle(position: number): void {
    const held = this.#positions[position]!;
    if (held.isStale) return;
    held.isStale = true;
    this.#stale.push(position);
  }

  #check(at: RowPlace, chunk: PointChunk, row: number, account: AccountSums): void {
    const { isKnown, isMarked } = this.#walk;
    const up = this.#ofPoint;
    const { paid, value } = account;
    const shownCash = chunk.cash[row]!;
    const shownValue = chunk.positionValue[row]!;
    const unsummedOff = (chunk.equity[row]! - shownCash - shownValue) * up;
    const positionValue = shownValue * up;
    const unrealized = chunk.unrealized[row]! * up;
    const allowed = account.hasInverse ? this.#allowedOf(account) : this.#given;
    const unsummed = beyond(unsummedOff, allowed);
    this.#sum.rows++;
    this.#sum.add(at, unsummed, said.sum);
    const valueOff = positionValue - value;
    const unrealizedOff = unrealized - value;
    const isKnownHere = isKnown[at.series]!;
    if (account.open === 0) this.#checkFlat(at, positionValue, unrealized, allowed);
    else if (isMarked[at.series] && account.fillsBefore === account.fills) {
      const moved = beyond(valueOff - account.valueOffBefore, allowed);
      const off = moved === 0n ? beyond(unrealizedOff - account.unrealizedOffBefore, allowed) : moved;
      this.#bridge.log.rows++;
      if (!isKnownHere) this.#bridge.log.add(at, off, said.step);
      else if (off !== 0n) {
        this.#bridge.toldAbove++;
        this.#bridge.firstTold ??= this.#shownPosition(at, account, off);
      }
    }
    account.fillsBefore = account.fills;
    account.valueBefore = value;
    account.valueOffBefore = valueOff;
    account.unrealizedOffBefore = unrealizedOff;
    if (!isKnownHere) return;
    if (account.openAtFill > 0) this.#markedAtFill++;
    const cashOff = shownCash * up - paid;
    const summedOff = cashOff + valueOff;
    const whole = beyond(summedOff + unsummedOff, allowed);
    // if the parts match what is expected, only the sum is off, and the other way round; a sum within a tolerance need
    // not be reported there
    const isOff = whole !== 0n && (unsummed === 0n || beyond(summedOff, allowed) !== 0n);
    const isTotalTold = isOff || unsummed !== 0n;
    this.#equity.rows++;
    this.#equity.add(at, isOff ? whole : 0n, said.equity);
    // as if no earnings had been spent on positions
    const realizedOff = chunk.realized[row]! * up - paid + account.transfers;
    const { averageCost, fifoCost } = account;
    const [spotValue, spotCash] = [beyond(valueOff, allowed), beyond(cashOff, allowed)];
    this.#parts(this.#spotAverage, at, spotValue, spotCash, isTotalTold);
    const averageUnrealized = beyond(unrealizedOff + averageCost, allowed);
    const averageRealized = beyond(realizedOff - averageCost, allowed);
    this.#profit(this.#spotAverage, at, spotValue, spotCash, averageUnrealized, averageRealized, allowed);
    const [averageValue, averageCash] = [
      beyond(valueOff + averageCost, allowed),
      beyond(cashOff - averageCost, allowed),
    ];
    this.#parts(this.#marginAverage, at, averageValue, averageCash, isTotalTold);
    this.#profit(
      this.#marginAverage,
      at,
      averageValue,
      averageCash,
      averageUnrealized,
      averageRealized,
      allowed,
    );
    const fifoUnrealized = beyond(unrealizedOff + fifoCost, allowed);
    const fifoRealized = beyond(realizedOff - fifoCost, allowed);
    this.#profit(this.#spotFifo, at, spotValue, spotCash, fifoUnrealized, fifoRealized, allowed);
    const [fifoValue, fifoCash] = [beyond(valueOff + fifoCost, allowed), beyond(cashOff - fifoCost, allowed)];
    this.#parts(this.#marginFifo, at, fifoValue, fifoCash, isTotalTold);
    this.#profit(this.#marginFifo, at, fifoValue, fifoCash, fifoUnrealized, fifoRealized, allowed);
  }

  /** The allowed deviation of an inverse contract's value, because it divides. */
  #allowedOf({ fills }: AccountSums): bigint | null {
    return this.#given ?? BigInt(fills) * 10n ** BigInt(this.#scale - bookedDecimals);
  }

  #checkFlat(at: RowPlace, positionValue: bigint, unrealized: bigint, allowed: bigint | null): void {
    this.#bridge.flat++;
    this.#bridge.log.rows++;
    const held = beyond(positionValue, allowed);
    this.#bridge.log.add(at, held === 0n ? beyond(unrealized, allowed) : held, said.flat);
  }

  /** The position shown by a step in a point's value, if only one instrument has moved. */
  #shownPosition(at: RowPlace, account: AccountSums, off: bigint): ShownPosition | null {
    const step = account.value - account.valueBefore;
    if (account.open !== 1 || step === 0n) return null;
    const position = this.#positions.findIndex((one) => one.account === account && one.isOpen);
    const filled = this.#positions[position]!.average.quantity;
    const shown = filled * (step + off);
    return {
      ...{ series: at.series, ts: at.ts, seq: at.seq, position, filled },
      shown: step < 0n ? divideHalfEven(-shown, -step) : divideHalfEven(shown, step),
    };
  }

  #parts(kept: Kept, at: Place, valueOff: bigint, cashOff: bigint, isTotalTold: boolean): void {
    const { accounting, parts } = kept;
    parts.rows++;
    const areBothOff = valueOff !== 0n && cashOff !== 0n;
    const off = valueOff === 0n ? cashOff : valueOff;
    parts.add(at, areBothOff || !isTotalTold ? off : 0n, said[accounting]);
  }

  #profit(
    kept: Kept,
    at: Place,
    valueOff: bigint,
    cashOff: bigint,
    unrealizedOff: bigint,
    realizedOff: bigint,
    allowed: bigint | null,
  ): void {
    const { costs, profit } = kept;
    const isUnrealizedTold = isTold(unrealizedOff, valueOff, allowed);
    const isRealizedTold = isTold(realizedOff, cashOff, allowed);
    if (isUnrealizedTold || isRealizedTold) kept.toldAbove++;
    profit.rows++;
    // a row counts once
    if (unrealizedOff !== 0n && !isUnrealizedTold) profit.add(at, unrealizedOff, said.unrealized[costs]);
    else if (realizedOff !== 0n && !isRealizedTold) profit.add(at, realizedOff, said.realized[costs]);
    else profit.add(at, 0n, "");
  }
}

function newKept(accounting: Accounting, costs: Costs, parts: BreakLog): Kept {
  return { accounting, costs, parts, profit: new BreakLog(), toldAbove: 0 };
}

/** What is wrong with a point, for people. */
const said = {
  sum: "equity is not cash + position_value",
  equity: "equity does not match transfers, fills, fees and marks",
  flat: "the fills leave no position, but the point has a value: was one opened before the run?",
  step: "position_value or unrealized moves as if another position were held",
  spot: "position_value and cash do not match spot accounting",
  margin: "position_value and cash do not match margin accounting",
  unrealized: {
    average: "unrealized does not match average cost",
    fifo: "unrealized does not match fifo cost",
  },
  realized: { average: "realized does not match average cost", fifo: "realized does not match fifo cost" },
} as const;

/** Whether one amount deviates only because another does. */
function isTold(amount: bigint, told: bigint, allowed: bigint | null): boolean {
  if (amount === 0n || told === 0n) return false;
  return allowed === null ? amount === told : beyond(amount - told, allowed) === 0n;
}

/** The deviation if it exceeds what is allowed; 0 otherwise. Null allows nothing. */
function beyond(amount: bigint, allowed: bigint | null): bigint {
  return allowed === null || amount > allowed || amount < -allowed ? amount : 0n;
}

/** A row of a chunk, which reads only requested values. */
class RowPlace implements Place {
  row = 0;
  readonly #chunk: PointChunk;

  constructor(chunk: PointChunk) {
    this.#chunk = chunk;
  }

  get series(): number {
    return this.#chunk.key[this.row]!;
  }

  get ts(): bigint {
    return this.#chunk.ts[this.row]!;
  }

  get seq(): bigint {
    return this.#chunk.seq[this.row]!;
  }
}
