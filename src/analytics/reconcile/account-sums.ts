import { AverageCostPosition } from "../trades/average-cost.ts";
import { FifoPosition } from "../trades/fifo-position.ts";
import type { FillColumns } from "../trades/fill-columns.ts";
import type { Valuation } from "../trades/valuation.ts";

/**
 * Running sums of an account in one currency over its positions, updated at each change of a position, so that a point
 * costs the same with a thousand of them. Amounts are in money.
 */
export class AccountSums {
  /** Deposits minus withdrawals. */
  transfers = 0n;
  /** All changes of cash: transfers, other money from events, and fills, minus their fees. */
  paid = 0n;
  /** The value of open positions, and their cost. */
  value = 0n;
  averageCost = 0n;
  fifoCost = 0n;
  fills = 0;
  /** Open positions, and those of them that are marked to a fill. */
  open = 0;
  openAtFill = 0;
  hasInverse = false;
  // of the point before: the fills until then, -1 if there is none; what the positions were worth; and by how much
  // position_value and unrealized were another amount
  fillsBefore = -1;
  valueBefore = 0n;
  valueOffBefore = 0n;
  unrealizedOffBefore = 0n;
}

/** A position of an account, which keeps its part of the account's sums up to date. */
export class HeldPosition {
  readonly account: AccountSums;
  readonly average: AverageCostPosition;
  /** Whether `settle` waits to be called. */
  isStale = false;
  readonly #fifo: FifoPosition;
  readonly #value: Valuation;
  readonly #fills: FillColumns;
  #last = -1;
  #worth = 0n;
  #isOpen = false;
  #isAtFill = false;

  constructor(account: AccountSums, fills: FillColumns, value: Valuation, isLinear: boolean) {
    this.account = account;
    this.average = new AverageCostPosition(fills, value);
    this.#fifo = new FifoPosition(fills, value, isLinear);
    this.#value = value;
    this.#fills = fills;
    if (!isLinear) account.hasInverse = true;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Books a fill; `fee` is in money. The position's value is updated by `settle`. */
  add(fill: number, fee: bigint): void {
    const { account, average } = this;
    const fifo = this.#fifo;
    const [flow, averageCost, fifoCost] = [average.flow, average.cost, fifo.cost];
    average.add(fill);
    fifo.add(fill);
    account.paid += average.flow - flow - fee;
    account.averageCost += average.cost - averageCost;
    account.fifoCost += fifo.cost - fifoCost;
    account.fills++;
    this.#last = fill;
  }

  /** Marks it to a price, or to its last fill if there is none. */
  settle(mark: bigint | null): void {
    const { account } = this;
    const { quantity } = this.average;
    const isOpen = quantity !== 0n;
    const worth = isOpen ? this.#value(quantity, mark ?? this.#fills.price[this.#last]!) : 0n;
    account.value += worth - this.#worth;
    this.#worth = worth;
    const isAtFill = isOpen && mark === null;
    account.open += Number(isOpen) - Number(this.#isOpen);
    account.openAtFill += Number(isAtFill) - Number(this.#isAtFill);
    this.#isOpen = isOpen;
    this.#isAtFill = isAtFill;
    this.isStale = false;
  }
}
