import { formatScaled } from "../../model/fixed-point.ts";
import { type Valuation, valuationOf } from "../trades/valuation.ts";
import type { EquityDay, EquityParts } from "./against-report.ts";
import type { Matches } from "./match-fills.ts";
import type { Close, EquitySeries, RunSide } from "./read-side.ts";

/** Two series of equity that are compared, by their places in the series of their runs. */
export interface SeriesPair {
  readonly here: number;
  readonly there: number;
}

/** The common sessions of two series. */
export interface ComparedEquity {
  /** Decimals of all amounts. */
  readonly scale: number;
  readonly days: readonly ComparedDay[];
}

export interface ComparedDay {
  readonly day: string;
  readonly here: bigint;
  readonly there: bigint;
  readonly parts: Readonly<Record<keyof EquityParts, bigint>>;
}

/**
 * Splits the difference of two equities (here minus there) at the end of each common session into parts that add up to
 * it. For linear positions, equity is
 *
 *     transfers + events + Σ fills ∓ value(quantity, price) - fee, and + value(position, mark)
 *
 * so the difference can be split fill by fill. Fills only here or there count with their whole profit. Matched fills
 * count with the price difference on the smaller quantity (`price`), their fees, and the excess of the larger quantity,
 * as if it were a separate fill (`quantity`). Matched fills on different sides of a session's end are `time`, common
 * positions marked to different prices are `marks`. `rest` is what remains: nothing if the books of both runs balance.
 */
export function attributeEquity(
  here: RunSide,
  there: RunSide,
  pair: SeriesPair,
  matches: Matches,
): ComparedEquity {
  const scale = Math.max(moneyOf(here), moneyOf(there));
  const [a, b] = [here.series[pair.here]!, there.series[pair.there]!];
  const common = commonCloses(a.closes, b.closes);
  const own = new SideBooks(
    here,
    a,
    pair.here,
    scale,
    common.map(([close]) => close.ts),
  );
  const other = new SideBooks(
    there,
    b,
    pair.there,
    scale,
    common.map(([, close]) => close.ts),
  );
  const [upHere, upThere] = [10n ** BigInt(scale - here.scale), 10n ** BigInt(scale - there.scale)];
  let [price, fees] = [0n, 0n];
  /** A pair of which both fills have happened. */
  const meet = (fill: number, match: number) => {
    const quantity = own.quantityAt(fill, other, match);
    own.book("common", fill, quantity.own);
    other.book("common", match, quantity.other);
    // the fills' own fees and prices are counted as parts, and holdings as marks
    price += own.flowOf(fill, quantity.own) - other.flowOf(match, quantity.other);
    fees -= own.feeOf(fill) - other.feeOf(match);
    own.book("quantity", fill, own.quantityOf(fill) - quantity.own);
    other.book("quantity", match, other.quantityOf(match) - quantity.other);
  };
  const matchOf = (fill: number) => (own.has(fill) ? counterpart(matches.here, fill, other) : -1);
  const matchBack = (fill: number) => (other.has(fill) ? counterpart(matches.there, fill, own) : -1);
  const days = common.map(([closeHere, closeThere], session): ComparedDay => {
    for (const fill of own.fillsOf(session)) {
      const match = matchOf(fill);
      if (match < 0) own.bookWhole("only", fill, 1n);
      else if (other.sessionOf(match) > session) own.bookWhole("time", fill, 1n);
      else {
        if (other.sessionOf(match) < session) other.bookWhole("time", match, -1n);
        meet(fill, match);
      }
    }
    for (const fill of other.fillsOf(session)) {
      const match = matchBack(fill);
      if (match < 0) other.bookWhole("only", fill, 1n);
      else if (own.sessionOf(match) > session) other.bookWhole("time", fill, 1n);
      else if (own.sessionOf(match) < session) {
        own.bookWhole("time", match, -1n);
        meet(match, fill);
      }
    }
    own.markAt(session);
    other.markAt(session);
    const parts = {
      onlyHere: own.worth("only"),
      onlyThere: -other.worth("only"),
      price,
      quantity: own.worth("quantity") - other.worth("quantity"),
      fees,
      time: own.worth("time") - other.worth("time"),
      marks: own.held("common") - other.held("common"),
      transfers: own.transfers - other.transfers,
      events: own.earned - other.earned,
    };
    const [equityHere, equityThere] = [closeHere.equity * upHere, closeThere.equity * upThere];
    const told = Object.values(parts).reduce((sum, part) => sum + part, 0n);
    const rest = equityHere - equityThere - told;
    return { day: closeHere.day, here: equityHere, there: equityThere, parts: { ...parts, rest } };
  });
  return { scale, days };
}

/** Decimals that hold every amount of a run. */
function moneyOf({ trades, scale, moves }: RunSide): number {
  return Math.max(trades?.fills.scales.money ?? 0, trades?.fills.scales.fee ?? 0, scale, moves?.scale ?? 0);
}

function commonCloses(here: readonly Close[], there: readonly Close[]): (readonly [Close, Close])[] {
  const byDay = new Map(there.map((close) => [close.day, close]));
  return here.flatMap((close) => {
    const other = byDay.get(close.day);
    return other === undefined ? [] : [[close, other] as const];
  });
}

function counterpart(matches: Int32Array, fill: number, other: SideBooks): number {
  const match = matches[fill]!;
  return match >= 0 && other.has(match) ? match : -1;
}

export function dayReport({ day, here, there, parts }: ComparedDay, scale: number): EquityDay {
  const text = (value: bigint) => formatScaled(value, scale);
  return {
    day,
    here: text(here),
    there: text(there),
    difference: text(here - there),
    parts: Object.fromEntries(
      Object.entries(parts).map(([name, value]) => [name, text(value)]),
    ) as EquityParts,
  };
}

const shares = ["only", "quantity", "time", "common"] as const;
type Share = (typeof shares)[number];

interface Holding {
  /** Signed. */
  quantity: bigint;
  /** Cash flow: minus the value bought, plus the value sold, minus fees. */
  flow: bigint;
}

/** A run's fills in one account, portfolio and currency, session by session. */
class SideBooks {
  transfers = 0n;
  earned = 0n;
  readonly #side: RunSide;
  readonly #key: number;
  readonly #ends: readonly bigint[];
  readonly #values: readonly Valuation[];
  /** By position: whether it is of this series; whether fees in the series' currency are. */
  readonly #isOwn: readonly boolean[];
  readonly #isOwnBook: readonly boolean[];
  readonly #feeCurrency: number;
  readonly #feeFactor: bigint;
  readonly #moveFactor: bigint;
  readonly #sessions: Int32Array;
  readonly #holdings: Readonly<Record<Share, Holding[]>>;
  readonly #bars: Int32Array;
  readonly #lastFill: Int32Array;
  #fill = 0;
  #move = 0;

  constructor(side: RunSide, series: EquitySeries, key: number, scale: number, ends: readonly bigint[]) {
    this.#side = side;
    this.#key = key;
    this.#ends = ends;
    const fills = side.trades?.fills;
    const positions = fills?.positions ?? [];
    this.#values = positions.map(({ instrument }) =>
      valuationOf(instrument, { ...fills!.scales, money: scale }),
    );
    this.#isOwnBook = positions.map(
      ({ account, portfolio }) => account === series.account && portfolio === series.portfolio,
    );
    this.#isOwn = positions.map(
      ({ instrument }, position) =>
        this.#isOwnBook[position]! &&
        // an instrument without a known currency has the only one
        (instrument.currency === series.currency || instrument.currency === ""),
    );
    this.#feeCurrency = fills?.feeCurrencies.indexOf(series.currency) ?? -1;
    this.#feeFactor = 10n ** BigInt(scale - (fills?.scales.fee ?? 0));
    this.#moveFactor = 10n ** BigInt(scale - (side.moves?.scale ?? 0));
    this.#holdings = Object.fromEntries(
      shares.map((share) => [share, positions.map(() => ({ quantity: 0n, flow: 0n }))]),
    ) as Record<Share, Holding[]>;
    this.#bars = new Int32Array(positions.length).fill(-1);
    this.#lastFill = new Int32Array(positions.length).fill(-1);
    this.#sessions = this.#sessionsOfFills();
  }

  /** Whether a fill has anything to do with this series. */
  has(fill: number): boolean {
    const { position, feeCurrency } = this.#side.trades!.fills;
    const own = position[fill]!;
    return this.#isOwn[own]! || (this.#isOwnBook[own]! && feeCurrency[fill] === this.#feeCurrency);
  }

  /** The first session that includes a fill; the number of sessions for a fill after the last. */
  sessionOf(fill: number): number {
    return this.#sessions[fill]!;
  }

  /** The fills of this series that come with a session, which must be asked for in the order of the sessions. */
  *fillsOf(session: number): Generator<number> {
    const fills = this.#side.trades?.fills;
    if (fills === undefined) return;
    for (; this.#fill < fills.count && this.#sessions[this.#fill]! <= session; this.#fill++) {
      if (!this.has(this.#fill)) continue;
      this.#lastFill[fills.position[this.#fill]!] = this.#fill;
      yield this.#fill;
    }
  }

  quantityOf(fill: number): bigint {
    return this.#side.trades!.fills.quantity[fill]!;
  }

  /** The quantity that two matched fills have in common, in units of each. */
  quantityAt(
    fill: number,
    other: SideBooks,
    match: number,
  ): { readonly own: bigint; readonly other: bigint } {
    const [own, its] = [this.quantityOf(fill), other.quantityOf(match)];
    const scales = [this, other].map((books) => books.#side.trades!.fills.scales.quantity) as [
      number,
      number,
    ];
    const most = Math.max(...scales);
    const [up, upIts] = scales.map((scale) => 10n ** BigInt(most - scale)) as [bigint, bigint];
    return own * up <= its * upIts
      ? { own, other: (own * up) / upIts }
      : { own: (its * upIts) / up, other: its };
  }

  feeOf(fill: number): bigint {
    const { fee, feeCurrency } = this.#side.trades!.fills;
    return feeCurrency[fill] === this.#feeCurrency ? fee[fill]! * this.#feeFactor : 0n;
  }

  /** The cash flow of a quantity of a fill, without its fee. */
  flowOf(fill: number, quantity: bigint): bigint {
    const { position, price, isBuy } = this.#side.trades!.fills;
    const own = position[fill]!;
    if (!this.#isOwn[own]! || quantity === 0n) return 0n;
    return -this.#values[own]!(isBuy[fill] === 1 ? quantity : -quantity, price[fill]!);
  }

  /** Books a quantity of a fill at its price. */
  book(share: Share, fill: number, quantity: bigint): void {
    const { position, isBuy } = this.#side.trades!.fills;
    const own = position[fill]!;
    if (!this.#isOwn[own]!) return;
    const holding = this.#holdings[share][own]!;
    holding.quantity += isBuy[fill] === 1 ? quantity : -quantity;
    holding.flow += this.flowOf(fill, quantity);
  }

  /** Books a fill with its fee, or removes it again. */
  bookWhole(share: Share, fill: number, sign: 1n | -1n): void {
    this.book(share, fill, sign * this.quantityOf(fill));
    this.#holdings[share][this.#side.trades!.fills.position[fill]!]!.flow -= sign * this.feeOf(fill);
  }

  /** Takes the last bars, and the money that moved, by a session's end. */
  markAt(session: number): void {
    const { trades, moves } = this.#side;
    const end = this.#ends[session]!;
    for (let position = 0; position < this.#bars.length; position++) {
      const bars = trades!.barsOf(position);
      if (bars === null || !this.#isOwn[position]!) continue;
      let bar = this.#bars[position]!;
      while (bar + 1 < bars.count && bars.close.ts[bar + 1]! <= end) bar++;
      this.#bars[position] = bar;
    }
    if (moves === null) return;
    for (; this.#move < moves.count && moves.ts[this.#move]! <= end; this.#move++) {
      if (moves.key[this.#move] !== this.#key) continue;
      const amount = moves.amount[this.#move]! * this.#moveFactor;
      if (moves.isTransfer[this.#move] === 1) this.transfers += amount;
      else this.earned += amount;
    }
  }

  /** The result of a share of the fills: its cash flow plus its holdings at the marks. */
  worth(share: Share): bigint {
    return this.#holdings[share].reduce((sum, { flow }) => sum + flow, this.held(share));
  }

  /** The value at the marks of what a share of the fills holds. */
  held(share: Share): bigint {
    return this.#holdings[share].reduce((sum, { quantity }, position) => {
      return quantity === 0n ? sum : sum + this.#values[position]!(quantity, this.#mark(position));
    }, 0n);
  }

  /** The last close, or before the first bar the price of the last fill. */
  #mark(position: number): bigint {
    const { fills, barsOf } = this.#side.trades!;
    const bar = this.#bars[position]!;
    return bar < 0 ? fills.price[this.#lastFill[position]!]! : barsOf(position)!.close.price[bar]!;
  }

  #sessionsOfFills(): Int32Array {
    const fills = this.#side.trades?.fills;
    const sessions = new Int32Array(fills?.count ?? 0);
    let session = 0;
    for (let fill = 0; fill < sessions.length; fill++) {
      while (session < this.#ends.length && fills!.ts[fill]! > this.#ends[session]!) session++;
      sessions[fill] = session;
    }
    return sessions;
  }
}
