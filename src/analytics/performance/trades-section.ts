import type { Nanoseconds } from "../../model/time.ts";
import { instantOf } from "../section/macro-rows.ts";
import type { MeasuredRun, Section } from "../section/section.ts";
import { breakdowns, tradeFigures } from "../trades/trade-figures.ts";

/** The figures of trades, all together and by symbol, venue, side, hour and weekday. */
export const tradesSection: Section = {
  name: "trades",
  title: "Trades",
  tables: ["fills", "bars", "equity"],
  isWanted: () => true,
  conventions: ({ group }) => `grouped ${groupWords[group]} (${group}), net of fees`,
  read: async (run) => {
    const span = await spanOf(run);
    if (span === null) return { groups: [], notes: ["no fills"] };
    const trades = await run.trades();
    const groups = tradeFigures(trades, run.options.group, span.from, span.to).map(
      ({ account, portfolio, currency, figures, by }) => ({
        ...{ account, portfolio, currency, figures },
        parts: breakdowns.flatMap((name) =>
          by[name].map(({ key, ...own }) => ({ by: name, key, figures: own })),
        ),
      }),
    );
    const held = trades.heldBefore.map(
      ({ account, portfolio, currency, positionValue }) =>
        `${account}/${portfolio} held a position of ${positionValue} ${currency} before its first fill: how its first trades began is unknown`,
    );
    const order = `fills with the same timestamp are taken in the order of their ${orderWords[trades.order]}${
      run.options.fillOrder === "auto" ? " (chosen automatically)" : ""
    }`;
    return {
      groups,
      notes: [order, ...trades.instruments.taken.map((text) => `instrument ${text}`), ...held],
    };
  },
};

const groupWords = {
  flat: "from flat to flat",
  order: "by closing order",
  match: "by single match",
} as const;

const orderWords = { key: "keys", trade_id: "trade ids" } as const;

/** From the first to the last of a run's equity rows and fills; null without fills. */
async function spanOf({ connection }: MeasuredRun): Promise<{ from: Nanoseconds; to: Nanoseconds } | null> {
  const result = await connection.runAndReadAll(`
    SELECT epoch_ns(min(ts)), epoch_ns(max(ts)), count(*) FILTER (WHERE is_fill)
    FROM (SELECT ts_event AS ts, true AS is_fill FROM fills UNION ALL SELECT ts_event, false FROM equity)`);
  const [from, to, fills] = result.getRows()[0] ?? [];
  if (from === null || from === undefined || Number(fills) === 0) return null;
  return { from: instantOf(from), to: instantOf(to) };
}
