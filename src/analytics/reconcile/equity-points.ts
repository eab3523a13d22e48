import {
  commonDecimal,
  copyExact,
  decimalSql,
  type ExactValues,
  exactValues,
  int32s,
  int64s,
  uint64s,
} from "../../duckdb/exact-vector.ts";
import { countedStream } from "../../duckdb/whole-stream.ts";
import { RunvaultError } from "../../model/error.ts";
import { exactType } from "../../model/profile/exact-types.ts";
import type { AccountKey } from "./account-key.ts";
import { keySql } from "./account-rows.ts";
import type { BooksSource } from "./books-source.ts";

/** A run's equity points, which are read anew in each pass instead of kept in memory. */
export interface EquityPoints {
  readonly count: number;
  /** Decimals of the amounts. */
  readonly scale: number;
  readonly keys: readonly AccountKey[];
  /** Amounts that no point has, because the gateway does not keep them; reconciliation needs them. */
  readonly missing: readonly string[];
  /** The points in key order. The connection cannot be used for anything else meanwhile. */
  chunks(): AsyncGenerator<PointChunk>;
}

/** Some equity points, as columns. */
export interface PointChunk {
  readonly rows: number;
  readonly ts: BigInt64Array;
  readonly seq: BigUint64Array;
  /** Index in the keys. */
  readonly key: Int32Array;
  readonly cash: ExactValues;
  readonly positionValue: ExactValues;
  readonly equity: ExactValues;
  readonly realized: ExactValues;
  readonly unrealized: ExactValues;
}

const amounts = ["cash", "position_value", "equity", "realized", "unrealized"] as const;

/** Counts a run's equity points. Throws `malformed_row` for a point that lacks an amount which others have. */
export async function openPoints({
  run,
  connection,
  exactTypes,
  showOnly,
}: BooksSource): Promise<EquityPoints> {
  const types = exactTypes("equity");
  const type = commonDecimal(amounts.map((name) => exactType(types, name)));
  await showOnly("equity", run);
  const lacking = amounts.map((name) => `count(${name}), min(seq) FILTER (${name} IS NULL)`).join(", ");
  const found = await connection.runAndReadAll(
    `SELECT account, portfolio, currency, count(*), ${lacking} FROM equity GROUP BY ALL ORDER BY account, portfolio, currency`,
  );
  const groups = found.getRows().map(([account, portfolio, currency, rows, ...having]) => ({
    key: { account: String(account), portfolio: String(portfolio), currency: String(currency) },
    rows: Number(rows),
    ofAmounts: amounts.map((_, at) => ({ had: Number(having[2 * at]), wrong: having[2 * at + 1] ?? null })),
  }));
  const missing = amounts.filter(
    (_, at) => groups.length > 0 && groups.every(({ ofAmounts }) => ofAmounts[at]!.had === 0),
  );
  const keys: AccountKey[] = [];
  let count = 0;
  for (const { key, rows, ofAmounts } of groups) {
    const wrong = ofAmounts.find(({ wrong }, at) => wrong !== null && !missing.includes(amounts[at]!))?.wrong;
    if (wrong !== undefined) {
      throw new RunvaultError("malformed_row", `the equity point with seq ${wrong} lacks an amount`, {
        place: { instance: run.instanceId, run: run.runId, table: "equity" },
        hint: "Look at the row with `runvault query`; books cannot be reconciled without it.",
      });
    }
    keys.push(key);
    count += rows;
  }
  // with one series, rows need not say which is theirs
  const key = keys.length === 1 ? "CAST(0 AS INTEGER)" : keySql(keys);
  const selected = amounts.map((name) => `CAST(${name} AS ${decimalSql(type)})`).join(", ");
  async function* chunks(): AsyncGenerator<PointChunk> {
    await showOnly("equity", run);
    const result = await connection.stream(`SELECT ts_event, seq, ${key}, ${selected} FROM equity`);
    for await (const chunk of countedStream(result, count)) {
      const [cash, positionValue, equity, realized, unrealized] = amounts.map((_, index) => {
        const column = exactValues(type, chunk.rows);
        copyExact(chunk, 3 + index, column, 0);
        return column;
      }) as [ExactValues, ExactValues, ExactValues, ExactValues, ExactValues];
      yield {
        ...{ rows: chunk.rows, ts: int64s(chunk, 0), seq: uint64s(chunk, 1), key: int32s(chunk, 2) },
        ...{ cash, positionValue, equity, realized, unrealized },
      };
    }
  }
  return { count, scale: type.scale, keys, missing, chunks };
}
