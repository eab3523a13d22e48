import type { DuckDBConnection } from "@duckdb/node-api";
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
import { literal } from "../../duckdb/sql.ts";
import { countedStream } from "../../duckdb/whole-stream.ts";
import { type DecimalType, type ExactTypes, exactType } from "../../model/profile/exact-types.ts";

/** One series of equity points. */
export interface AccountKey {
  readonly account: string;
  readonly portfolio: string;
  readonly currency: string;
}

/** Money that events tell of, in key order. */
export interface MoveColumns {
  readonly count: number;
  readonly scale: number;
  readonly ts: BigInt64Array;
  readonly seq: BigUint64Array;
  /** Index in the keys of the points; -1 where there are no points of its account, portfolio and currency. */
  readonly key: Int32Array;
  readonly amount: ExactValues;
  /** 1 for what comes from outside or goes there, 0 for what is profit or loss. */
  readonly isTransfer: Uint8Array;
}

/** Reads what the view `events`, which has to show one run alone, says of money. */
export async function readMoves(
  connection: DuckDBConnection,
  types: ExactTypes,
  keys: readonly AccountKey[],
): Promise<MoveColumns> {
  const type: DecimalType = commonDecimal([exactType(types, "amount")]);
  const where = "starts_with(kind, 'account.') AND amount IS NOT NULL AND amount <> 0";
  const counted = await connection.runAndReadAll(`SELECT count(*) FROM events WHERE ${where}`);
  const count = Number(counted.getRows()[0]![0]);
  const moves = {
    ts: new BigInt64Array(count),
    seq: new BigUint64Array(count),
    key: new Int32Array(count),
    amount: exactValues(type, count),
    isTransfer: new Uint8Array(count),
  };
  const isTransfer = "CAST(kind IN ('account.deposit', 'account.withdrawal') AS INTEGER)";
  const sql = `SELECT ts_event, seq, ${keySql(keys)}, ${isTransfer}, CAST(amount AS ${decimalSql(type)}) FROM events WHERE ${where}`;
  let at = 0;
  for await (const chunk of countedStream(await connection.stream(sql), count)) {
    moves.ts.set(int64s(chunk, 0), at);
    moves.seq.set(uint64s(chunk, 1), at);
    moves.key.set(int32s(chunk, 2), at);
    moves.isTransfer.set(int32s(chunk, 3), at);
    copyExact(chunk, 4, moves.amount, at);
    at += chunk.rows;
  }
  return { count, scale: type.scale, ...moves };
}

/** The place of a row's account, portfolio and currency among the keys; -1 where it has none. */
export function keySql(keys: readonly AccountKey[]): string {
  const cases = keys.map(
    ({ account, portfolio, currency }, index) =>
      `WHEN account = ${literal(account)} AND portfolio = ${literal(portfolio)} AND currency = ${literal(currency)} THEN ${index}`,
  );
  return cases.length === 0 ? "CAST(-1 AS INTEGER)" : `CAST(CASE ${cases.join(" ")} ELSE -1 END AS INTEGER)`;
}
