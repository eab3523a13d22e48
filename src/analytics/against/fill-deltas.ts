import { divideHalfEven, formatScaled } from "../../model/fixed-point.ts";
import type { deltaKinds, FillDelta } from "./against-report.ts";
import type { Matches } from "./match-fills.ts";
import type { CommonScales, ScaledFills } from "./match-runs.ts";

/** Decimals of a cost in basis points, which divides. */
const costDecimals = 6;

/** How matched fills differ, here less there: in time and cost, and by symbol and currency in price, quantity and fee. */
export function fillDeltas(
  here: ScaledFills,
  there: ScaledFills,
  { here: matchOf }: Matches,
  scales: CommonScales,
): FillDelta[] {
  const kept = new Map<string, Differences>();
  const add = (what: Kind, of: string, unit: string, scale: number, value: bigint) => {
    const key = JSON.stringify([what, of, unit]);
    const differences = kept.get(key) ?? new Differences(what, of, unit, scale);
    kept.set(key, differences);
    differences.values.push(value);
  };
  for (let fill = 0; fill < here.count; fill++) {
    const other = matchOf[fill]!;
    if (other < 0) continue;
    const { symbol, currency } = here.fills.positions[here.fills.position[fill]!]!.instrument;
    const feeCurrency = here.fills.feeCurrencies[here.fills.feeCurrency[fill]!]!;
    const otherCurrency = there.fills.feeCurrencies[there.fills.feeCurrency[other]!]!;
    const [price, priceThere] = [here.price[fill]!, there.price[other]!];
    add("time", "", "ns", 0, here.ts[fill]! - there.ts[other]!);
    add("price", symbol, currency, scales.price, price - priceThere);
    if (priceThere > 0n) {
      const worse = here.fills.isBuy[fill] === 1 ? price - priceThere : priceThere - price;
      const cost = divideHalfEven(worse * 10n ** BigInt(4 + costDecimals), priceThere);
      add("cost", "", "bp", costDecimals, cost);
    }
    add("quantity", symbol, "units", scales.quantity, here.quantity[fill]! - there.quantity[other]!);
    if (feeCurrency === otherCurrency) {
      add("fee", feeCurrency, feeCurrency, scales.fee, here.fee[fill]! - there.fee[other]!);
    } else {
      add("fee", feeCurrency, feeCurrency, scales.fee, here.fee[fill]!);
      add("fee", otherCurrency, otherCurrency, scales.fee, -there.fee[other]!);
    }
  }
  return [...kept.values()]
    .sort((a, b) => order.indexOf(a.what) - order.indexOf(b.what) || (a.of < b.of ? -1 : 1))
    .map((differences) => differences.delta());
}

type Kind = (typeof deltaKinds)[number];
const order: readonly Kind[] = ["time", "price", "cost", "quantity", "fee"];

/** Twentieths: 5 %, 25 %, … */
const places = { min: 0, q05: 1, q25: 5, median: 10, q75: 15, q95: 19, max: 20 } as const;

class Differences {
  readonly what: Kind;
  readonly of: string;
  readonly unit: string;
  readonly scale: number;
  readonly values: bigint[] = [];

  constructor(what: Kind, of: string, unit: string, scale: number) {
    this.what = what;
    this.of = of;
    this.unit = unit;
    this.scale = scale;
  }

  delta(): FillDelta {
    const { what, of, unit, scale } = this;
    const values = sorted(this.values);
    const [sum, different] = values.reduce<[bigint, number]>(
      ([total, count], value) => [total + value, value === 0n ? count : count + 1],
      [0n, 0],
    );
    const quantiles = Object.fromEntries(
      Object.entries(places).map(([name, twentieths]) => [
        name,
        formatScaled(quantileOf(values, twentieths), scale + 2),
      ]),
    ) as FillDelta["quantiles"];
    return { what, of, unit, n: values.length, different, sum: formatScaled(sum, scale), quantiles };
  }
}

/** Most differences fit 64 bits, which sort without being compared by a function. */
function sorted(values: readonly bigint[]): ArrayLike<bigint> & Iterable<bigint> & Pick<bigint[], "reduce"> {
  if (values.every((value) => BigInt.asIntN(64, value) === value)) {
    return BigInt64Array.from(values).sort() as unknown as bigint[];
  }
  return values.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0));
}

/** A quantile by linear interpolation between the two nearest, exactly: in hundredths of the values' unit. */
function quantileOf(values: ArrayLike<bigint>, twentieths: number): bigint {
  const rank = (values.length - 1) * twentieths;
  const [low, part] = [Math.floor(rank / 20), rank % 20];
  const from = values[low]!;
  const to = values[Math.min(low + 1, values.length - 1)]!;
  return from * 100n + (to - from) * BigInt(part * 5);
}
