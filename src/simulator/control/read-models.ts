import { fromJson } from "@bufbuild/protobuf";
import { EventSchema } from "../../gen/example/history/v1/rows_pb.ts";
import type { ReadModel } from "../../model/control.ts";
import { RunvaultError } from "../../model/error.ts";
import { divideHalfEven, formatScaled } from "../../model/fixed-point.ts";
import { openPosition, type Side } from "../books/position.ts";
import type { SeenRun } from "../seen-run.ts";
import type { SimulatorOptions } from "../simulator-options.ts";
import type { InstrumentPlan } from "../world/run-plan.ts";
import type { RunRows } from "../world/run-rows.ts";

/** The limit that the contract sets for EventsResult. */
const mostEvents = 1000;
/** Equity and bar of one instant may become known minutes apart. Among this many of each there is a pair. */
const pairsWithin = 64;

type Result = NonNullable<ReadModel["result"]>;

/** What a runtime reports about a running run, from its known rows. */
export interface ReadModels {
  /** False until the first equity point is known. */
  hasAccounts(seen: SeenRun): Promise<boolean>;
  accounts(seen: SeenRun): Promise<Extract<Result, { case: "accounts" }>["value"]>;
  portfolios(seen: SeenRun): Promise<Extract<Result, { case: "portfolios" }>["value"]>;
  events(seen: SeenRun): Promise<Extract<Result, { case: "events" }>["value"]>;
  /** The newest value of each factor, as JSON text. This project added this read model. */
  factors(seen: SeenRun): Promise<string>;
}

type Fields = Readonly<Record<string, string>>;

export function readModels(
  rows: RunRows,
  options: SimulatorOptions,
  instruments: readonly InstrumentPlan[],
): ReadModels {
  const { account, portfolio, venue, currencies, accounting } = options;

  const last = async (
    { run, known }: SeenRun,
    table: "equity" | "bars" | "factors" | "events",
    count: number,
    symbol?: string,
  ): Promise<Fields[]> =>
    (await rows.last(run, table, count, known, symbol === undefined ? [] : [["symbol", symbol]])).map(
      (line) => JSON.parse(line) as Fields,
    );

  /** The equity points, in order, of the newest instant that has one in each currency and a known bar. */
  const marked = async (seen: SeenRun): Promise<readonly Fields[]> => {
    const [{ symbol }] = instruments as [InstrumentPlan];
    const bars = new Set((await last(seen, "bars", pairsWithin, symbol)).map(({ ts_event }) => ts_event));
    const points = (await last(seen, "equity", pairsWithin * currencies.length)).reverse();
    for (const [instant, found] of Map.groupBy(points, ({ ts_event }) => ts_event)) {
      if (found.length === currencies.length && bars.has(instant)) {
        return found.sort((a, b) => (a.currency! < b.currency! ? -1 : 1));
      }
    }
    throw new RunvaultError("capability_unavailable", "the instance has no marked equity yet", {
      capability: "portfolios",
      hint: "Try again after the run's first bar.",
    });
  };

  /** The units held at an equity point and their cost, both times 10^9. */
  const heldAt = async (
    { run }: SeenRun,
    equity: Fields,
    symbol: string,
    mark: bigint,
  ): Promise<{ readonly quantity: bigint; readonly cost: bigint }> => {
    const quoted = instruments.filter(({ currency }) => currency === equity.currency);
    if (accounting === "spot" && quoted.length === 1) {
      // the value is exactly close × quantity, so the division is exact
      const value = nanosOf(equity.position_value!);
      return { quantity: (value * nano) / mark, cost: value - nanosOf(equity.unrealized!) };
    }
    const bounds = { to: BigInt(equity.ts_event!) + 1n };
    const fills: Fields[] = [];
    // the books have a fill before its row is known
    for await (const line of rows.all(run, "fills", undefined, [["symbol", symbol]], bounds)) {
      fills.push(JSON.parse(line) as Fields);
    }
    fills.sort((a, b) => tradeNumber(a) - tradeNumber(b));
    const position = openPosition(1n);
    for (const { side, price, quantity } of fills) {
      position.fill(side as Side, Number(nanosOf(price!)), Number(nanosOf(quantity!)));
    }
    return { quantity: BigInt(position.lots), cost: position.cost / nano };
  };

  const positionsAt = async (seen: SeenRun, equity: Fields) => {
    const positions = [];
    for (const { symbol, currency } of instruments) {
      if (currency !== equity.currency) continue;
      const bars = (await last(seen, "bars", pairsWithin, symbol)).reverse();
      const bar = bars.find(({ ts_event }) => BigInt(ts_event!) <= BigInt(equity.ts_event!));
      if (bar === undefined) continue;
      const { quantity, cost } = await heldAt(seen, equity, symbol, nanosOf(bar.close!));
      if (quantity === 0n) continue;
      const [numerator, denominator] = quantity < 0n ? [-cost, -quantity] : [cost, quantity];
      positions.push({
        venue,
        symbol,
        quantity: formatScaled(quantity, 9),
        averagePrice: formatScaled(divideHalfEven(numerator * nano, denominator), 9),
        markPrice: bar.close!,
      });
    }
    return positions.sort((a, b) => (a.symbol < b.symbol ? -1 : 1));
  };

  return {
    async hasAccounts(seen) {
      return (await marked(seen).catch(onlyMissing)) !== undefined;
    },
    async accounts(seen) {
      const points = await marked(seen);
      return {
        accounts: points.map(({ currency, cash, equity }) => ({
          account,
          venue,
          currency: currency!,
          cash: cash!,
          equity: equity!,
        })),
      };
    },
    async portfolios(seen) {
      const portfolios = [];
      for (const point of await marked(seen)) {
        const { currency, equity } = point;
        const positions = await positionsAt(seen, point);
        portfolios.push({ portfolio, account, currency: currency!, equity: equity!, positions });
      }
      return { portfolios };
    },
    async events(seen) {
      const events = await rows.last(seen.run, "events", mostEvents, seen.known);
      return { events: events.map((line) => fromJson(EventSchema, JSON.parse(line))) };
    },
    async factors(seen) {
      const newest: Record<string, { value: string; tsEvent: string }> = {};
      const several = instruments.length > 1;
      for (const { symbol, factor, value, ts_event } of await last(
        seen,
        "factors",
        pairsWithin * instruments.length,
      )) {
        newest[several ? `${symbol}.${factor}` : factor!] = { value: value!, tsEvent: ts_event! };
      }
      return JSON.stringify(newest);
    },
  };
}

/** The number in a trade id such as `T12`: the order in which fills were booked. */
function tradeNumber({ trade_id }: Fields): number {
  return Number(trade_id!.slice(1));
}

const nano = 1_000_000_000n;

/** An exact number with at most nine decimals, in units of 10^-9. */
function nanosOf(text: string): bigint {
  const [, sign = "", whole = "0", decimals = ""] = /^(-?)(\d+)(?:\.(\d{1,9}))?$/.exec(text) ?? [];
  const scaled = BigInt(whole + decimals.padEnd(9, "0"));
  return sign === "-" ? -scaled : scaled;
}

function onlyMissing(thrown: unknown): undefined {
  if (thrown instanceof RunvaultError && thrown.code === "capability_unavailable") return undefined;
  throw thrown;
}
