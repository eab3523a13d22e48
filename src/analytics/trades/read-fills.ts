import type { DuckDBConnection } from "@duckdb/node-api";
import {
  commonDecimal,
  copyExact,
  decimalSql,
  exactValues,
  int32s,
  int64s,
} from "../../duckdb/exact-vector.ts";
import { identifier } from "../../duckdb/sql.ts";
import { createTextType } from "../../duckdb/text-type.ts";
import { countedStream, type RowChunk } from "../../duckdb/whole-stream.ts";
import { RunvaultError } from "../../model/error.ts";
import { type DecimalType, type ExactTypes, exactType } from "../../model/profile/exact-types.ts";
import type { RunRef } from "../../model/source.ts";
import { naturalOrder } from "../../model/text/natural-order.ts";
import type { RunInstruments } from "../instruments/resolve-instruments.ts";
import type { FillColumns, FillOrder, PositionKey } from "./fill-columns.ts";
import { scalesOf } from "./valuation.ts";

/** Types from the archive and the caller for reading fills. */
export interface FillReading {
  readonly run: RunRef;
  readonly instruments: RunInstruments;
  /** Types of the columns of `fills`. */
  readonly exactTypes: ExactTypes;
  /** The type that prices of fills and bars are read as. */
  readonly priceType: DecimalType;
  readonly order: FillOrder;
  /** Whether to read each fill's order. */
  readonly withOrders: boolean;
}

/** Columns of text that are read as numbers, by the place of the text in the order of all there are. */
const named = ["account", "portfolio", "venue", "symbol", "fee_currency"] as const;
type Named = (typeof named)[number];

/**
 * Reads the fills of the view `fills`, which must show a single run, in bounded memory apart from the columns. Throws
 * `malformed_row` for a row without price, quantity or side, and for a negative quantity.
 */
export async function readFills(connection: DuckDBConnection, reading: FillReading): Promise<FillColumns> {
  const { run, instruments, exactTypes, priceType, order, withOrders } = reading;
  const count = await countFills(connection, run);
  const texts = await distinctTexts(connection);
  const codes: string[] = [];
  for (const column of named) codes.push(await codeSql(connection, column, texts[column]));
  const [quantityType, feeType] = (["quantity", "fee"] as const).map((column) =>
    commonDecimal([exactType(exactTypes, column)]),
  ) as [DecimalType, DecimalType];
  const columns = {
    ts: new BigInt64Array(count),
    seq: new BigUint64Array(count),
    price: exactValues(priceType, count),
    quantity: exactValues(quantityType, count),
    fee: exactValues(feeType, count),
    isBuy: new Uint8Array(count),
    position: new Int32Array(count),
    venue: new Int32Array(count),
    feeCurrency: new Int32Array(count),
    order: withOrders ? new Int32Array(count) : null,
  };
  const positions = new PositionIndex(texts, instruments);
  const orders = new Map<string, number>();
  // only of fills that share their instant with another, or may
  const tradeIds: string[] = [];
  const sql = [
    "ts_event",
    "seq",
    `CAST(price AS ${decimalSql(priceType)})`,
    `CAST(quantity AS ${decimalSql(quantityType)})`,
    `CAST(coalesce(fee, 0) AS ${decimalSql(feeType)})`,
    "CAST(side = 'BUY' AS INTEGER)",
    ...codes,
    ...(order === "trade_id" ? ["trade_id"] : []),
    ...(withOrders ? ["client_order_id"] : []),
  ];
  const idColumn = sql.indexOf("trade_id");
  const orderColumn = sql.indexOf("client_order_id");
  let at = 0;
  const result = await connection.stream(`SELECT ${sql.join(", ")} FROM fills`);
  for await (const more of countedStream(result, count)) {
    const { rows } = more;
    const ts = int64s(more, 0);
    columns.ts.set(ts, at);
    columns.seq.set(new BigUint64Array(int64s(more, 1).buffer, int64s(more, 1).byteOffset, rows), at);
    copyExact(more, 2, columns.price, at);
    copyExact(more, 3, columns.quantity, at);
    copyExact(more, 4, columns.fee, at);
    columns.isBuy.set(int32s(more, 5), at);
    const [accounts, portfolios, venues, symbols, feeCurrencies] = named.map((_, index) =>
      int32s(more, 6 + index),
    ) as [Int32Array, Int32Array, Int32Array, Int32Array, Int32Array];
    columns.venue.set(venues, at);
    columns.feeCurrency.set(feeCurrencies, at);
    for (let row = 0; row < rows; row++) {
      columns.position[at + row] = positions.of(
        accounts[row]!,
        portfolios[row]!,
        venues[row]!,
        symbols[row]!,
      );
    }
    if (idColumn >= 0) readSharedIds(more, idColumn, ts, at, tradeIds);
    if (columns.order !== null) readOrders(more, orderColumn, orders, columns.order, at);
    at += rows;
  }
  const ordered = order === "trade_id" ? inTradeOrder(columns, tradeIds) : columns;
  return {
    ...ordered,
    count,
    scales: scalesOf(priceType.scale, quantityType.scale, feeType.scale, instruments.instruments),
    positions: positions.keys,
    venues: texts.venue,
    feeCurrencies: texts.fee_currency,
    orders: [...orders.keys()],
  };
}

/** The number of fills. Throws `malformed_row` if one does not follow the interface. */
async function countFills(connection: DuckDBConnection, run: RunRef): Promise<number> {
  const faults = [
    ["price", "price IS NULL"],
    ["quantity", "quantity IS NULL OR quantity < 0"],
    ["side", "side NOT IN ('BUY', 'SELL')"],
  ] as const;
  const first = faults.map(([, is]) => `min(seq) FILTER (${is})`).join(", ");
  const result = await connection.runAndReadAll(`SELECT count(*), ${first} FROM fills`);
  const [count, ...seqs] = result.getRows()[0]!;
  const wrong = seqs.findIndex((seq) => seq !== null);
  if (wrong >= 0) {
    throw new RunvaultError(
      "malformed_row",
      `the fill with seq ${seqs[wrong]} has no valid ${faults[wrong]![0]}`,
      {
        place: { instance: run.instanceId, run: run.runId, table: "fills" },
        hint: "Look at the row with `runvault query`; trades cannot be computed without it.",
      },
    );
  }
  return Number(count);
}

async function distinctTexts(connection: DuckDBConnection): Promise<Readonly<Record<Named, string[]>>> {
  const lists = named.map((column) => `list_sort(list(DISTINCT ${identifier(column)}))`).join(", ");
  const [row] = (await connection.runAndReadAll(`SELECT ${lists} FROM fills`)).getRowsJS();
  const entries = named.map((column, index) => [column, ((row?.[index] ?? []) as unknown[]).map(String)]);
  return Object.fromEntries(entries) as Record<Named, string[]>;
}

/** The place of a column's text among these, from 0: its number in a type that is made of them. */
async function codeSql(
  connection: DuckDBConnection,
  column: Named,
  texts: readonly string[],
): Promise<string> {
  if (texts.length <= 1) return "CAST(0 AS INTEGER)";
  const type = await createTextType(connection, `${column} of fills`, texts);
  return `CAST(enum_code(CAST(${identifier(column)} AS ${type})) AS INTEGER)`;
}

/** Numbers positions in the order of their first fill. */
class PositionIndex {
  readonly keys: PositionKey[] = [];
  readonly #texts: Readonly<Record<Named, string[]>>;
  readonly #instruments: RunInstruments;
  readonly #byCodes = new Map<number, number>();
  readonly #byKey = new Map<string, number>();

  constructor(texts: Readonly<Record<Named, string[]>>, instruments: RunInstruments) {
    this.#texts = texts;
    this.#instruments = instruments;
  }

  of(account: number, portfolio: number, venue: number, symbol: number): number {
    const texts = this.#texts;
    const codes =
      ((account * texts.portfolio.length + portfolio) * texts.venue.length + venue) * texts.symbol.length +
      symbol;
    return this.#byCodes.get(codes) ?? this.#add(codes, account, portfolio, venue, symbol);
  }

  #add(codes: number, account: number, portfolio: number, venue: number, symbol: number): number {
    const instrument = this.#instruments.of(this.#texts.symbol[symbol]!, this.#texts.venue[venue]!);
    const key = JSON.stringify([account, portfolio, this.#instruments.instruments.indexOf(instrument)]);
    const position = this.#byKey.get(key) ?? this.keys.length;
    if (position === this.keys.length) {
      const own = {
        account: this.#texts.account[account]!,
        portfolio: this.#texts.portfolio[portfolio]!,
        instrument,
      };
      this.keys.push(own);
      this.#byKey.set(key, position);
    }
    this.#byCodes.set(codes, position);
    return position;
  }
}

/** Reads the trade ids of rows whose instant another has, too, as far as the chunk can tell. */
function readSharedIds(
  { chunk, rows }: RowChunk,
  column: number,
  ts: BigInt64Array,
  at: number,
  ids: string[],
): void {
  const vector = chunk.getColumnVector(column);
  for (let row = 0; row < rows; row++) {
    const isAtEnd = row === 0 || row === rows - 1;
    if (isAtEnd || ts[row] === ts[row - 1] || ts[row] === ts[row + 1])
      ids[at + row] = String(vector.getItem(row));
  }
}

function readOrders(
  { chunk, rows }: RowChunk,
  column: number,
  known: Map<string, number>,
  to: Int32Array,
  at: number,
): void {
  const vector = chunk.getColumnVector(column);
  for (let row = 0; row < rows; row++) {
    const id = String(vector.getItem(row));
    const order = known.get(id) ?? known.size;
    if (order === known.size) known.set(id, order);
    to[at + row] = order;
  }
}

type Columns = Omit<FillColumns, "count" | "scales" | "positions" | "venues" | "feeCurrencies" | "orders">;

/** The same fills, those of one instant in the order of their trade ids. */
function inTradeOrder(columns: Columns, ids: readonly string[]): Columns {
  const { ts } = columns;
  const places = Int32Array.from(ts, (_, index) => index);
  for (let from = 0; from < ts.length; ) {
    let to = from + 1;
    while (to < ts.length && ts[to] === ts[from]) to++;
    // the sort is stable: fills of one id stay in the order of their keys
    if (to - from > 1) places.subarray(from, to).sort((a, b) => naturalOrder(ids[a]!, ids[b]!) || a - b);
    from = to;
  }
  const moved = <T extends BigInt64Array | BigUint64Array | bigint[] | Int32Array | Uint8Array>(
    from: T,
  ): T => {
    const to = from.slice() as T;
    for (let i = 0; i < places.length; i++) to[i] = from[places[i]!]!;
    return to;
  };
  return {
    ts,
    seq: moved(columns.seq),
    price: moved(columns.price),
    quantity: moved(columns.quantity),
    fee: moved(columns.fee),
    isBuy: moved(columns.isBuy),
    position: moved(columns.position),
    venue: moved(columns.venue),
    feeCurrency: moved(columns.feeCurrency),
    order: columns.order === null ? null : moved(columns.order),
  };
}
