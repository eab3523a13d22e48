import { divideHalfEven } from "../../model/fixed-point.ts";
import { AverageCostPosition } from "../trades/average-cost.ts";
import type { BarColumns } from "../trades/bar-columns.ts";
import { FifoPosition } from "../trades/fifo-position.ts";
import type { FillColumns } from "../trades/fill-columns.ts";
import { type Valuation, valuationOf } from "../trades/valuation.ts";
import type { MoveColumns, PointColumns } from "./account-rows.ts";
import { BreakLog, size } from "./break-log.ts";

/** How an account tells of what it holds, as the interface's equity points have it. */
export const accountings = ["spot", "margin"] as const;
export type Accounting = (typeof accountings)[number];
/** How the cost of what is closed is found. */
export type Costs = "average" | "fifo";

/** A way to keep books, and what is off where they were kept so. */
export interface Kept {
  readonly accounting: Accounting;
  readonly costs: Costs;
  /** cash and position value apart. */
  readonly parts: BreakLog;
  /** Realized and unrealized profit. */
  readonly profit: BreakLog;
  /** Points whose profit is off by as much as cash or position value, which is told there. */
  toldAbove: number;
}

/** What was seen of the books. Amounts are in money, of `scale` decimals. */
export interface Books {
  readonly scale: number;
  readonly sum: BreakLog;
  readonly equity: BreakLog;
  readonly kept: readonly Kept[];
  readonly bridge: Bridge;
  /** Points at which an open position was marked to its last fill, for its bars begin later. */
  readonly markedAtFill: number;
  /** Fills and events behind the last point, which nothing reported says anything of. */
  readonly after: number;
}

/** What the rows say of positions, without cash, costs, fees or transfers. */
export interface Bridge {
  /** Points without a position, and points behind another without a fill between, whose difference shows what is held. */
  readonly log: BreakLog;
  /** Of the points: those at which the fills leave no position. */
  flat: number;
  /** Points that show another position than the fills come to, where checks 1 to 4 tell already that something is off. */
  toldAbove: number;
  /** The first of these. */
  firstTold: ShownPosition | null;
}

/** A position that two points show, of a series with one instrument. */
export interface ShownPosition {
  /** By index. */
  readonly point: number;
  readonly position: number;
  /** Signed, in units of the fills' quantities, rounded half-even. */
  readonly shown: bigint;
  readonly filled: bigint;
}

export interface BooksWalk {
  readonly points: PointColumns;
  readonly moves: MoveColumns;
  readonly fills: FillColumns;
  barsOf(position: number): BarColumns | null;
  /** Index in the keys of the points; -1 where there are none of its account, portfolio and currency. */
  keyOf(position: number): number;
  /** By key: whether money can be told from the rows. */
  readonly isKnown: readonly boolean[];
  /** By key: whether positions can be valued, whatever is known of money. */
  readonly isMarked: readonly boolean[];
  /** In money; null is zero, and for inverse contracts one unit of the ninth decimal a fill. */
  readonly tolerance: { readonly value: bigint; readonly scale: number } | null;
}

const bookedDecimals = 9;

/**
 * The one pass over a run's equity points with its fills, money and bars, in exact integers. What is off is told once,
 * by the first check that can tell what it is:
 *
 * - `sum`: equity is not cash + position_value.
 * - `equity`: neither equity nor cash + position_value is what the rows before it come to.
 * - `parts`: cash and position_value are both wrong. Where one alone is, so is their sum, which `equity` tells, unless a
 *   tolerance takes it.
 * - `profit`: unrealized is off by another amount than position_value, or realized by another than cash.
 * - `bridge`: a point at which the fills leave no position, and position_value or unrealized is not zero; or that differs
 *   from the one before, without a fill between them, by another amount than the positions from fills times the step of
 *   their marks. Where money is known, the checks above tell the second, too, and it is only noted.
 *
 * So nothing that is off goes untold, and nothing is told by two for being the same amount.
 */
export function walkBooks(walk: BooksWalk): Books {
  const { points, moves, isKnown, isMarked, tolerance } = walk;
  const scale = Math.max(walk.fills.scales.money, points.scale, moves.scale, tolerance?.scale ?? 0);
  const fills = { ...walk.fills, scales: { ...walk.fills.scales, money: scale } };
  const up = (from: number) => 10n ** BigInt(scale - from);
  const [ofPoint, ofMove, ofFee] = [up(points.scale), up(moves.scale), up(fills.scales.fee)];
  const given = tolerance === null ? null : tolerance.value * up(tolerance.scale);
  const states = points.keys.map(() => new AccountState());
  const positions = fills.positions.map(({ instrument }, position) => {
    const state = new HeldPosition(
      position,
      fills,
      valuationOf(instrument, fills.scales),
      walk.barsOf(position),
      instrument.kind === "linear",
    );
    states[walk.keyOf(position)]?.positions.push(state);
    return state;
  });
  const kept = accountings.flatMap((accounting) =>
    (["average", "fifo"] as const).map((costs) => ({
      accounting,
      costs,
      parts: new BreakLog(),
      profit: new BreakLog(),
      toldAbove: 0,
    })),
  );
  const [sum, equity] = [new BreakLog(), new BreakLog()];
  const bridge: Bridge = { log: new BreakLog(), flat: 0, toldAbove: 0, firstTold: null };
  let markedAtFill = 0;
  let [fill, move] = [0, 0];
  for (let point = 0; point < points.count; point++) {
    const ts = points.ts[point]!;
    for (; fill < fills.count && fills.ts[fill]! <= ts; fill++) {
      const position = fills.position[fill]!;
      positions[position]!.add(fill);
      const state = states[walk.keyOf(position)];
      if (state === undefined) continue;
      state.fees += fills.fee[fill]! * ofFee;
      state.fills++;
    }
    for (; move < moves.count && moves.ts[move]! <= ts; move++) {
      const state = states[moves.key[move]!];
      if (state === undefined) continue;
      if (moves.isTransfer[move] === 1) state.transfers += moves.amount[move]! * ofMove;
      else state.earned += moves.amount[move]! * ofMove;
    }
    const key = points.key[point]!;
    const state = states[key]!;
    const name = String(key);
    const shown = {
      cash: points.cash[point]! * ofPoint,
      value: points.positionValue[point]! * ofPoint,
      equity: points.equity[point]! * ofPoint,
      realized: points.realized[point]! * ofPoint,
      unrealized: points.unrealized[point]! * ofPoint,
    };
    const allowed =
      given ?? (state.hasInverse ? BigInt(state.fills) * 10n ** BigInt(scale - bookedDecimals) : 0n);
    const off = (amount: bigint) => (size(amount) > allowed ? amount : 0n);
    const unsummed = shown.equity - shown.cash - shown.value;
    sum.rows++;
    sum.add(name, point, off(unsummed), "equity is not cash + position_value");

    let [value, flow, isFlat, isAtFill] = [0n, 0n, true, false];
    const cost = { average: 0n, fifo: 0n };
    for (const position of state.positions) {
      position.markAt(ts);
      value += position.worth;
      flow += position.average.flow;
      cost.average += position.average.cost;
      cost.fifo += position.fifo.cost;
      if (position.average.quantity === 0n) continue;
      isFlat = false;
      isAtFill ||= position.isMarkedAtFill;
    }
    if (isFlat) {
      bridge.flat++;
      bridge.log.rows++;
      const held = off(shown.value) === 0n ? off(shown.unrealized) : shown.value;
      bridge.log.add(
        name,
        point,
        held,
        "the fills leave no position, and the point is worth something: was one opened before the run?",
      );
    } else if (isMarked[key] && state.before !== null && state.before.fills === state.fills) {
      const { before } = state;
      const step = value - before.value;
      const valueOff = off(shown.value - before.shownValue - step);
      const stepOff = valueOff === 0n ? off(shown.unrealized - before.unrealized - step) : valueOff;
      bridge.log.rows++;
      if (isKnown[key]) {
        if (stepOff !== 0n) {
          bridge.toldAbove++;
          bridge.firstTold ??= shownPosition(state, point, step, stepOff);
        }
      } else
        bridge.log.add(name, point, stepOff, "position_value or unrealized moves as another position would");
    }
    state.before = { fills: state.fills, value, shownValue: shown.value, unrealized: shown.unrealized };
    if (!isKnown[key]) continue;
    if (isAtFill) markedAtFill++;
    const paid = state.transfers + state.earned + flow - state.fees;
    const expected = paid + value;
    const whole = off(shown.equity - expected);
    const summed = off(shown.cash + shown.value - expected);
    equity.rows++;
    // a point whose parts come to what is expected is off in its sum alone, and the other way round; what a tolerance
    // takes for a sum need not be told there
    const isSummed = off(unsummed) === 0n;
    const isOff = whole !== 0n && (summed !== 0n || isSummed);
    const isTotalTold = isOff || !isSummed;
    const spotParts = { cash: off(shown.cash - paid), value: off(shown.value - value) };
    equity.add(
      name,
      point,
      isOff ? whole : 0n,
      "equity is not what transfers, fills, fees and marks come to",
    );
    for (const keeping of kept) {
      const { accounting, costs, parts, profit } = keeping;
      const open = cost[costs];
      const isSpot = accounting === "spot";
      const valueOff = isSpot ? spotParts.value : off(shown.value - value + open);
      const cashOff = isSpot ? spotParts.cash : off(shown.cash - paid - open);
      parts.rows++;
      const areBothOff = valueOff !== 0n && cashOff !== 0n;
      const partOff = valueOff === 0n ? cashOff : valueOff;
      parts.add(
        name,
        point,
        areBothOff || !isTotalTold ? partOff : 0n,
        `position_value and cash are not those of ${accounting} accounting`,
      );
      const unrealizedOff = off(shown.unrealized - (value - open));
      const realizedOff = off(shown.realized - (flow + open - state.fees + state.earned));
      const isTold = (amount: bigint, told: bigint) =>
        amount !== 0n && off(amount - told) === 0n && told !== 0n;
      if (isTold(unrealizedOff, valueOff) || isTold(realizedOff, cashOff)) keeping.toldAbove++;
      profit.rows++;
      const ownUnrealized = isTold(unrealizedOff, valueOff) ? 0n : unrealizedOff;
      const ownRealized = isTold(realizedOff, cashOff) ? 0n : realizedOff;
      // a row counts once
      if (ownUnrealized !== 0n || ownRealized === 0n) {
        profit.add(name, point, ownUnrealized, `unrealized is not that of ${costs} cost`);
      } else profit.add(name, point, ownRealized, `realized is not that of ${costs} cost`);
    }
  }
  return { scale, sum, equity, kept, bridge, markedAtFill, after: fills.count - fill + moves.count - move };
}

/** The position that a step of a point's worth shows, where one instrument alone has moved. */
function shownPosition(
  { positions, before }: AccountState,
  point: number,
  step: bigint,
  off: bigint,
): ShownPosition | null {
  const [only, ...more] = positions.filter(({ average }) => average.quantity !== 0n);
  if (only === undefined || more.length > 0 || step === 0n || before === null) return null;
  const filled = only.average.quantity;
  const shown = filled * (step + off);
  return {
    point,
    position: only.index,
    filled,
    shown: step < 0n ? divideHalfEven(-shown, -step) : divideHalfEven(shown, step),
  };
}

/** An account in one currency, as far as the pass has come. */
class AccountState {
  readonly positions: HeldPosition[] = [];
  transfers = 0n;
  earned = 0n;
  fees = 0n;
  fills = 0;
  /** At the point before. */
  before: {
    readonly fills: number;
    readonly value: bigint;
    readonly shownValue: bigint;
    readonly unrealized: bigint;
  } | null = null;

  get hasInverse(): boolean {
    return this.positions.some(({ isLinear }) => !isLinear);
  }
}

class HeldPosition {
  /** In the positions of the fills. */
  readonly index: number;
  readonly average: AverageCostPosition;
  readonly fifo: FifoPosition;
  readonly isLinear: boolean;
  readonly #fills: FillColumns;
  readonly #value: Valuation;
  readonly #bars: BarColumns | null;
  #bar = -1;
  #last = -1;

  constructor(
    index: number,
    fills: FillColumns,
    value: Valuation,
    bars: BarColumns | null,
    isLinear: boolean,
  ) {
    this.index = index;
    this.average = new AverageCostPosition(fills, value);
    this.fifo = new FifoPosition(fills, value, isLinear);
    this.isLinear = isLinear;
    this.#fills = fills;
    this.#value = value;
    this.#bars = bars;
  }

  add(fill: number): void {
    this.average.add(fill);
    this.fifo.add(fill);
    this.#last = fill;
  }

  /** Takes the last bar that has closed by then. */
  markAt(ts: bigint): void {
    const bars = this.#bars;
    if (bars === null) return;
    while (this.#bar + 1 < bars.count && bars.close.ts[this.#bar + 1]! <= ts) this.#bar++;
  }

  get isMarkedAtFill(): boolean {
    return this.#bar < 0;
  }

  get worth(): bigint {
    const { quantity } = this.average;
    if (quantity === 0n) return 0n;
    return this.#value(
      quantity,
      this.#bar < 0 ? this.#fills.price[this.#last]! : this.#bars!.close.price[this.#bar]!,
    );
  }
}
