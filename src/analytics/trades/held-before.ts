import type { DuckDBConnection } from "@duckdb/node-api";

/** A portfolio that held something before its first fill of the run. */
export interface HeldBefore {
  readonly account: string;
  readonly portfolio: string;
  readonly currency: string;
  /** The value of its positions at the first equity row. */
  readonly positionValue: string;
}

/**
 * The portfolios that have a position in their first equity row, before all of their fills: the fill that opened it is
 * missing, so their trades start from an unknown position. The views `equity` and `fills` must show a single run.
 */
export async function readHeldBefore(connection: DuckDBConnection): Promise<readonly HeldBefore[]> {
  const result = await connection.runAndReadAll(`
    SELECT account, portfolio, currency, CAST(value AS VARCHAR)
    FROM (
      SELECT account, portfolio, currency, ts, arg_min_null(position_value, seq) AS value
      FROM (SELECT account, portfolio, currency, seq, ts_event AS ts, position_value FROM equity)
      SEMI JOIN (SELECT account, portfolio, currency, min(ts_event) AS ts FROM equity GROUP BY ALL)
        USING (account, portfolio, currency, ts)
      GROUP BY ALL
    )
    LEFT JOIN (SELECT account, portfolio, min(ts_event) AS first_fill FROM fills GROUP BY ALL)
      USING (account, portfolio)
    WHERE value <> 0 AND (first_fill IS NULL OR ts < first_fill)
    ORDER BY ALL`);
  return result.getRows().map(([account, portfolio, currency, positionValue]) => ({
    account: String(account),
    portfolio: String(portfolio),
    currency: String(currency),
    positionValue: String(positionValue),
  }));
}
