import type { FillColumns } from "./fill-columns.ts";
import type { Valuation } from "./valuation.ts";

/** Decimals of equity rows, to which a gateway that uses average cost rounds the cost of closed lots. */
const bookedDecimals = 9;

/**
 * One position by average cost. Closing a part takes its share of the cost out, truncated toward zero at the decimals
 * that the gateway books in, as the simulator does. Unrealized profit is what the position is worth less `cost`; realized
 * is `flow` plus `cost`, fees apart.
 */
export class AverageCostPosition {
  readonly #fills: FillColumns;
  readonly #value: Valuation;
  readonly #unit: bigint;
  #quantity = 0n;
  #cost = 0n;
  #flow = 0n;

  constructor(fills: FillColumns, value: Valuation, decimals = bookedDecimals) {
    this.#fills = fills;
    this.#value = value;
    this.#unit = 10n ** BigInt(Math.max(0, fills.scales.money - decimals));
  }

  /** Signed: above zero when long. */
  get quantity(): bigint {
    return this.#quantity;
  }

  /** The cost of the open quantity at the average price: money, with the sign of the position's value. */
  get cost(): bigint {
    return this.#cost;
  }

  /** The cash flow of all fills: minus the value bought, plus the value sold; money, without fees. */
  get flow(): bigint {
    return this.#flow;
  }

  /** Books a fill. */
  add(fill: number): void {
    const { price, quantity, isBuy } = this.#fills;
    const whole = quantity[fill]!;
    if (whole === 0n) return;
    const signed = isBuy[fill] === 1 ? whole : -whole;
    const open = this.#quantity < 0n ? -this.#quantity : this.#quantity;
    const isClosing = open > 0n && this.#quantity > 0n !== signed > 0n;
    const closing = isClosing ? (whole < open ? whole : open) : 0n;
    if (closing === open) this.#cost = 0n;
    else if (closing > 0n) this.#cost -= ((this.#cost * closing) / (open * this.#unit)) * this.#unit;
    const opening = whole - closing;
    if (opening > 0n) this.#cost += this.#value(signed > 0n ? opening : -opening, price[fill]!);
    this.#flow -= this.#value(signed, price[fill]!);
    this.#quantity += signed;
  }
}
