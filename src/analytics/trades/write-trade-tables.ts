import type { DuckDBConnection } from "@duckdb/node-api";
import { identifier, literal } from "../../duckdb/sql.ts";
import { TableWriter, type WrittenType } from "../../duckdb/table-writer.ts";
import type { ExactTypes } from "../../model/profile/exact-types.ts";
import type { TableName } from "../../model/profile/table.ts";
import type { InstrumentsFile } from "../instruments/read-instruments.ts";
import type { AllRunViews } from "../run-views.ts";
import { type RunTrades, readRunTrades } from "./run-trades.ts";
import type { Grouping, Trade } from "./trade.ts";
import { type TradeColumn, type TradeTableName, type TradeTables, tradeTables } from "./trade-tables.ts";
import { tradedTables } from "./traded-tables.ts";
import type { FinalPosition } from "./walk-trades.ts";

/** The schema of what the views of these tables stand on. */
const schema = "trade_rows";

export interface TradeTablesOptions {
  readonly instruments: InstrumentsFile | null;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Makes the views `round_trips`, `matches` and `positions`, those that are named, over rows computed from the fills of all
 * runs that the views show. Throws as `readRunTrades` does, and the signal's reason between two runs.
 */
export async function writeTradeTables(
  views: AllRunViews,
  exactTypes: (table: TableName) => ExactTypes,
  names: readonly TradeTableName[],
  { instruments, signal }: TradeTablesOptions,
): Promise<void> {
  const { connection } = views;
  await views.show(tradedTables, signal);
  await connection.run(`CREATE SCHEMA IF NOT EXISTS ${identifier(schema)}`);
  const columns = tradeTables(exactTypes);
  const writers = new Writers(connection, columns);
  try {
    for (const name of names) await writers.open(name);
    for (const run of views.runsOf("fills")) {
      signal?.throwIfAborted();
      writers.add(await readRunTrades(views, exactTypes, run, { instruments }));
    }
  } finally {
    for (const table of tradedTables) await views.showAll(table);
  }
  await writers.close();
}

/**
 * Copies what `writeTradeTables` made into an attached database, as separate tables that need nothing from the
 * archive. Trades are made before that, while the archive's own database is the one in use.
 */
export async function copyTradeTables(
  connection: DuckDBConnection,
  names: readonly TradeTableName[],
  database: string,
): Promise<void> {
  for (const name of names) {
    const to = `${identifier(database)}.main.${identifier(name)}`;
    await connection.run(`CREATE TABLE ${to} AS FROM memory.main.${identifier(name)}`);
  }
}

/** The tables that are being written, by name. */
class Writers {
  readonly #connection: DuckDBConnection;
  readonly #columns: TradeTables;
  #roundTrips: RowWriter<Trade> | null = null;
  #matches: RowWriter<Trade> | null = null;
  #positions: RowWriter<FinalPosition> | null = null;

  constructor(connection: DuckDBConnection, columns: TradeTables) {
    this.#connection = connection;
    this.#columns = columns;
  }

  async open(name: TradeTableName): Promise<void> {
    const { round_trips, matches, positions } = this.#columns;
    if (name === "round_trips") this.#roundTrips = await RowWriter.open(this.#connection, name, round_trips);
    if (name === "matches") this.#matches = await RowWriter.open(this.#connection, name, matches);
    if (name === "positions") this.#positions = await RowWriter.open(this.#connection, name, positions);
  }

  add(run: RunTrades): void {
    const trades = (grouping: Grouping, onTrade?: (trade: Trade) => void) =>
      run.walk(grouping, onTrade === undefined ? {} : { withPaths: true, onTrade });
    const [roundTrips, matches, positions] = [this.#roundTrips, this.#matches, this.#positions];
    let ends: readonly FinalPosition[] | null = null;
    if (roundTrips !== null) ends = trades("flat", (trade) => roundTrips.add(trade, run));
    if (matches !== null) {
      ends = trades("match", (trade) => {
        if (!trade.isOpen) matches.add(trade, run);
      });
    }
    if (positions === null) return;
    for (const position of ends ?? trades("flat")) positions.add(position, run);
  }

  async close(): Promise<void> {
    for (const writer of [this.#roundTrips, this.#matches, this.#positions]) await writer?.close();
  }
}

/** One table: rows with numbers in place of texts, which the view over them puts back. */
class RowWriter<Row> {
  readonly #connection: DuckDBConnection;
  readonly #name: string;
  readonly #columns: readonly TradeColumn<Row>[];
  readonly #writer: TableWriter;
  /** By column of text: the number of each text, from 1, as DuckDB counts the parts of a list. */
  readonly #texts: readonly Map<string, number>[];

  private constructor(
    connection: DuckDBConnection,
    name: string,
    columns: readonly TradeColumn<Row>[],
    writer: TableWriter,
  ) {
    this.#connection = connection;
    this.#name = name;
    this.#columns = columns;
    this.#writer = writer;
    this.#texts = columns.map(() => new Map());
  }

  static async open<Row>(
    connection: DuckDBConnection,
    name: string,
    columns: readonly TradeColumn<Row>[],
  ): Promise<RowWriter<Row>> {
    const types = columns.map((column): [string, WrittenType] => [
      column.name,
      column.type === "VARCHAR" ? "INTEGER" : column.type,
    ]);
    const writer = await TableWriter.open(connection, schema, name, Object.fromEntries(types));
    return new RowWriter(connection, name, columns, writer);
  }

  add(row: Row, run: RunTrades): void {
    for (let index = 0; index < this.#columns.length; index++) {
      const column = this.#columns[index]!;
      const value =
        column.type === "VARCHAR" ? this.#textCode(index, column.of(row, run)) : column.of(row, run);
      this.#writer.set(index, value);
    }
    this.#writer.endRow();
  }

  #textCode(column: number, text: string | null): number | null {
    if (text === null) return null;
    const texts = this.#texts[column]!;
    const known = texts.get(text) ?? texts.size + 1;
    if (known > texts.size) texts.set(text, known);
    return known;
  }

  async close(): Promise<void> {
    this.#writer.close();
    const columns = this.#columns.map(({ name, type }, index) => {
      if (type !== "VARCHAR") return identifier(name);
      const texts = [...this.#texts[index]!.keys()].map(literal);
      return `list_extract(CAST([${texts.join(", ")}] AS VARCHAR[]), ${identifier(name)}) AS ${identifier(name)}`;
    });
    const rows = `${identifier(schema)}.${identifier(this.#name)}`;
    await this.#connection.run(
      `CREATE OR REPLACE VIEW ${identifier(this.#name)} AS SELECT ${columns.join(", ")} FROM ${rows}`,
    );
  }
}
