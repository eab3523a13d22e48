import type { ExactValues } from "../../duckdb/exact-vector.ts";
import type { Instrument } from "../instruments/instrument.ts";
import type { Scales } from "./valuation.ts";

/** One position: an instrument, at all of its venues, in a portfolio of an account. */
export interface PositionKey {
  readonly account: string;
  readonly portfolio: string;
  readonly instrument: Instrument;
}

/** The fills of a run in the order in which they count, a column each; no fill is an object. */
export interface FillColumns {
  readonly count: number;
  readonly scales: Scales;
  /** UNIX nanoseconds. */
  readonly ts: BigInt64Array;
  readonly seq: BigUint64Array;
  readonly price: ExactValues;
  /** Never negative; zero in a fill that moves no position. */
  readonly quantity: ExactValues;
  /** Zero if a row has none. */
  readonly fee: ExactValues;
  readonly isBuy: Uint8Array;
  /** Index in `positions`. */
  readonly position: Int32Array;
  /** Index in `venues`. */
  readonly venue: Int32Array;
  /** Index in `feeCurrencies`. */
  readonly feeCurrency: Int32Array;
  /** Index in `orders`; null if not requested. */
  readonly order: Int32Array | null;
  readonly positions: readonly PositionKey[];
  readonly venues: readonly string[];
  readonly feeCurrencies: readonly string[];
  /** Client order ids; empty if not requested. */
  readonly orders: readonly string[];
}

/**
 * How fills are ordered. `key`: as the archive is, by ts_event and seq, which is the order of arrival. `trade_id`: by
 * ts_event, and within an instant by the venue's trade id, T9 before T10, which is the order they were booked in.
 */
export const fillOrders = ["key", "trade_id"] as const;
export type FillOrder = (typeof fillOrders)[number];

/** The same, and `auto`: whichever holds. */
export const fillOrderChoices = ["auto", ...fillOrders] as const;
