import type { ExactTypes } from "../../model/profile/exact-types.ts";
import type { TableName } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import type { InstrumentsFile } from "../instruments/read-instruments.ts";
import { type RunInstruments, resolveInstruments } from "../instruments/resolve-instruments.ts";
import { readRunFacts } from "../instruments/run-facts.ts";
import type { RunViews } from "../run-views.ts";
import { type BarColumns, readBars } from "./bar-columns.ts";
import type { FillColumns, FillOrder } from "./fill-columns.ts";
import { type HeldBefore, readHeldBefore } from "./held-before.ts";
import { readFills } from "./read-fills.ts";
import type { Grouping } from "./trade.ts";
import { pricesTogether, tradedTables } from "./traded-tables.ts";
import { valuationOf } from "./valuation.ts";
import { type FinalPosition, type Walk, walkTrades } from "./walk-trades.ts";

export interface RunTradesOptions {
  /** The file of `--instruments`; null for the defaults. */
  readonly instruments: InstrumentsFile | null;
  /** Default `key`. */
  readonly order?: FillOrder;
  /** Needed for trades by order. */
  readonly withOrders?: boolean;
}

/** A run's fills with everything needed for trades, in memory. */
export interface RunTrades {
  readonly run: RunRef;
  readonly instruments: RunInstruments;
  readonly fills: FillColumns;
  /** How fills that share an instant are ordered. */
  readonly order: FillOrder;
  /** Portfolios whose trades begin from a position that no fill of the run opened. */
  readonly heldBefore: readonly HeldBefore[];
  barsOf(position: number): BarColumns | null;
  /** The value of a signed quantity of a position's instrument at a price, in money. */
  value(position: number, quantity: bigint, price: bigint): bigint;
  /** Makes one pass over the fills. */
  walk(grouping: Grouping, told?: Pick<Walk, "onTrade" | "onMatch" | "withPaths">): readonly FinalPosition[];
}

/**
 * Reads the data for a run's trades; the views must show `tradedTables`. From then on they show this run alone:
 * `showAll` undoes it. `exactTypes` has the archive's types. Throws `invalid_argument` if the run's instruments are
 * unclear, and `malformed_row` for invalid fills.
 */
export async function readRunTrades(
  views: RunViews,
  exactTypes: (table: TableName) => ExactTypes,
  run: RunRef,
  options: RunTradesOptions,
): Promise<RunTrades> {
  const { connection } = views;
  for (const table of tradedTables) await views.showOnly(table, run);
  const instruments = resolveInstruments(await readRunFacts(connection, run), options.instruments);
  const priceType = pricesTogether(exactTypes);
  const { order = "key" } = options;
  const fills = await readFills(connection, {
    run,
    instruments,
    exactTypes: exactTypes("fills"),
    priceType,
    order,
    withOrders: options.withOrders ?? false,
  });
  const read = new Map<string, BarColumns>();
  const bars: (BarColumns | null)[] = [];
  for (const { instrument } of fills.positions) {
    const source = instrument.bars;
    const key = source === null ? "" : JSON.stringify([source.symbol, source.venue, `${source.intervalNs}`]);
    if (source !== null && !read.has(key)) read.set(key, await readBars(connection, source, priceType));
    bars.push(read.get(key) ?? null);
  }
  const values = fills.positions.map(({ instrument }) => valuationOf(instrument, fills.scales));
  const heldBefore = await readHeldBefore(connection);
  const barsOf = (position: number) => bars[position] ?? null;
  return {
    run,
    instruments,
    fills,
    order,
    heldBefore,
    barsOf,
    value: (position, quantity, price) => values[position]!(quantity, price),
    walk: (grouping, told = {}) => walkTrades({ fills, barsOf, grouping, ...told }),
  };
}
