import { z } from "zod";
import { decimalSql } from "../../duckdb/exact-vector.ts";
import { literal } from "../../duckdb/sql.ts";
import { formatScaled } from "../../model/fixed-point.ts";
import { parseJson } from "../../model/outside-json.ts";
import { exactType } from "../../model/profile/exact-types.ts";
import type { TableName } from "../../model/profile/table.ts";
import { formatTime } from "../../model/time.ts";
import { type Exact, exactOf } from "../instruments/instrument.ts";
import { keySql, type MoveColumns } from "./account-rows.ts";
import type { BooksSource } from "./books-source.ts";
import { size } from "./break-log.ts";
import type { EquityPoints } from "./equity-points.ts";
import type { Break, Finding } from "./reconcile-report.ts";
import { mayBeOf, strayText } from "./stray-moves.ts";

const exact = z.string().regex(/^-?\d+(?:\.\d+)?$/);
const count = z.union([z.string().regex(/^\d+$/), z.int().nonnegative()]).transform(String);

/** The checked part of the summary; a gateway's document may have more. */
const summarySchema = z.object({
  run_id: z.string(),
  instance_id: z.string(),
  account: z.string(),
  portfolio: z.string(),
  currency: z.string(),
  initial_equity: exact,
  final_equity: exact,
  fees: exact,
  orders: count,
  fills: count,
});

/** Most decimals of any amount in the summary or the tables. */
const common = 38;

function atCommon({ value, scale }: Exact): bigint {
  return value * 10n ** BigInt(common - scale);
}

/** A field of the summary and the table's total, with `common` decimals. */
interface Compared {
  readonly field: "orders" | "fills" | "fees" | "final_equity" | "initial_equity";
  readonly reported: bigint;
  readonly found: bigint;
  readonly unit: string;
  readonly table: TableName;
}

/** Check 8: the run's summary document against its tables. */
export async function checkSummary(
  source: BooksSource,
  document: Uint8Array | null,
  points: EquityPoints | null,
  moves: MoveColumns | null,
  tolerance: Exact | null,
): Promise<Finding> {
  const formula =
    "run_id, instance_id = the run's; orders = rows SUBMITTED; fills = rows; fees = Σ fee; initial_equity = deposits before the first point; final_equity = the last point's";
  const head = { number: 8, name: "the run's summary", formula };
  const nothing = (unchecked: readonly string[]) => ({
    ...head,
    rows: 0,
    breaks: 0,
    largest: null,
    notes: [],
    first: [],
    unchecked,
  });
  if (!source.isFinal)
    return nothing(["the run is still growing, and its summary is from another time than its tables"]);
  if (document === null) return nothing(["the archive has no summary of the run"]);
  const read = summaryOf(document);
  if (read === null) return nothing(["the summary document does not match the interface"]);
  const unchecked: string[] = [];
  const compared: Compared[] = [];
  const compare = (field: Compared["field"], found: Exact, unit: string, table: TableName) => {
    compared.push({
      field,
      reported: atCommon(signedExact(read[field])),
      found: atCommon(found),
      unit,
      table,
    });
  };
  const { currency } = read;
  const value = async (table: TableName, sql: string) => {
    await source.showOnly(table, source.run);
    const found = await source.connection.runAndReadAll(`SELECT CAST(${sql} AS VARCHAR) FROM ${table}`);
    return signedExact(String(found.getRows()[0]![0]));
  };
  const lacks = (table: TableName) => {
    const why = source.lacking(table);
    if (why !== null) unchecked.push(why);
    return why !== null;
  };
  if (!lacks("orders"))
    compare("orders", await value("orders", "count(*) FILTER (kind = 'SUBMITTED')"), "orders", "orders");
  if (!lacks("fills")) {
    compare("fills", await value("fills", "count(*)"), "fills", "fills");
    const { scale } = exactType(source.exactTypes("fills"), "fee");
    const fee = `CAST(fee AS ${decimalSql({ precision: 38, scale })})`;
    const own = `fee_currency = ${literal(currency)}`;
    compare("fees", await value("fills", `coalesce(sum(${fee}) FILTER (${own}), 0)`), currency, "fills");
  }
  const ends = points === null ? null : await endsOf(source, points, read);
  if (ends === null)
    unchecked.push(
      source.lacking("equity") ??
        `there are no equity points of ${read.account}/${read.portfolio} in ${currency}`,
    );
  else {
    compare("final_equity", ends.equity, currency, "equity");
    const stray = moves?.strays.find((one) => mayBeOf(one, points!.keys[ends.key]!));
    if (moves === null) unchecked.push(source.lacking("events") ?? "deposits are unknown");
    else if (stray !== undefined) unchecked.push(strayText(stray));
    else {
      let deposited = 0n;
      for (let move = 0; move < moves.count && moves.ts[move]! <= ends.firstTs; move++) {
        if (moves.isTransfer[move] === 1 && moves.key[move] === ends.key) deposited += moves.amount[move]!;
      }
      compare("initial_equity", { value: deposited, scale: moves.scale }, currency, "events");
    }
  }
  const allowed = tolerance === null ? 0n : atCommon(tolerance);
  // the tolerance is only for money
  const wrong = compared.filter(
    ({ field, reported, found }) =>
      size(reported - found) > (field === "orders" || field === "fills" ? 0n : allowed),
  );
  const at = ends?.lastTs ?? 0n;
  const names = [
    { field: "run_id", is: read.run_id, own: source.run.runId },
    { field: "instance_id", is: read.instance_id, own: source.run.instanceId },
  ];
  const misnamed = names.filter(({ is, own }) => is !== own);
  const ofAnother = misnamed.map(
    ({ field, is, own }): Break => ({
      ...{ at: formatTime(at), amount: null, unit: "", rows: [], moreRows: 0 },
      what: `${field} is ${JSON.stringify(is)}, but the run's is ${JSON.stringify(own)}`,
    }),
  );
  const first = wrong.map(
    ({ field, reported, found, unit, table }): Break => ({
      at: formatTime(at),
      amount: formatScaled(reported - found, common),
      unit,
      what: `${field} is ${formatScaled(reported, common)}, but ${formatScaled(found, common)} by the rows of ${table}`,
      rows: table === "equity" ? [{ table, seq: String(ends!.lastSeq) }] : [],
      moreRows: 0,
    }),
  );
  const largest = wrong.reduce(
    (most, { reported, found }) => (size(reported - found) > size(most) ? reported - found : most),
    0n,
  );
  return {
    ...head,
    rows: compared.length + names.length,
    breaks: misnamed.length + wrong.length,
    largest: wrong.length === 0 ? null : formatScaled(largest, common),
    notes: [],
    first: [...ofAnother, ...first],
    unchecked,
  };
}

function summaryOf(document: Uint8Array): z.output<typeof summarySchema> | null {
  try {
    return summarySchema.safeParse(parseJson(new TextDecoder().decode(document))).data ?? null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function signedExact(text: string): Exact {
  if (!text.startsWith("-")) return exactOf(text);
  const { value, scale } = exactOf(text.slice(1));
  return { value: -value, scale };
}

/** The first and the last point of the account and currency that the summary is of; null if there is none. */
async function endsOf(
  { connection, showOnly, run }: BooksSource,
  { keys }: EquityPoints,
  { account, portfolio, currency }: z.output<typeof summarySchema>,
) {
  const key = keys.findIndex(
    (one) => one.account === account && one.portfolio === portfolio && one.currency === currency,
  );
  if (key < 0) return null;
  await showOnly("equity", run);
  const found = await connection.runAndReadAll(`
    SELECT min(epoch_ns(ts_event)), max(epoch_ns(ts_event)), arg_max(seq, (ts_event, seq)),
           CAST(arg_max(equity, (ts_event, seq)) AS VARCHAR)
    FROM equity WHERE ${keySql(keys)} = ${key}`);
  const [first, last, seq, equity] = found.getRows()[0]!.map(String) as [string, string, string, string];
  return {
    key,
    ...{ firstTs: BigInt(first), lastTs: BigInt(last), lastSeq: BigInt(seq) },
    equity: signedExact(equity),
  };
}
