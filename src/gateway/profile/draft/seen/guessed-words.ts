import type { TableName } from "../../../../model/profile/table.ts";

type Words = readonly (readonly [word: string, said: RegExp])[];

const buy = /^(?:b|buy|buyer|bought|long|\+?1)$/i;
const sell = /^(?:s|sell|seller|sold|short|-1)$/i;

/** Columns whose words affect computed figures, with common words of gateways. */
const columnWords: Readonly<Record<string, Words>> = {
  side: [
    ["BUY", buy],
    ["SELL", sell],
  ],
  "order_book.side": [
    ["BID", /^(?:b|buy|bids?)$/i],
    ["ASK", /^(?:a|s|sell|asks?|offers?)$/i],
  ],
  "orders.type": [
    ["MARKET", /^(?:market|mkt)$/i],
    ["LIMIT", /^(?:limit|lmt)$/i],
    ["STOP_MARKET", /^stop(?:[-_ ]?market)?$/i],
    ["STOP_LIMIT", /^stop[-_ ]?(?:limit|lmt)$/i],
  ],
  "orders.time_in_force": [
    ["GTC", /^(?:gtc|good[-_ ]?til+[-_ ]?cancel+ed)$/i],
    ["IOC", /^ioc$/i],
    ["FOK", /^fok$/i],
    ["DAY", /^day$/i],
  ],
  liquidity: [
    ["MAKER", /^(?:m|maker|make|add|added)$/i],
    ["TAKER", /^(?:t|taker|take|remove|removed)$/i],
  ],
};

const statusWords: Words = [
  ["FINISHED", /^(?:done|finished|completed?|closed?|ended|succeeded|success|stopped)$/i],
  ["FAILED", /^(?:failed|failure|died|dead|error|broken|crashed|aborted|killed)$/i],
  ["RUNNING", /^(?:running|live|active|open|started|in_?progress)$/i],
];

function wordsOf(table: TableName, column: string): Words | undefined {
  return columnWords[`${table}.${column}`] ?? columnWords[column];
}

/** Whether a column holds runvault's own words, and this is not one of them. */
export function isForeignWord(table: TableName, column: string, text: string): boolean {
  const words = wordsOf(table, column);
  return words !== undefined && text !== "" && !words.some(([word]) => word === text);
}

/** The probable meaning of a column's value; undefined if nothing is likely. `field` is the value's field. */
export function likelyWord(
  table: TableName,
  column: string,
  text: string,
  field: string,
): string | undefined {
  if (column === "liquidity" && /^(?:true|false)$/.test(text)) {
    if (/maker/i.test(field)) return text === "true" ? "MAKER" : "TAKER";
    return /taker/i.test(field) ? (text === "true" ? "TAKER" : "MAKER") : undefined;
  }
  return meant(wordsOf(table, column) ?? [], text);
}

/** The probable meaning of a run's status; undefined if nothing is likely. */
export function likelyStatus(text: string): "RUNNING" | "FINISHED" | "FAILED" | undefined {
  return meant(statusWords, text) as "RUNNING" | "FINISHED" | "FAILED" | undefined;
}

/** Whether a text is an enum's value for "unspecified", which no row has. */
export function isNoWord(text: string): boolean {
  return /(?:^|_)(?:UNKNOWN|UNSPECIFIED|UNDEFINED|NONE|INVALID)$/i.test(text);
}

/** The meaning of a word, also with a prefix: enum values often begin with the enum's name. */
function meant(words: Words, text: string): string | undefined {
  const short = text.replace(/\.0+$/, "");
  return words.find(([, said]) => said.test(short) || said.test(short.split("_").at(-1)!))?.[0];
}
