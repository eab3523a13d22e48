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
import type { AccountKey } from "./account-key.ts";
import type { StrayMoves } from "./stray-moves.ts";

/** Money that moved according to events, in key order. */
export interface MoveColumns {
  readonly count: number;
  readonly scale: number;
  readonly ts: BigInt64Array;
  readonly seq: BigUint64Array;
  /** Index in the keys of the points; -1 if there are no points of its account, portfolio and currency. */
  readonly key: Int32Array;
  readonly amount: ExactValues;
  /** 1 for deposits and withdrawals, 0 for profit or loss. */
  readonly isTransfer: Uint8Array;
  /** Those whose key is -1, by what they name. */
  readonly strays: readonly StrayMoves[];
}

const movesMoney = "starts_with(kind, 'account.') AND amount IS NOT NULL AND amount <> 0";

/** Reads the money that moved from the view `events`, which must show only one run. */
export async function readMoves(
  connection: DuckDBConnection,
  types: ExactTypes,
  keys: readonly AccountKey[],
): Promise<MoveColumns> {
  const type: DecimalType = commonDecimal([exactType(types, "amount")]);
  const counted = await connection.runAndReadAll(`SELECT count(*) FROM events WHERE ${movesMoney}`);
  const count = Number(counted.getRows()[0]![0]);
  const moves = {
    ts: new BigInt64Array(count),
    seq: new BigUint64Array(count),
    key: new Int32Array(count),
    amount: exactValues(type, count),
    isTransfer: new Uint8Array(count),
  };
  const isTransfer = "CAST(kind IN ('account.deposit', 'account.withdrawal') AS INTEGER)";
  const sql = `SELECT ts_event, seq, ${moveKeySql(keys)}, ${isTransfer}, CAST(amount AS ${decimalSql(type)}) FROM events WHERE ${movesMoney}`;
  let at = 0;
  for await (const chunk of countedStream(await connection.stream(sql), count)) {
    moves.ts.set(int64s(chunk, 0), at);
    moves.seq.set(uint64s(chunk, 1), at);
    moves.key.set(int32s(chunk, 2), at);
    moves.isTransfer.set(int32s(chunk, 3), at);
    copyExact(chunk, 4, moves.amount, at);
    at += chunk.rows;
  }
  return { count, scale: type.scale, ...moves, strays: await readStrays(connection, keys) };
}

async function readStrays(
  connection: DuckDBConnection,
  keys: readonly AccountKey[],
): Promise<readonly StrayMoves[]> {
  const found = await connection.runAndReadAll(`
    SELECT account, portfolio, currency, count(*), arg_min(seq, (ts_event, seq)), epoch_ns(min(ts_event)) FROM events
    WHERE ${movesMoney} AND ${moveKeySql(keys)} < 0 GROUP BY ALL ORDER BY ALL`);
  return found.getRows().map(([account, portfolio, currency, count, seq, ts]) => ({
    ...{ account: String(account), portfolio: String(portfolio), currency: String(currency) },
    ...{ count: Number(count), seq: BigInt(String(seq)), ts: BigInt(String(ts)) },
  }));
}

/** The same for an event: one booked on an account belongs to its only portfolio, as in the macro `session_points`. */
export function moveKeySql(keys: readonly AccountKey[]): string {
  const ofAccount = Map.groupBy(keys.entries(), ([, { account, currency }]) =>
    JSON.stringify([account, currency]),
  );
  const only = [...ofAccount.values()].flatMap(([first, ...more]) => (more.length === 0 ? [first!] : []));
  const onAccount = only.map(([index, key]) => [index, { ...key, portfolio: "" }] as const);
  return casesSql([...keys.entries(), ...onAccount]);
}

/** The place of a row's account, portfolio and currency among the keys; -1 if they are not there. */
export function keySql(keys: readonly AccountKey[]): string {
  return casesSql([...keys.entries()]);
}

function casesSql(keys: readonly (readonly [index: number, key: AccountKey])[]): string {
  const cases = keys.map(
    ([index, { account, portfolio, currency }]) =>
      `WHEN account = ${literal(account)} AND portfolio = ${literal(portfolio)} AND currency = ${literal(currency)} THEN ${index}`,
  );
  return cases.length === 0 ? "CAST(-1 AS INTEGER)" : `CAST(CASE ${cases.join(" ")} ELSE -1 END AS INTEGER)`;
}
