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
 * Calls a macro of a run's series with what the options say of it. `select` has to name columns, instants by `ns`;
 * `rest` is what follows FROM, such as a WHERE, so that no more rows come over than are wanted. Throws `NothingToSay`
 * if the rows leave open what the series is.
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
    /** Adds those of all accounts in the base currency, where there are rates. */
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

/** Does something with macros. Throws `NothingToSay` if they say that the rows are not clear. */
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
 * The figure that a row of `performance` and other macros of one figure a row is, with instants by `ns`. Where the row
 * has an exact `amount`, as text, that is its value.
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
