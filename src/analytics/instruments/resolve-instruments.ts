import { RunvaultError } from "../../model/error.ts";
import { glob } from "../../model/text/glob.ts";
import { nearestName } from "../../model/text/nearest-name.ts";
import { type BarSource, exactOf, type Instrument } from "./instrument.ts";
import type { InstrumentEntry } from "./instruments-schema.ts";
import type { InstrumentsFile } from "./read-instruments.ts";
import type { RunFacts } from "./run-facts.ts";

/** The instruments of a run. */
export interface RunInstruments {
  readonly instruments: readonly Instrument[];
  /** The instrument of a symbol at a venue, one of `instruments`. Throws `internal` for a market without fills. */
  of(symbol: string, venue: string): Instrument;
  /** A line per instrument: the values used, and which of them are defaults. */
  readonly taken: readonly string[];
}

/**
 * Resolves a run's instruments: the first entry of the file that matches a symbol and its venue, and otherwise linear,
 * multiplier 1, the only currency of the equity rows, the only bars of the same symbol. Venues of a symbol with equal
 * values are one instrument; otherwise several. Throws `invalid_argument` if anything is unclear, with the rows and the
 * key to set.
 */
export function resolveInstruments(facts: RunFacts, file: InstrumentsFile | null): RunInstruments {
  const found = new Map<string, { instrument: Instrument; source: string }>();
  const byMarket = new Map<string, string>();
  for (const { symbol, venue } of facts.markets) {
    const index = (file?.entries ?? []).findIndex((entry) => matches(entry, symbol, venue));
    const entry = file?.entries[index];
    const one = {
      currency:
        entry?.currency === undefined
          ? onlyCurrency(facts, symbol)
          : rightCase(facts, symbol, entry.currency),
      multiplier: exactOf(entry?.multiplier ?? "1"),
      kind: entry?.kind ?? "linear",
      bars: barsOf(facts, symbol, entry),
    } as const;
    const key = JSON.stringify([symbol, one], (_, value) =>
      typeof value === "bigint" ? String(value) : value,
    );
    byMarket.set(marketKey(symbol, venue), key);
    const known = found.get(key);
    const venues = [...(known?.instrument.venues ?? []), venue];
    const source = sourceText(entry, index, file);
    found.set(key, { instrument: { symbol, venues, ...one }, source: known?.source ?? source });
  }
  const instruments = [...found.values()].map(({ instrument }) => instrument);
  const byKey = new Map([...found].map(([key, { instrument }]) => [key, instrument]));
  return {
    instruments,
    taken: [...found.values()].map(({ instrument, source }) => `${instrumentText(instrument)} (${source})`),
    of: (symbol, venue) => {
      const instrument = byKey.get(byMarket.get(marketKey(symbol, venue)) ?? "");
      if (instrument === undefined) {
        throw new RunvaultError("internal", `no instrument was resolved for ${symbol} at ${venue}`);
      }
      return instrument;
    },
  };
}

/**
 * The bars of a symbol, with or without fills: the only ones, or those of the first entry of the file whose symbol
 * matches, whatever its venue. Null if there are none; throws `invalid_argument` if that is unclear.
 */
export function barsOfSymbol(
  facts: Pick<RunFacts, "run" | "bars">,
  symbol: string,
  file: InstrumentsFile | null,
): BarSource | null {
  const entry = file?.entries.find((one) => glob(one.symbol).matches(symbol));
  return barsOf(facts, symbol, entry);
}

function marketKey(symbol: string, venue: string): string {
  return JSON.stringify([symbol, venue]);
}

function matches(entry: InstrumentEntry, symbol: string, venue: string): boolean {
  return glob(entry.symbol).matches(symbol) && glob(entry.venue).matches(venue);
}

/** A currency without equity rows is a separate one, unless it differs only in case. */
function rightCase({ run, currencies }: RunFacts, symbol: string, currency: string): string {
  if (currencies.some((one) => one.currency === currency)) return currency;
  const meant = currencies.find((one) => one.currency.toLowerCase() === currency.toLowerCase());
  if (meant === undefined) return currency;
  throw new RunvaultError(
    "invalid_argument",
    `the instruments file has ${symbol} traded in ${currency}, but the equity rows are in ${meant.currency}`,
    {
      place: { instance: run.instanceId, run: run.runId, table: "equity" },
      hint: `Did you mean ${meant.currency}? Correct \`currency\` of ${symbol} in the file of --instruments.`,
    },
  );
}

function onlyCurrency({ run, currencies }: RunFacts, symbol: string): string {
  const [only, ...more] = currencies;
  if (only !== undefined && more.length === 0) return only.currency;
  const hint = `Set \`currency\` of ${symbol} in the file of --instruments.`;
  const place = { instance: run.instanceId, run: run.runId, table: "equity" };
  if (only === undefined) {
    const message = `there are no equity rows to say which currency ${symbol} is traded in`;
    throw new RunvaultError("invalid_argument", message, { place, hint });
  }
  const listed = currencies.map(({ currency, ...rows }) => `${currency} (${rowsText(rows)})`);
  throw new RunvaultError(
    "invalid_argument",
    `the equity rows are in ${listed.join(" and ")}, so the currency of ${symbol} is unclear`,
    { place, hint },
  );
}

function barsOf(
  { run, bars }: Pick<RunFacts, "run" | "bars">,
  symbol: string,
  entry: InstrumentEntry | undefined,
): BarSource | null {
  const wanted = entry?.bars ?? {};
  const own = wanted.symbol ?? symbol;
  const ofSymbol = bars.filter((source) => source.symbol === own);
  const left = ofSymbol.filter(
    ({ venue, intervalNs }) =>
      (wanted.venue === undefined || venue === wanted.venue) &&
      (wanted.interval === undefined || intervalNs === wanted.interval),
  );
  const [only, ...more] = left;
  if (only !== undefined && more.length === 0) {
    return { symbol: own, venue: only.venue, intervalNs: only.intervalNs };
  }
  const place = { instance: run.instanceId, run: run.runId, table: "bars" };
  const set = (key: string) => `Set \`bars.${key}\` of ${symbol} in the file of --instruments.`;
  if (only === undefined) {
    if (ofSymbol.length > 0) {
      throw new RunvaultError(
        "invalid_argument",
        `the run does not have the bars of ${own} that the instruments file names; it has ${ofSymbol.map(barsText).join(" and ")}`,
        { place, hint: `Correct \`bars\` of ${symbol} in the file of --instruments.` },
      );
    }
    if (wanted.symbol === undefined || bars.length === 0) return null;
    const near = nearestName(own, new Set(bars.map((source) => source.symbol)));
    throw new RunvaultError("invalid_argument", `the run has no bars of ${own}`, {
      place,
      hint: near === null ? `Correct \`bars.symbol\` of ${symbol}.` : `Did you mean ${near}?`,
    });
  }
  const isOneVenue = more.every(({ venue }) => venue === only.venue);
  throw new RunvaultError(
    "invalid_argument",
    `the run has several series of bars of ${own}, and it is unclear which belong to ${symbol}: ${left.map(barsText).join(" and ")}`,
    { place, hint: set(isOneVenue ? "interval" : "venue") },
  );
}

function barsText({ venue, intervalNs, ...rows }: RunFacts["bars"][number]): string {
  return `${intervalText(intervalNs)} at ${venue} (${rowsText(rows)})`;
}

function rowsText({ rows, firstSeq }: { readonly rows: bigint; readonly firstSeq: bigint }): string {
  return `${rows} ${rows === 1n ? "row" : "rows"} from seq ${firstSeq}`;
}

const units: readonly (readonly [bigint, string])[] = [
  [86_400_000_000_000n, "d"],
  [3_600_000_000_000n, "h"],
  [60_000_000_000n, "m"],
  [1_000_000_000n, "s"],
  [1_000_000n, "ms"],
];

/** The length of a bar as an instruments file writes it. */
function intervalText(ns: bigint): string {
  const [unit, name] = units.find(([length]) => ns % length === 0n) ?? [1n, "ns"];
  return `${ns / unit}${name}`;
}

function instrumentText({ symbol, venues, currency, multiplier, kind, bars }: Instrument): string {
  const { value, scale } = multiplier;
  const digits = String(value).padStart(scale + 1, "0");
  const factor = scale === 0 ? digits : `${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
  const source =
    bars === null ? "no bars" : `bars of ${bars.symbol}, ${intervalText(bars.intervalNs)} at ${bars.venue}`;
  return `${symbol} at ${venues.join(", ")}: ${kind}, multiplier ${factor}, ${currency}, ${source}`;
}

/** Where the values of an instrument come from. */
function sourceText(entry: InstrumentEntry | undefined, index: number, file: InstrumentsFile | null): string {
  if (entry === undefined) return "assumed";
  const assumed = [
    ...(entry.currency === undefined ? ["currency"] : []),
    ...(entry.bars === undefined ? ["bars"] : []),
  ];
  const rest = assumed.length === 0 ? "" : `; assumed: ${assumed.join(" and ")}`;
  return `entry ${index + 1} of ${file!.file}${rest}`;
}
