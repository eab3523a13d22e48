import { RunvaultError } from "../../model/error.ts";
import { formatTime, type Nanoseconds } from "../../model/time.ts";
import { timedRows } from "./timed-rows.ts";

/** The value of each currency's unit in a base currency, from one instant to that currency's next. */
export interface Rates {
  /** Its name as given. */
  readonly file: string;
  /** The currency that all rates are to. */
  readonly base: string;
  readonly rows: readonly { readonly at: Nanoseconds; readonly currency: string; readonly rate: string }[];
}

const ratesFile = {
  what: "the file of rates",
  columns: ["timestamp", "currency", "base", "rate"],
  isStrict: true,
  hint: "Provide a CSV file with the columns timestamp, currency, base and rate: what one unit of the currency is worth in the base currency, in time order.",
} as const;

/**
 * Reads a CSV file of exchange rates, exact decimals of at most nine digits on either side of the point. Throws
 * `invalid_argument` with file and line for a file that is invalid, has two base currencies, or goes back in time.
 */
export async function readRates(file: string, signal?: AbortSignal): Promise<Rates> {
  const rows: { at: Nanoseconds; currency: string; rate: string }[] = [];
  const latest = new Map<string, Nanoseconds>();
  let base: string | undefined;
  for await (const { at, cells, refusal } of timedRows(file, ratesFile, signal)) {
    const [currency, own, rate] = ["currency", "base", "rate"].map((name) => (cells[name] ?? "").trim());
    if (!currency || !own) throw refusal("a rate needs its currency and the base currency");
    base ??= own;
    if (own !== base) throw refusal(`all rates are to one base currency: ${base}, not ${own}`);
    if (currency === base) throw refusal(`${base} is the base currency itself, which needs no rate`);
    if (!/^\d{1,9}(?:\.\d{1,9})?$/.test(rate!) || /^[0.]+$/.test(rate!)) {
      throw refusal(`not a rate above zero with at most nine decimals: ${JSON.stringify(rate)}`);
    }
    const before = latest.get(currency);
    if (before !== undefined && at <= before)
      throw refusal(`a rate of ${currency} is not later than the one before it`);
    latest.set(currency, at);
    rows.push({ at, currency, rate: rate! });
  }
  if (base === undefined) {
    const { hint } = ratesFile;
    throw new RunvaultError("invalid_argument", "the file of rates has no rates", { place: { file }, hint });
  }
  return { file, base, rows };
}

/** The rates and their times, for a heading. */
export function ratesText({ file, base, rows }: Rates): string {
  const spans = [...Map.groupBy(rows, ({ currency }) => currency)].map(([currency, own]) => {
    const ends = [...new Set([own[0]!, own.at(-1)!])].map(({ at }) => formatTime(at));
    return `${currency} ${own.length === 1 ? "of" : `${own.length} rates,`} ${ends.join(" to ")}`;
  });
  return `total in ${base} at the last rate of ${file} at or before each timestamp (${spans.join("; ")})`;
}
