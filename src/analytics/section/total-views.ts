import type { DuckDBConnection } from "@duckdb/node-api";
import { literal } from "../../duckdb/sql.ts";
import { RunvaultError } from "../../model/error.ts";
import type { Rates } from "./read-rates.ts";

/** In place of an account, for the series of all accounts together. */
export const allAccounts = "all accounts";

const batch = 2_000;

/**
 * Makes, in a schema `total`, the tables that the macros of series read, with one series that has all accounts,
 * portfolios and currencies of a run in the base currency: at each instant of any of them, from when all have begun,
 * the last equity of each at the last rate; deposits and withdrawals at the rate of their instant. Exact, to the ninth
 * decimal. Reading a row without a rate is an error that names the rate.
 */
export async function createTotalViews(connection: DuckDBConnection, rates: Rates): Promise<void> {
  const { file, base, rows } = rates;
  await connection.run("CREATE SCHEMA IF NOT EXISTS total");
  await connection.run(
    "CREATE OR REPLACE TABLE total.rates (ts TIMESTAMP_NS, currency VARCHAR, rate DECIMAL(18,9))",
  );
  for (let at = 0; at < rows.length; at += batch) {
    const values = rows
      .slice(at, at + batch)
      .map((row) => `(make_timestamp_ns(${row.at}::BIGINT), ${literal(row.currency)}, ${row.rate})`);
    await connection.run(`INSERT INTO total.rates VALUES ${values.join(", ")}`);
  }
  const name = `${literal(allAccounts)} AS account, '' AS portfolio, ${literal(base)} AS currency`;
  const worth = (amount: string) => `
    CAST(CAST(CAST(${amount} AS DECIMAL(20,9)) * CASE
      WHEN v.currency = ${literal(base)} THEN CAST(1 AS DECIMAL(18,9))
      WHEN r.rate IS NOT NULL THEN r.rate
      ELSE error('there is no rate of ' || v.currency || ' at or before ' || strftime(v.ts_event, '%Y-%m-%dT%H:%M:%S.%n')
        || 'Z in ' || ${literal(file)})
    END AS DECIMAL(38,18)) AS DECIMAL(38,9))`;
  const rated = "ASOF LEFT JOIN total.rates r ON r.currency = v.currency AND v.ts_event >= r.ts";
  await connection.run(`CREATE OR REPLACE VIEW total.events AS
    SELECT v.instance_id, v.run_id, v.seq, v.ts_event, v.kind, ${name}, ${worth("v.amount")} AS amount
    FROM (FROM main.events e WHERE e.kind IN ('account.deposit', 'account.withdrawal') AND e.amount IS NOT NULL) v ${rated}`);
  await connection.run(`CREATE OR REPLACE VIEW total.equity AS
    WITH lasts AS (
      SELECT e.instance_id, e.run_id, e.account, e.portfolio, e.currency, e.ts_event AS ts, max_by(e.equity, e.seq) AS equity
      FROM main.equity e
      GROUP BY ALL
    ),
    series AS (
      SELECT l.instance_id, l.run_id, l.account, l.portfolio, l.currency, min(l.ts) AS begun FROM lasts l GROUP BY ALL
    ),
    instants AS (
      SELECT DISTINCT l.instance_id, l.run_id, l.ts AS ts_event
      FROM lasts l JOIN (SELECT s.instance_id, s.run_id, max(s.begun) AS begun FROM series s GROUP BY ALL) b
        USING (instance_id, run_id)
      WHERE l.ts >= b.begun
    ),
    wanted AS (
      SELECT i.ts_event, s.* EXCLUDE (begun) FROM instants i JOIN series s USING (instance_id, run_id)
    ),
    known AS (
      SELECT w.*, l.equity
      FROM wanted w ASOF JOIN lasts l ON w.instance_id = l.instance_id AND w.run_id = l.run_id
        AND w.account = l.account AND w.portfolio = l.portfolio AND w.currency = l.currency AND w.ts_event >= l.ts
    )
    SELECT v.instance_id, v.run_id, CAST(0 AS UBIGINT) AS seq, v.ts_event, ${name}, sum(${worth("v.equity")}) AS equity
    FROM known v ${rated}
    GROUP BY ALL`);
}

/** Runs what reads the series with those of `createTotalViews` instead of the run's own. */
export async function overTotal<T>(connection: DuckDBConnection, read: () => Promise<T>): Promise<T> {
  await connection.run("SET search_path = 'total,main'");
  try {
    return await read();
  } catch (thrown) {
    throw asMissingRate(thrown);
  } finally {
    await connection.run("RESET search_path");
  }
}

/** A view's error about a missing rate, as our own; returns other errors unchanged. */
function asMissingRate(thrown: unknown): unknown {
  const message = thrown instanceof Error ? thrown.message : "";
  const [, missing, file] = /(there is no rate of .* at or before \S+Z) in (.*)$/s.exec(message) ?? [];
  if (missing === undefined || file === undefined) return thrown;
  return new RunvaultError("invalid_argument", missing, {
    ...{ place: { file }, cause: thrown },
    hint: "Add one: every currency except the base needs a rate from the first equity row on, under the name that the rows use.",
  });
}
