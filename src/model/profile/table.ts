import { rowColumns } from "../../gen/example/history/v1/rows_columns.ts";
import { RunvaultError } from "../error.ts";
import { nearestName } from "../text/nearest-name.ts";

/**
 * What a column holds:
 * `uint64`, `int64`, `uint32`: integers; the 64-bit ones are strings in JSON.
 * `timestamp`: int64 UNIX nanoseconds, a string in JSON, TIMESTAMP_NS in Parquet.
 * `exact`: a decimal string, DECIMAL in Parquet; the empty string is an absent value.
 * `double`: a statistic; NaN and the infinities are strings in JSON.
 * `string`: text; empty stays empty. Never NULL.
 */
export type ColumnKind = "uint64" | "int64" | "uint32" | "timestamp" | "exact" | "double" | "string";

export interface Column {
  readonly name: string;
  /** Protobuf type of its field. */
  readonly scalar: string;
  readonly kind: ColumnKind;
  /** Text for people, which may need escapes in JSON; identifiers and names do not. */
  readonly freeText: boolean;
  /** Default DuckDB type of an exact column in an archive; undefined for other kinds. */
  readonly exactType: string | undefined;
}

/** Nine decimals and nine digits before them: prices, quantities and money, in one 64-bit integer. */
export const defaultExactType = "DECIMAL(18,9)";

/** The row filters of the interface; each table names those that apply to it. */
export const filterNames = ["resource_key", "symbol", "venue", "account", "portfolio"] as const;
export type FilterName = (typeof filterNames)[number];

export interface Table {
  readonly name: TableName;
  /** Name of the protobuf message of a row; `rowMessage` has its descriptor. */
  readonly rowType: RowType;
  /** REST path below the base address. */
  readonly path: string;
  /** Rows come in rising order of these columns. */
  readonly key: readonly string[];
  readonly columns: readonly Column[];
  readonly filters: readonly FilterName[];
  /** One line of meaning. */
  readonly meaning: string;
}

export type RowType = keyof typeof rowColumns;

interface Entry {
  readonly rowType: RowType;
  readonly path: string;
  readonly exact: readonly string[];
  /** Exact columns that need more than the default type: six times slower, so only where data has such values. */
  readonly exactTypes?: Readonly<Record<string, string>>;
  readonly freeText?: readonly string[];
  readonly filters: readonly FilterName[];
  readonly meaning: string;
}

const everyFilter = filterNames;

/** The table of tables. A new table is one message in proto/ and one entry here; see CONTRIBUTING.md. */
const entries = {
  fills: {
    rowType: "Fill",
    path: "/history/fills",
    exact: ["price", "quantity", "fee"],
    filters: everyFilter,
    meaning: "executions: each is a part or the whole of an order that was traded",
  },
  orders: {
    rowType: "OrderEvent",
    path: "/history/orders",
    exact: ["quantity", "price", "stop_price", "filled_quantity", "average_price", "arrival_price"],
    freeText: ["reason"],
    filters: everyFilter,
    meaning: "steps in the lives of orders",
  },
  bars: {
    rowType: "MarketBar",
    path: "/history/bars",
    exact: ["open", "high", "low", "close", "volume"],
    // recorded volumes are sums with up to eleven decimals, and tokens count in eighteen
    exactTypes: { volume: "DECIMAL(38,18)" },
    filters: ["resource_key", "symbol", "venue"],
    meaning: "market bars, stamped at their close",
  },
  order_book: {
    rowType: "OrderBookRow",
    path: "/history/order-book",
    exact: ["price", "quantity"],
    filters: ["resource_key", "symbol", "venue"],
    meaning: "price levels of order-book snapshots",
  },
  factors: {
    rowType: "FactorSample",
    path: "/history/factors",
    exact: [],
    filters: ["resource_key", "symbol", "venue", "portfolio"],
    meaning: "values the strategy computed and decided on",
  },
  events: {
    rowType: "Event",
    path: "/history/events",
    exact: ["amount"],
    freeText: ["message", "payload"],
    filters: everyFilter,
    meaning: "what happened to the runtime and to accounts",
  },
  equity: {
    rowType: "EquityPoint",
    path: "/history/portfolio/equity",
    exact: ["cash", "position_value", "equity", "realized", "unrealized"],
    filters: ["resource_key", "account", "portfolio"],
    meaning: "equity of an account over time: cash plus marked positions",
  },
  metrics: {
    rowType: "PortfolioMetric",
    path: "/history/portfolio/metrics",
    exact: [],
    freeText: ["convention"],
    filters: ["resource_key", "account", "portfolio"],
    meaning: "performance figures with their conventions",
  },
} as const satisfies Record<string, Entry>;

export type TableName = keyof typeof entries;

/** Every table, in the usual order. */
export const tables: readonly Table[] = Object.entries(entries).map(([name, entry]: [string, Entry]) => ({
  name: name as TableName,
  rowType: entry.rowType,
  path: entry.path,
  key: ["ts_event", "seq"],
  columns: Object.entries(rowColumns[entry.rowType]).map(([column, scalar]) => ({
    name: column,
    scalar,
    kind: columnKind(column, scalar, entry),
    freeText: entry.freeText?.includes(column) ?? false,
    exactType: entry.exact.includes(column) ? (entry.exactTypes?.[column] ?? defaultExactType) : undefined,
  })),
  filters: entry.filters,
  meaning: entry.meaning,
}));

export const tableNames: readonly TableName[] = tables.map(({ name }) => name);

const byName = new Map<string, Table>(tables.map((table) => [table.name, table]));

export function isTableName(name: string): name is TableName {
  return byName.has(name);
}

/** The hint for an unknown table name: the nearest right one, and all of them. */
export function tableHint(name: string): string {
  const near = nearestName(name, tableNames);
  return `${near === null ? "" : `Did you mean ${near}? `}The tables are ${tableNames.join(", ")}.`;
}

/** The table of that name. Throws `table_unknown` with the nearest right name. */
export function tableNamed(name: string): Table {
  const table = byName.get(name);
  if (table === undefined) {
    throw new RunvaultError("table_unknown", `there is no table ${JSON.stringify(name)}`, {
      hint: tableHint(name),
    });
  }
  return table;
}

function columnKind(column: string, scalar: string, entry: Entry): ColumnKind {
  switch (scalar) {
    case "int64":
      return column.startsWith("ts_") ? "timestamp" : "int64";
    case "string":
      return entry.exact.includes(column) ? "exact" : "string";
    case "uint64":
    case "uint32":
    case "double":
      return scalar;
    default:
      throw new Error(`${entry.rowType}.${column} has a type that no column kind covers: ${scalar}`);
  }
}
