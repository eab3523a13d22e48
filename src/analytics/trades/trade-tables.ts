import { commonDecimal } from "../../duckdb/exact-vector.ts";
import { columnSqlType, type WrittenType } from "../../duckdb/table-writer.ts";
import { type DecimalType, type ExactTypes, exactType } from "../../model/profile/exact-types.ts";
import type { TableName } from "../../model/profile/table.ts";
import type { RunTrades } from "./run-trades.ts";
import { netOf, none, type Trade } from "./trade.ts";
import { pricesTogether } from "./traded-tables.ts";
import { priceAt, rescale, storedMoney } from "./valuation.ts";
import type { FinalPosition } from "./walk-trades.ts";

/** The tables that are made of fills: only when a statement names one. */
export const tradeTableNames = ["round_trips", "matches", "positions"] as const;
export type TradeTableName = (typeof tradeTableNames)[number];

/**
 * A column for rows of one kind: its type, and its value in a row. Text is separate, because each text is kept once.
 */
export type TradeColumn<Row> = { readonly name: string } & (
  | { readonly type: "VARCHAR"; readonly of: (row: Row, run: RunTrades) => string | null }
  | {
      readonly type: WrittenType;
      readonly of: (row: Row, run: RunTrades) => bigint | number | boolean | null;
    }
);

export interface TradeTables {
  readonly round_trips: readonly TradeColumn<Trade>[];
  readonly matches: readonly TradeColumn<Trade>[];
  readonly positions: readonly TradeColumn<FinalPosition>[];
}

/** The columns of the tables, with types that follow from those of the archive. */
export function tradeTables(exactTypes: (table: TableName) => ExactTypes): TradeTables {
  const price = pricesTogether(exactTypes);
  const [quantity, fee] = (["quantity", "fee"] as const).map((column) =>
    commonDecimal([exactType(exactTypes("fills"), column)]),
  ) as [DecimalType, DecimalType];
  // sums of a column that has 64 bits need more
  const quantities = { precision: 38, scale: quantity.scale };
  const fees = { precision: 38, scale: fee.scale };
  return {
    round_trips: [
      ...identity((trade: Trade) => trade.position),
      { name: "venue", type: "VARCHAR", of: (trade, { fills }) => fills.venues[trade.venue] ?? null },
      { name: "side", type: "VARCHAR", of: sideOf },
      { name: "is_open", type: "BOOLEAN", of: (trade) => trade.isOpen },
      { name: "quantity", type: quantities, of: (trade) => trade.quantity },
      { name: "entry_fills", type: "INTEGER", of: (trade) => trade.entryFills },
      { name: "exit_fills", type: "INTEGER", of: (trade) => trade.exitFills },
      ...courseColumns(price),
      {
        name: "mark_price",
        type: price,
        of: ({ mark }) => mark?.price ?? null,
      },
      ...resultColumns(fees),
      ...excursionColumns(price),
    ],
    matches: [
      ...identity((trade: Trade) => trade.position),
      { name: "side", type: "VARCHAR", of: sideOf },
      { name: "quantity", type: quantity, of: (trade) => trade.quantity },
      ...courseColumns(price),
      {
        name: "entry_venue",
        type: "VARCHAR",
        of: ({ entry }, { fills }) => fills.venues[fills.venue[entry]!]!,
      },
      {
        name: "exit_venue",
        type: "VARCHAR",
        of: ({ exit }, { fills }) => fills.venues[fills.venue[exit]!]!,
      },
      ...resultColumns(fees),
      ...excursionColumns(price),
    ],
    positions: [
      ...identity((position: FinalPosition) => position.position),
      { name: "fills", type: "INTEGER", of: (position) => position.fills },
      { name: "first_fill", type: "TIMESTAMP_NS", of: ({ first }, { fills }) => fills.ts[first]! },
      { name: "last_fill", type: "TIMESTAMP_NS", of: ({ last }, { fills }) => fills.ts[last]! },
      { name: "quantity", type: quantities, of: (position) => position.quantity },
      {
        name: "average_price",
        type: price,
        of: ({ position, quantity: open, averageCost }, { fills }) =>
          open === 0n
            ? null
            : priceAt(fills.positions[position]!.instrument, fills.scales, open, averageCost),
      },
      { name: "mark_price", type: price, of: ({ mark }) => mark.price },
      { name: "mark_time", type: "TIMESTAMP_NS", of: ({ mark }) => mark.ts },
      { name: "mark_source", type: "VARCHAR", of: ({ mark }) => mark.source },
      money("value", ({ value }) => value),
      money("cost", ({ averageCost }) => averageCost),
      money("fifo_cost", ({ fifoCost }) => fifoCost),
      money("unrealized_pnl", ({ value, averageCost }) => value - averageCost),
      money("gross_pnl", ({ flow, value }) => flow + value),
      ...feeColumns<FinalPosition>(fees),
      money("net_pnl", (position, { fills }) => netOf(fills, position, position.flow + position.value)),
    ],
  };
}

function identity<Row>(positionOf: (row: Row) => number): readonly TradeColumn<Row>[] {
  const key = (row: Row, { fills }: RunTrades) => fills.positions[positionOf(row)]!;
  return [
    { name: "instance_id", type: "VARCHAR", of: (_, { run }) => run.instanceId },
    { name: "run_id", type: "VARCHAR", of: (_, { run }) => run.runId },
    { name: "account", type: "VARCHAR", of: (row, run) => key(row, run).account },
    { name: "portfolio", type: "VARCHAR", of: (row, run) => key(row, run).portfolio },
    { name: "symbol", type: "VARCHAR", of: (row, run) => key(row, run).instrument.symbol },
    { name: "currency", type: "VARCHAR", of: (row, run) => key(row, run).instrument.currency },
  ];
}

function sideOf({ isLong }: Trade): string {
  return isLong ? "LONG" : "SHORT";
}

/** When and at what a trade was entered and left; exits are NULL where there was none. */
function courseColumns(price: DecimalType): readonly TradeColumn<Trade>[] {
  return [
    { name: "entry_time", type: "TIMESTAMP_NS", of: (trade) => trade.from },
    {
      name: "exit_time",
      type: "TIMESTAMP_NS",
      of: ({ exit }, { fills }) => (exit === none ? null : fills.ts[exit]!),
    },
    { name: "holding_ns", type: "BIGINT", of: ({ from, to }) => to - from },
    { name: "entry_seq", type: "UBIGINT", of: ({ entry }, { fills }) => fills.seq[entry]! },
    {
      name: "exit_seq",
      type: "UBIGINT",
      of: ({ exit }, { fills }) => (exit === none ? null : fills.seq[exit]!),
    },
    { name: "entry_price", type: price, of: (trade) => trade.entryPrice },
    { name: "exit_price", type: price, of: (trade) => trade.exitPrice },
  ];
}

function resultColumns(fees: DecimalType): readonly TradeColumn<Trade>[] {
  return [
    money("gross_pnl", ({ gross }) => gross),
    ...feeColumns<Trade>(fees),
    money("net_pnl", (trade, { fills }) => netOf(fills, trade, trade.gross)),
  ];
}

/** Fees of several currencies are no sum: both columns are NULL then. */
function feeColumns<Row extends { readonly fees: bigint; readonly feeCurrency: number }>(
  fees: DecimalType,
): readonly TradeColumn<Row>[] {
  return [
    { name: "fees", type: fees, of: (row) => (row.feeCurrency < none ? null : row.fees) },
    {
      name: "fee_currency",
      type: "VARCHAR",
      of: ({ feeCurrency }, { fills }) => fills.feeCurrencies[feeCurrency] ?? null,
    },
  ];
}

function excursionColumns(price: DecimalType): readonly TradeColumn<Trade>[] {
  // computed once a row, though five columns show it
  let known: { readonly of: Trade; readonly is: ReturnType<Trade["excursions"]> } | null = null;
  const of = (trade: Trade, run: RunTrades) => {
    if (known?.of !== trade) known = { of: trade, is: trade.excursions(run) };
    return known.is;
  };
  return [
    { name: "mae", type: price, of: (trade, run) => of(trade, run).mae },
    { name: "mfe", type: price, of: (trade, run) => of(trade, run).mfe },
    money("mae_pnl", (trade: Trade, run) => of(trade, run).maePnl),
    money("mfe_pnl", (trade: Trade, run) => of(trade, run).mfePnl),
    { name: "excursion_source", type: "VARCHAR", of: (trade, run) => of(trade, run).source },
  ];
}

/** Money as it is stored; rounded half-even where a widened archive has more decimals. */
function money<Row>(name: string, of: (row: Row, run: RunTrades) => bigint | null): TradeColumn<Row> {
  return {
    name,
    type: storedMoney,
    of: (row, run) => {
      const value = of(row, run);
      return value === null ? null : rescale(value, run.fills.scales.money, storedMoney.scale);
    },
  };
}

/** Name and DuckDB type of each column of a table, for a view of it that has no rows yet. */
export function tradeTableTypes(
  exactTypes: (table: TableName) => ExactTypes,
  name: TradeTableName,
): readonly (readonly [name: string, type: string])[] {
  const columns: readonly TradeColumn<never>[] = tradeTables(exactTypes)[name];
  return columns.map((column) => [column.name, columnSqlType(column.type)]);
}
