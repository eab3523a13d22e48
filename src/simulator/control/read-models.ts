import { fromJson } from "@bufbuild/protobuf";
import { EventSchema } from "../../gen/example/history/v1/rows_pb.ts";
import type { ReadModel } from "../../model/control.ts";
import { RunvaultError } from "../../model/error.ts";
import { divideHalfEven, formatScaled } from "../../model/fixed-point.ts";
import type { SeenRun } from "../seen-run.ts";
import type { SimulatorOptions } from "../simulator-options.ts";
import type { RunRows } from "../world/run-rows.ts";

/** As the contract says of EventsResult. */
const mostEvents = 1000;
/** Equity and bar of one instant may become known minutes apart; among so many of each there is a pair. */
const pairsWithin = 64;

type Result = NonNullable<ReadModel["result"]>;

/** What a runtime tells of a running run, from the rows known of it. */
export interface ReadModels {
  /** False until there is a first equity point to tell of. */
  hasAccounts(seen: SeenRun): Promise<boolean>;
  accounts(seen: SeenRun): Promise<Extract<Result, { case: "accounts" }>["value"]>;
  portfolios(seen: SeenRun): Promise<Extract<Result, { case: "portfolios" }>["value"]>;
  events(seen: SeenRun): Promise<Extract<Result, { case: "events" }>["value"]>;
  /** The newest value of each factor, as JSON text: a read model that this project adds. */
  factors(seen: SeenRun): Promise<string>;
}

type Fields = Readonly<Record<string, string>>;

export function readModels(rows: RunRows, options: SimulatorOptions, symbol: string): ReadModels {
  const { account, portfolio, venue } = options;

  const last = async (
    { run, known }: SeenRun,
    table: "equity" | "bars" | "factors" | "events",
    count: number,
  ): Promise<Fields[]> =>
    (await rows.last(run, table, count, known)).map((line) => JSON.parse(line) as Fields);

  /** The newest equity point whose bar is known too, with the bar's close. */
  const marked = async (seen: SeenRun): Promise<{ readonly equity: Fields; readonly close: string }> => {
    const closes = new Map<string, string>();
    for (const { ts_event, close } of await last(seen, "bars", pairsWithin)) closes.set(ts_event!, close!);
    const points = (await last(seen, "equity", pairsWithin)).reverse();
    for (const equity of points) {
      const close = closes.get(equity.ts_event!);
      if (close !== undefined) return { equity, close };
    }
    throw new RunvaultError("capability_unavailable", "the instance has no marked equity yet", {
      capability: "portfolios",
      hint: "Ask again after the run's first bar.",
    });
  };

  return {
    async hasAccounts(seen) {
      return (await marked(seen).catch(onlyMissing)) !== undefined;
    },
    async accounts(seen) {
      const { equity } = await marked(seen);
      const { currency, cash } = equity;
      return {
        accounts: [{ account, venue, currency: currency!, cash: cash!, equity: equity.equity! }],
      };
    },
    async portfolios(seen) {
      const { equity, close } = await marked(seen);
      const value = nanosOf(equity.position_value!);
      const positions = [];
      if (value !== 0n) {
        // the value is close × quantity exactly, so the division leaves nothing over
        const mark = nanosOf(close);
        const quantity = (value * nano) / mark;
        const cost = value - nanosOf(equity.unrealized!);
        const [numerator, denominator] = quantity < 0n ? [-cost, -quantity] : [cost, quantity];
        positions.push({
          venue,
          symbol,
          quantity: formatScaled(quantity, 9),
          averagePrice: formatScaled(divideHalfEven(numerator * nano, denominator), 9),
          markPrice: close,
        });
      }
      return {
        portfolios: [{ portfolio, account, currency: equity.currency!, equity: equity.equity!, positions }],
      };
    },
    async events(seen) {
      const events = await rows.last(seen.run, "events", mostEvents, seen.known);
      return { events: events.map((line) => fromJson(EventSchema, JSON.parse(line))) };
    },
    async factors(seen) {
      const newest: Record<string, { value: string; tsEvent: string }> = {};
      for (const { factor, value, ts_event } of await last(seen, "factors", pairsWithin)) {
        newest[factor!] = { value: value!, tsEvent: ts_event! };
      }
      return JSON.stringify(newest);
    },
  };
}

const nano = 1_000_000_000n;

/** An exact number of at most nine decimals, in units of 10^-9. */
function nanosOf(text: string): bigint {
  const [, sign = "", whole = "0", decimals = ""] = /^(-?)(\d+)(?:\.(\d{1,9}))?$/.exec(text) ?? [];
  const scaled = BigInt(whole + decimals.padEnd(9, "0"));
  return sign === "-" ? -scaled : scaled;
}

function onlyMissing(thrown: unknown): undefined {
  if (thrown instanceof RunvaultError && thrown.code === "capability_unavailable") return undefined;
  throw thrown;
}
