import { formatScaled } from "../../model/fixed-point.ts";
import type { TableName } from "../../model/profile/table.ts";
import type { Nanoseconds } from "../../model/time.ts";
import type { TableReader } from "../store/table-reader.ts";
import type { WorldRun } from "./world.ts";

export interface RunTotals {
  readonly initialEquity: string;
  readonly finalEquity: string;
  readonly fees: string;
  readonly orders: bigint;
  readonly fills: bigint;
}

/**
 * A run's totals as known at an instant (undefined for the whole run), with amounts in its first currency. For a
 * growing run they are counted from known rows, so they agree with the rows that a reader gets at that instant.
 */
export async function summaryOf(
  run: WorldRun,
  /** The first currency. */
  currency: string,
  known: Nanoseconds | undefined,
  reader: (table: TableName) => Promise<TableReader>,
  signal?: AbortSignal,
): Promise<RunTotals> {
  const { initialEquity } = run;
  if (known === undefined) {
    const { finalEquity, fees, orders, fills } = run;
    return { initialEquity, finalEquity, fees, orders: BigInt(orders), fills: BigInt(fills) };
  }
  let finalEquity = initialEquity;
  for await (const row of rowsOf(await reader("equity"), known, signal)) {
    if (row.currency === currency) finalEquity = row.equity!;
  }
  let fees = 0n;
  let fills = 0n;
  for await (const row of rowsOf(await reader("fills"), known, signal)) {
    if (row.fee_currency === currency) fees += nanosOf(row.fee!);
    fills += 1n;
  }
  let orders = 0n;
  for await (const row of rowsOf(await reader("orders"), known, signal)) {
    if (row.kind === "SUBMITTED") orders += 1n;
  }
  return { initialEquity, finalEquity, fees: formatScaled(fees, 9), orders, fills };
}

async function* rowsOf(
  table: TableReader,
  known: Nanoseconds,
  signal: AbortSignal | undefined,
): AsyncGenerator<Record<string, string>> {
  let rest = "";
  // chunks may cut multi-byte characters, which occur only in free text; a streaming decoder keeps them whole
  const decoder = new TextDecoder();
  for await (const chunk of table.lines({ bounds: {}, known, filters: [], limit: undefined, signal })) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop()!;
    for (const line of lines) yield JSON.parse(line) as Record<string, string>;
  }
}

/** A canonical decimal with at most nine decimals, in billionths. */
function nanosOf(text: string): bigint {
  const point = text.indexOf(".");
  if (point < 0) return BigInt(text) * 1_000_000_000n;
  return BigInt(text.slice(0, point) + text.slice(point + 1).padEnd(9, "0"));
}
