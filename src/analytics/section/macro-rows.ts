import { literal } from "../../duckdb/sql.ts";
import type { Nanoseconds } from "../../model/time.ts";
import { type Figure, figure, noFigure } from "../figure.ts";
import { unclearFault } from "../sql/unclear-fault.ts";
import type { MetricsOptions } from "./metrics-options.ts";
import { type FigureGroup, type MeasuredRun, NothingToSay } from "./section.ts";
import { overTotal } from "./total-views.ts";

/** Rows of a macro, by column. Instants are nanoseconds, integers BigInts. */
export type MacroRow = Readonly<Record<string, unknown>>;

/**
 * Calls a macro of a run's series with the options for it. `select` names columns, instants by `ns`; `rest` follows
 * FROM, such as a WHERE that limits the rows. Throws `NothingToSay` if the rows leave open what the series is.
 */
export async function macroRows(
  { connection, run, options }: MeasuredRun,
  call: {
    readonly macro: string;
    readonly select: string;
    readonly more?: Readonly<Record<string, string>>;
    readonly rest?: string;
    /** Leaves out account, portfolio and currency, for figures of all series together. */
    readonly keyless?: boolean;
    /** Adds those of all accounts in the base currency, if there are rates. */
    readonly withTotal?: boolean;
  },
): Promise<readonly MacroRow[]> {
  const { base, session, fill } = options;
  const named = { base: literal(base), session: literal(session), fill: String(fill), ...call.more };
  const args = [
    literal(run.instanceId),
    literal(run.runId),
    ...Object.entries(named).map(([name, value]) => `${name} := ${value}`),
  ];
  const read = () => unlessUnclear(async () => (await connection.runAndReadAll(sql)).getRowObjects());
  const sql = `SELECT ${call.keyless === true ? "" : "account, portfolio, currency, "}${call.select} FROM ${call.macro}(${args.join(", ")}) ${call.rest ?? ""}`;
  const own = await read();
  const isTotal = call.withTotal === true && options.rates !== null && own.length > 0;
  return isTotal ? [...own, ...(await overTotal(connection, read))] : own;
}

/** Runs work with macros. Throws `NothingToSay` if they report that the rows are unclear. */
export async function unlessUnclear<T>(body: () => Promise<T>): Promise<T> {
  try {
    return await body();
  } catch (error) {
    const unclear = unclearFault(error);
    throw unclear === null ? error : new NothingToSay(unclear);
  }
}

/** An instant as a BigInt of nanoseconds. */
export function ns(column: string): string {
  return `epoch_ns(${column}) AS ${column}`;
}

/** Options that turn returns into figures of a year. */
export function yearArguments({ periods, rf, log }: MetricsOptions): Readonly<Record<string, string>> {
  return {
    periods: periods === null ? "NULL" : periods === "data" ? literal(periods) : doubleText(periods),
    rf: doubleText(rf),
    log_returns: String(log),
  };
}

/** A number as SQL for the same double. */
export function doubleText(value: number): string {
  return `CAST(${literal(String(value))} AS DOUBLE)`;
}

export function instantOf(value: unknown): Nanoseconds {
  return BigInt(String(value));
}

/**
 * The figure of a row of `performance` or another macro with one figure per row, with instants by `ns`. Its value is the
 * row's exact `amount`, as text, if there is one.
 */
export function figureOf({ value, amount, reason, unit, convention, n, from_ts, to_ts }: MacroRow): Figure {
  if (value === null) return noFigure(String(reason));
  const exact = amount === null || amount === undefined ? null : plainDecimal(String(amount));
  return figure(exact ?? Number(value), {
    unit: String(unit),
    convention: String(convention),
    n: Number(n),
    from: instantOf(from_ts),
    to: instantOf(to_ts),
  });
}

/** A decimal as DuckDB prints it, without trailing zeros. */
function plainDecimal(text: string): string {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** A name for each account, portfolio and currency, and one group of rows each, in the order of the names. */
export function groupsOf(
  rows: readonly MacroRow[],
  figuresOf: (own: readonly MacroRow[]) => Pick<FigureGroup, "figures" | "parts">,
): readonly FigureGroup[] {
  const names = ["account", "portfolio", "currency"] as const;
  const keyOf = (row: MacroRow) => JSON.stringify(names.map((name) => String(row[name])));
  return [...Map.groupBy(rows, keyOf)]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, own]) => {
      const [account = "", portfolio = "", currency = ""] = JSON.parse(key) as string[];
      return { account, portfolio, currency, ...figuresOf(own) };
    });
}
