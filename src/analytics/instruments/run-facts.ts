import type { DuckDBConnection } from "@duckdb/node-api";
import type { RunRef } from "../../model/source.ts";

/** Rows of a run with something in common, for messages. */
interface Rows {
  readonly rows: bigint;
  /** The first in the gateway's order. */
  readonly firstSeq: bigint;
}

/** What a run's rows say about its instruments. */
export interface RunFacts {
  readonly run: RunRef;
  /** The markets in which it traded. */
  readonly markets: readonly (Rows & { readonly symbol: string; readonly venue: string })[];
  /** The currencies of its equity rows. */
  readonly currencies: readonly (Rows & { readonly currency: string })[];
  readonly bars: readonly (Rows & {
    readonly symbol: string;
    readonly venue: string;
    readonly intervalNs: bigint;
  })[];
}

/** Reads the facts about a run's instruments. The views `fills`, `equity` and `bars` must show only that run. */
export async function readRunFacts(connection: DuckDBConnection, run: RunRef): Promise<RunFacts> {
  const markets = await rowsOf(connection, "symbol, venue", "fills");
  const currencies = await rowsOf(connection, "currency", "equity");
  return {
    run,
    markets: markets.map(([symbol, venue, rows, seq]) => ({
      symbol: String(symbol),
      venue: String(venue),
      ...named(rows, seq),
    })),
    currencies: currencies.map(([currency, rows, seq]) => ({
      currency: String(currency),
      ...named(rows, seq),
    })),
    bars: await readBarFacts(connection),
  };
}

/** Reads which bars a run has. The view `bars` must show only that run. */
export async function readBarFacts(connection: DuckDBConnection): Promise<RunFacts["bars"]> {
  const bars = await rowsOf(connection, "symbol, venue, interval_ns", "bars");
  return bars.map(([symbol, venue, interval, rows, seq]) => ({
    symbol: String(symbol),
    venue: String(venue),
    intervalNs: BigInt(String(interval)),
    ...named(rows, seq),
  }));
}

async function rowsOf(connection: DuckDBConnection, columns: string, table: string) {
  const counted = `SELECT ${columns}, count(*) AS rows, min(seq) AS first_seq FROM ${table} GROUP BY ALL ORDER BY ALL`;
  return (await connection.runAndReadAll(counted)).getRows();
}

function named(rows: unknown, firstSeq: unknown): Rows {
  return { rows: BigInt(String(rows)), firstSeq: BigInt(String(firstSeq)) };
}
