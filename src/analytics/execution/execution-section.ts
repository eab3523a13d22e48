import { literal } from "../../duckdb/sql.ts";
import { type Figure, figure } from "../figure.ts";
import { writeInstrumentValues } from "../instruments/write-instrument-values.ts";
import { figureOf, groupsOf, type MacroRow, ns } from "../section/macro-rows.ts";
import type { FigurePart, MeasuredRun, Section } from "../section/section.ts";

/** What happened to orders, how long it took, and their cost against the prices when they were submitted. */
export const executionSection: Section = {
  name: "execution",
  title: "Execution",
  tables: ["fills", "orders", "bars", "order_book", "equity"],
  isWanted: () => true,
  conventions: ({ bookAgeMs }) =>
    `orders by their latest row, latency and references from SUBMITTED, slippage in basis points, weighted by notional, costs are positive, against books at most ${bookAgeMs / 1_000} s old`,
  read: async (run) => {
    const { instruments } = run.options;
    if (instruments !== null) await writeInstrumentValues(run.connection, run.run, instruments);
    const rows = await figureRows(run);
    const funnel = await funnelRows(run);
    const isUnclear = rows.some(({ reason }) => /no row says which/.test(String(reason)));
    const absent = ["orders", "bars", "order_book"].flatMap((table) =>
      run.manifest.tables[table as "orders"]?.state === undefined ? [`${table} were never archived`] : [],
    );
    const notes = isUnclear ? [...absent, unclear] : absent;
    if (rows.length === 0) return { groups: [], notes: ["no orders and no fills"] };
    const groups = groupsOf([...rows, ...funnel], (own) => {
      const figures = new Figures(own.filter(({ metric }) => metric !== undefined));
      return {
        figures: figures.ofAll(),
        parts: [
          ...stateParts(
            own.filter(({ state }) => state !== undefined),
            figures.ofAll().orders,
          ),
          ...figures.parts("order_type", ["order_type"], typeFigures),
          ...figures.parts("symbol", ["symbol"], symbolFigures),
          ...figures.parts("accept_latency", ["order_type"], latencies("accept_latency")),
          ...figures.parts("fill_latency", ["order_type"], latencies("fill_latency")),
          ...figures.parts("slippage", ["order_type", "liquidity"], slippageFigures),
          ...figures.parts("venue", ["venue"], { fees: "fees", rebates: "rebates" }),
        ],
      };
    });
    return { groups, notes };
  },
};

const unclear = "set the symbol's currency and bars in a file of --instruments";

/** Names of a part's figures, each with its metric. */
type Named = Readonly<Record<string, string>>;

const typeFigures: Named = {
  orders: "orders",
  fill_ratio_orders: "fill_ratio_orders",
  fill_ratio_mean: "fill_ratio_mean",
};

const symbolFigures: Named = {
  orders: "orders",
  fill_ratio_orders: "fill_ratio_orders",
  fill_ratio_quantity: "fill_ratio_quantity",
};

const slippageFigures: Named = {
  arrival: "slippage_arrival",
  bar: "slippage_bar",
  mid: "slippage_mid",
  book_age: "book_age_mean",
  book_age_max: "book_age_max",
};

function latencies(of: string): Named {
  return Object.fromEntries(["mean", "p50", "p95", "p99", "max"].map((name) => [name, `${of}_${name}`]));
}

const ofFills: ReadonlySet<unknown> = new Set(["fills", "fills_without_order", "maker_share", "taker_share"]);

const groupings = ["venue", "order_type", "liquidity", "symbol"] as const;
type GroupColumn = (typeof groupings)[number];

/** The rows of the macro `execution` for one group, by subject. */
class Figures {
  readonly #rows: readonly MacroRow[];

  constructor(rows: readonly MacroRow[]) {
    this.#rows = rows;
  }

  /** The figures of the whole group. */
  ofAll(): Readonly<Record<string, Figure>> {
    // DuckDB may answer the parts of the macro's UNION in any order
    const own = this.#by([]).toSorted(
      (a, b) => Number(ofFills.has(a.metric)) - Number(ofFills.has(b.metric)),
    );
    return Object.fromEntries(own.map((row) => [String(row.metric), figureOf(row)]));
  }

  /** Parts by these columns, in the order of their values, of those that have every figure. */
  parts(by: string, columns: readonly GroupColumn[], named: Named): readonly FigurePart[] {
    const keyed = Map.groupBy(this.#by(columns), (row) =>
      columns.map((column) => String(row[column]) || "unknown").join(" "),
    );
    return [...keyed]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([key, own]) => {
        const found = new Map(own.map((row) => [row.metric, row]));
        const rows = Object.entries(named).map(([name, metric]) => [name, found.get(metric)] as const);
        if (rows.some(([, row]) => row === undefined)) return [];
        return [{ by, key, figures: Object.fromEntries(rows.map(([name, row]) => [name, figureOf(row!)])) }];
      });
  }

  #by(columns: readonly GroupColumn[]): readonly MacroRow[] {
    return this.#rows.filter((row) =>
      groupings.every((column) => (row[column] !== null) === columns.includes(column)),
    );
  }
}

/** The order in which states are listed; others follow. */
const states = ["filled", "canceled", "expired", "rejected", "accepted", "pending_cancel", "submitted"];

/** The last states of orders, which add up to all orders. */
function stateParts(rows: readonly MacroRow[], orders: Figure | undefined): readonly FigurePart[] {
  if (orders === undefined || orders.value === null) return [];
  const basis = { n: orders.n, from: BigInt(0), to: BigInt(0) };
  const placeOf = (state: string) => (states.includes(state) ? states.indexOf(state) : states.length);
  return rows
    .map((row) => ({ state: String(row.state), all: Number(row.orders), partly: Number(row.partly_filled) }))
    .sort((a, b) => placeOf(a.state) - placeOf(b.state) || (a.state < b.state ? -1 : 1))
    .map(({ state, all, partly }) => ({
      by: "state",
      key: state,
      figures: Object.fromEntries(
        (
          [
            ["orders", all, "orders", "by their latest row"],
            ["share", all / orders.n, "ratio", "of all submitted orders"],
            ["partly_filled", partly, "orders", "of these, filled in part"],
          ] as const
        ).map(([name, value, unit, convention]) => [
          name,
          { ...figure(value, { ...basis, unit, convention }), from: orders.from, to: orders.to },
        ]),
      ),
    }));
}

async function figureRows({ connection, run, options }: MeasuredRun): Promise<readonly MacroRow[]> {
  const result = await connection.runAndReadAll(`
    SELECT account, portfolio, currency, venue, order_type, liquidity, symbol, metric, value,
      CAST(amount AS VARCHAR) AS amount, reason, unit, convention, n, ${ns("from_ts")}, ${ns("to_ts")}
    FROM execution(${literal(run.instanceId)}, ${literal(run.runId)}, max_age := '${options.bookAgeMs} milliseconds')`);
  return result.getRowObjects();
}

async function funnelRows({ connection, run }: MeasuredRun): Promise<readonly MacroRow[]> {
  const args = `${literal(run.instanceId)}, ${literal(run.runId)}`;
  const result = await connection.runAndReadAll(`
    SELECT f.account, f.portfolio, m.currency, f.state, sum(f.orders) AS orders, sum(f.partly_filled) AS partly_filled
    FROM order_funnel(${args}) f JOIN run_markets(${args}) m USING (symbol, venue)
    GROUP BY ALL ORDER BY ALL`);
  return result.getRowObjects();
}
