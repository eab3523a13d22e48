import type { TableName } from "../../../../model/profile/table.ts";

/** What names of paths and parameters commonly mean; the first match wins. */
export type ParameterRole = "instance" | "run" | "from" | "to" | "limit" | "cursor" | "offset" | "page";

const parameterWords: readonly (readonly [ParameterRole, RegExp])[] = [
  ["cursor", /cursor|page_?token|continuation|^(?:next_?)?token$/i],
  ["limit", /limit|page_?size|per_?page|^count$|^max(?:_?(?:items|results|rows|records|count))?$/i],
  ["offset", /^offset$|^skip$/i],
  ["page", /^page(?:_?(?:no|number))?$/i],
  ["run", /run|session|execution/i],
  ["instance", /instance|strateg(?:y|ies)|bots?(?:_?id)?$|desk|model|algo/i],
  ["from", /(?:[a-z]From|_from|[a-z]After|_after)$/],
  ["from", /^(?:from|since|start|begin|after)/i],
  ["to", /(?:[a-z]To|_to|[a-z]Before|_before)$/],
  ["to", /^(?:to|until|end|before)/i],
];

/** A parameter's purpose by its name; undefined if the name does not say. */
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

/** The table that a name means; undefined if none. */
export function tableOfName(name: string): TableName | undefined {
  return tableWords.find(([, words]) => words.test(name))?.[0];
}

/** Whether a name is that of a list of instances or of runs. */
export function listNamed(name: string): "instances" | "runs" | undefined {
  if (/^(?:instances|strategies|bots|desks|models|algos)$/i.test(name)) return "instances";
  return /^(?:runs|sessions|executions)$/i.test(name) ? "runs" : undefined;
}

/** Other common names for a column's field, the most likely first. */
export const fieldWords: Readonly<Record<string, readonly string[]>> = {
  run_id: ["run", "session", "sessionId", "executionId", "execution"],
  instance_id: ["instance", "strategy", "bot", "botId", "desk"],
  seq: ["sequence", "seqNo", "no", "number"],
  ts_event: [
    "time",
    "timestamp",
    "ts",
    "executedAt",
    "eventTime",
    "at",
    "stamp",
    "time_ns",
    "ts_ns",
    "at_ns",
    "t",
  ],
  ts_init: ["receivedAt", "received", "received_ns", "recv", "stored", "storedAt", "createdAt", "ti"],
  resource_key: ["resource", "key", "rk"],
  account: ["acct", "accountId", "acc"],
  portfolio: ["book", "pf"],
  venue: ["exchange", "market", "mkt", "exch"],
  symbol: ["pair", "ticker", "code", "instrument"],
  trade_id: ["id", "execId", "fillId"],
  client_order_id: ["orderId", "clOrdId", "oid"],
  venue_order_id: ["exchangeOrderId", "xoid"],
  side: ["direction", "sign", "buySell", "bs"],
  price: ["px", "rate", "p"],
  quantity: ["qty", "size", "amount", "q", "origQty", "orderQty", "origSize"],
  filled_quantity: ["executedQty", "execQty", "cumQty", "filledQty", "filledSize", "execSize"],
  average_price: ["avgPrice", "avgPx", "averagePx"],
  stop_price: ["stopPx", "triggerPrice"],
  time_in_force: ["tif"],
  currency: ["ccy", "asset"],
  equity: ["netLiquidation", "nav"],
  realized: ["realizedPnl"],
  unrealized: ["unrealizedPnl"],
  fee: ["commission", "f"],
  fee_currency: ["feeCcy", "feeAsset", "commissionAsset", "ccy", "fc"],
  liquidity: ["maker", "isMaker", "add"],
  factor: ["signal", "name"],
  value: ["reading"],
};
