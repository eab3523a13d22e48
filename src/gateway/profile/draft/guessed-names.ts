import type { TableName } from "../../../model/profile/table.ts";

/** What the names of paths and parameters often mean; the first that fits counts. */
export type ParameterRole = "instance" | "run" | "from" | "to" | "limit" | "cursor" | "offset" | "page";

const parameterWords: readonly (readonly [ParameterRole, RegExp])[] = [
  ["cursor", /cursor|page_?token|continuation|^(?:next_?)?token$/i],
  ["limit", /limit|page_?size|per_?page|^count$|^max(?:_?(?:items|results|rows|records|count))?$/i],
  ["offset", /^offset$|^skip$/i],
  ["page", /^page(?:_?(?:no|number))?$/i],
  ["run", /run|session|execution/i],
  ["instance", /instance|strategy|bot|desk/i],
  ["from", /^(?:from|since|start|begin|after)/i],
  ["to", /^(?:to|until|end|before)/i],
];

/** What a parameter is for, by its name; undefined where the name does not say. */
export function parameterRole(name: string): ParameterRole | undefined {
  return parameterWords.find(([, words]) => words.test(name))?.[0];
}

const tableWords: readonly (readonly [TableName, RegExp])[] = [
  ["order_book", /order-?_?book|depth|levels/i],
  ["fills", /fills|trades|trade-?_?history/i],
  ["orders", /orders|order-?_?(?:log|history|events|updates)/i],
  ["bars", /bars|candles|klines|ohlc/i],
  ["factors", /factors|signals/i],
  ["events", /events/i],
  ["equity", /equity|balances/i],
  ["metrics", /metrics|statistics/i],
];

/** The table that a path's last part names; undefined where it names none. */
export function tableOfPath(path: string): TableName | undefined {
  const last = path.split("/").findLast((part) => part !== "" && !part.startsWith("{")) ?? "";
  return tableWords.find(([, words]) => words.test(last))?.[0];
}

/** Whether a path is a list of instances or of runs, by its last part. */
export function listOfPath(path: string): "instances" | "runs" | undefined {
  if (path.endsWith("}")) return undefined;
  const last = path.split("/").at(-1) ?? "";
  if (/^(?:instances|strategies|bots|desks)$/i.test(last)) return "instances";
  return /^(?:runs|sessions|executions)$/i.test(last) ? "runs" : undefined;
}

/** Other names that fields of a column often have. */
export const fieldWords: Readonly<Record<string, readonly string[]>> = {
  run_id: ["run", "session", "sessionId", "executionId", "execution"],
  instance_id: ["instance", "strategy", "bot", "botId", "desk"],
  seq: ["sequence", "no"],
  ts_event: [
    "time",
    "timestamp",
    "ts",
    "executedAt",
    "executed_at",
    "at",
    "stamp",
    "time_ns",
    "ts_ns",
    "at_ns",
  ],
  ts_init: [
    "receivedAt",
    "received_at",
    "received",
    "received_ns",
    "stored",
    "recv",
    "createdAt",
    "created_at",
  ],
  resource_key: ["resource"],
  account: ["acct", "accountId"],
  portfolio: ["book"],
  venue: ["exchange", "market"],
  symbol: ["pair", "ticker", "code"],
  trade_id: ["id"],
  client_order_id: ["orderId"],
  venue_order_id: ["exchangeOrderId"],
  side: ["direction"],
  price: ["px"],
  quantity: ["qty", "size"],
  fee: ["commission"],
  fee_currency: ["feeCcy"],
  liquidity: ["maker", "isMaker", "is_maker"],
  factor: ["signal"],
  value: ["reading"],
};
