// The rows of the independent gateway: written from the contract's prose, sharing no code with src/.
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { createGunzip } from "node:zlib";

type Value = string | number;
type Fields = Record<string, Value>;
/** One row, and the line it is on the wire. */
export interface StoredRow {
  readonly time: bigint;
  readonly seq: bigint;
  readonly fields: Fields;
  readonly line: string;
}
export interface Bar {
  readonly close: bigint;
  readonly prices: readonly string[];
  readonly volume: string;
}

/** The one instance. */
export const instance = "momentum-1";
const minute = 60_000_000_000n;
const place = { account: "main", portfolio: "book", venue: "EXCHANGE", symbol: "BTC-PERP" };
const marketFilters = ["resource_key", "symbol", "venue"];
const allFilters = [...marketFilters, "account", "portfolio"];
/** By table: the path below /history/ and the filters that apply. */
export const tables: Record<string, { path: string; filters: string[] }> = {
  fills: { path: "fills", filters: allFilters },
  orders: { path: "orders", filters: allFilters },
  bars: { path: "bars", filters: marketFilters },
  order_book: { path: "order-book", filters: marketFilters },
  factors: { path: "factors", filters: [...marketFilters, "portfolio"] },
  events: { path: "events", filters: allFilters },
  equity: { path: "portfolio/equity", filters: ["resource_key", "account", "portfolio"] },
  metrics: { path: "portfolio/metrics", filters: ["resource_key", "account", "portfolio"] },
};

/** Decimal text to an integer number of billionths, and back in canonical form. */
function billionths(text: string): bigint {
  const [whole = "0", fraction = ""] = text.replace("-", "").split(".");
  const size = BigInt(whole + fraction.padEnd(9, "0").slice(0, 9));
  return text.startsWith("-") ? -size : size;
}
function decimal(value: bigint): string {
  const digits = (value < 0n ? -value : value).toString().padStart(10, "0");
  const fraction = digits.slice(-9).replace(/0+$/, "");
  return `${value < 0n ? "-" : ""}${digits.slice(0, -9)}${fraction === "" ? "" : `.${fraction}`}`;
}

/** Bars of a file timestamp,open,high,low,close[,volume], plain or gzip, in the file's order. */
export async function readBars(file: string): Promise<Bar[]> {
  const bytes = createReadStream(file);
  const input = file.endsWith(".gz") ? bytes.pipe(createGunzip()) : bytes;
  const bars: Bar[] = [];
  for await (const line of createInterface({ input })) {
    if (line === "" || line.startsWith("timestamp")) continue;
    const [stamp = "", open = "", high = "", low = "", close = "", volume = ""] = line.split(",");
    const [, day, time, fraction = ""] =
      /^(\S{10})[ T](\d\d:\d\d:\d\d)(?:\.(\d+))?(?:Z|\+00:00)?$/.exec(stamp) ?? [];
    if (day === undefined) throw new Error(`not a timestamp: ${stamp}`);
    const seconds = BigInt(Date.parse(`${day}T${time}Z`)) / 1000n;
    bars.push({
      close: seconds * 1_000_000_000n + BigInt(fraction.padEnd(9, "0")),
      prices: [open, high, low, close].map((price) => decimal(billionths(price))),
      // as text: recorded volumes have more than nine decimals
      volume: volume.includes(".") ? volume.replace(/\.?0*$/, "") : volume,
    });
  }
  return bars;
}

/** Bars made by arithmetic, one a minute. */
export function makeBars(count: number): Bar[] {
  return Array.from({ length: count }, (_, index) => {
    const open = 40_000_000_000_000n + BigInt((index * 7919) % 1000) * 100_000_000n;
    return {
      close: 1_640_995_260_000_000_000n + BigInt(index) * minute,
      prices: [open, open + 500_000_000n, open - 500_000_000n, open + 100_000_000n].map(decimal),
      volume: index % 50 === 0 ? "" : decimal(BigInt(index) * 1_234_567n),
    };
  });
}

/** The eight tables of a run, in key order. */
export function makeRun(run: string, bars: readonly Bar[]): Map<string, StoredRow[]> {
  const stored = new Map<string, StoredRow[]>(Object.keys(tables).map((table) => [table, []]));
  const add = (table: string, key: string, time: bigint, where: Partial<typeof place>, more: Fields) => {
    const rows = stored.get(table)!;
    const seq = BigInt(rows.length) * 3n + 9_007_199_254_740_993n; // gaps, and beyond what a double holds
    const { account = "", portfolio = "", venue = "", symbol = "" } = where;
    const ids = { run_id: run, instance_id: instance, seq: `${seq}`, ts_event: `${time}` };
    const common = { ts_init: `${time + 1_001n}`, resource_key: key, account, portfolio, venue, symbol };
    const fields = { ...ids, ...common, ...more };
    rows.push({ time, seq, fields, line: JSON.stringify(fields) });
  };
  const { account, portfolio, venue, symbol } = place;
  const event = (time: bigint, kind: string, severity: string, message: string, more: Fields) =>
    add("events", "events:runtime", time, kind.startsWith("account") ? { account, portfolio } : {}, {
      ...{ kind, severity, message, amount: "", currency: "", payload: "", ...more },
    });
  const start = bars[0]!.close - minute;
  const deposit = 1_000_000_000_000_000n;
  event(start, "runtime.started", "INFO", 'up: "quoted" \\ tab\t bell\u0007 naïve 漢字 🚀', {
    payload: '{"pid":1}',
  });
  event(start, "account.deposit", "INFO", "", { amount: decimal(deposit), currency: "USD" });
  let cash = deposit;
  let held = 0n;
  for (const [index, bar] of bars.entries()) {
    const [open, high, low, close] = bar.prices as [string, string, string, string];
    const span = { interval_ns: `${minute}`, ts_open: `${bar.close - minute}` };
    const values = { open, high, low, close, volume: bar.volume };
    add("bars", `bars:${symbol}:1m`, bar.close, { venue, symbol }, { ...span, ...values });
    if (index % 10 !== 3) continue;
    // a decision: factor, book, order with two fills on one timestamp, equity
    const time = bar.close + 1n + BigInt(index % 997);
    const specials: Value[] = ["NaN", "Infinity", "-Infinity", 1e21, 5e-324, 0, -0.1];
    const value = (index % 70 === 3 ? specials[Math.floor(index / 70) % 7] : undefined) ?? index / 7;
    const late = index % 90 === 63 ? 45n * minute : 0n; // late rows: seq does not rise with ts_event
    add(
      "factors",
      "factors:momentum",
      time - late,
      { portfolio, venue, symbol },
      { factor: "momentum", value },
    );
    const price = billionths(close);
    for (let level = 0; level < 6; level++) {
      const [side, distance] = level < 3 ? ["BID", -level - 1] : ["ASK", level - 2];
      add("order_book", `book:${symbol}`, time, { venue, symbol }, {
        ...{
          snapshot_id: `${index}`,
          side,
          level: level % 3,
          price: decimal(price + BigInt(distance) * 500_000_000n),
        },
        ...{ quantity: decimal(BigInt(level + 1) * 12_500_000n), order_count: level },
      } as Fields);
    }
    const side = index % 20 === 3 ? "BUY" : "SELL";
    const order = { client_order_id: `c-${index}`, venue_order_id: `v-${index}` };
    const lots = [10_000_000n, 15_000_000n];
    const step = (offset: bigint, kind: string, filled: bigint, venueOrder: string) =>
      add("orders", "orders:main", time + offset, place, {
        ...{ client_order_id: order.client_order_id, venue_order_id: venueOrder, kind, status: kind, side },
        ...{ type: "LIMIT", time_in_force: "GTC", quantity: "0.025", price: close, stop_price: "" },
        ...{
          filled_quantity: decimal(filled),
          average_price: filled === 0n ? "" : close,
          arrival_price: close,
        },
        reason: "",
      });
    step(0n, "SUBMITTED", 0n, "");
    step(1_000n, "ACCEPTED", 0n, order.venue_order_id);
    for (const [part, lot] of lots.entries()) {
      const fee = (price * lot) / 1_000_000_000n / 2000n;
      const [trade, signed] = [`t-${index}-${part}`, side === "BUY" ? lot : -lot];
      add("fills", "fills:main", time + 2_000n, place, {
        ...{ trade_id: trade, ...order, side, price: close, quantity: decimal(lot), fee: decimal(fee) },
        ...{ fee_currency: "USD", liquidity: part === 0 ? "MAKER" : "TAKER" },
      });
      held += signed;
      cash -= (price * signed) / 1_000_000_000n + fee;
      if (part === 0) step(2_000n, "PARTIALLY_FILLED", lot, order.venue_order_id);
    }
    step(2_000n, "FILLED", 25_000_000n, order.venue_order_id);
    const worth = (price * held) / 1_000_000_000n;
    add(
      "equity",
      "equity:book",
      time + 3_000n,
      { account, portfolio },
      {
        ...{
          currency: "USD",
          cash: decimal(cash),
          position_value: decimal(worth),
          equity: decimal(cash + worth),
        },
        ...{ realized: decimal(cash + worth - deposit), unrealized: "0" },
      },
    );
  }
  const end = bars.at(-1)!.close + minute;
  event(end, "runtime.stopped", "INFO", "done", {});
  for (const [name, value] of Object.entries({ sharpe: "NaN", total_return: -1.5e-7, max_drawdown: 0 })) {
    const more = { name, value, window: "run", convention: "per decision, not annualised", currency: "USD" };
    add("metrics", "metrics:book", end, { account, portfolio }, more);
  }
  const difference = (a: bigint, b: bigint) => (a < b ? -1 : a > b ? 1 : 0);
  for (const rows of stored.values())
    rows.sort((a, b) => difference(a.time, b.time) || difference(a.seq, b.seq));
  return stored;
}
