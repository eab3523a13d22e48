import { RunvaultError } from "../model/error.ts";
import { type Nanoseconds, wallClock } from "../model/time.ts";
import type { BookFault } from "./books/book-fault.ts";
import type { Accounting } from "./books/ledger.ts";
import type { InstanceFault } from "./control/instance-fault.ts";

export interface SimulatorOptions {
  /** Seeds every choice; the same seed and arguments give the same bytes on every machine. Default "1". */
  readonly seed: string;
  /** Strategy instances, named alpha-1, beta-2, …; 1 to 1000. Default 1. */
  readonly instances: number;
  /** Runs of each instance, 1 to 999; with `templates` to 100,000, and 200,000 over all instances. Default 2. */
  readonly runs: number;
  /**
   * Render only this many ended runs of each instance; the others reuse their rows, under their own ids and, without
   * `bars`, at their own times. Default: every run is rendered.
   */
  readonly templates?: number | undefined;
  /** Approximate rows per run over all tables. Default 20,000. */
  readonly rows: number;
  /** Exact number of fills per run, many per order; `rows` is then ignored. Default: the strategy decides. */
  readonly fills?: number | undefined;
  /** A CSV or CSV.gz file of bars (a minute or longer) to trade; `rows` is ignored. Default: generated bars. */
  readonly bars?: string | undefined;
  /** Whether the last run of every instance reveals its rows by the clock. Default false. */
  readonly growing: boolean;
  /** One run in this many of an instance fails early, but not the growing one; 0 for none. Default 3, with `bars` 0. */
  readonly failed: number;
  /** The clock, which decides only how much of a growing run is visible. Default: the machine's. */
  readonly clock: () => Nanoseconds;
  /** Faults in what instances do. Default: none. */
  readonly faults: readonly InstanceFault[];
  /** Faults in the books of runs, at most one per instance; runs started by actions have none. Default: none. */
  readonly bookFaults: readonly BookFault[];
  /** Rendered worlds are stored here and reused. */
  readonly cacheDir: string;
  /** The first instrument; the others have its name and a number. Default BTC-PERP, with `bars` the file's name. */
  readonly symbol?: string | undefined;
  /** Instruments, 1 to 100; those after the first have their own bars at the times of its bars. Default 1. */
  readonly symbols: number;
  /** The venue. Default SIMEX. */
  readonly venue: string;
  /** The trading account. Default main. */
  readonly account: string;
  /** The portfolio. Default core. */
  readonly portfolio: string;
  /**
   * The account's currencies, 1 to 10; the instruments use them in turn for quoting, and the run's summary uses the
   * first. Default USD.
   */
  readonly currencies: readonly string[];
  /** The meaning of `cash` and `position_value` in equity rows. Default "spot". */
  readonly accounting: Accounting;
  /**
   * Basis points by which every fill beats the market's price, 0 to 1000, at most two decimals. If they exceed its
   * fees, the strategy makes a profit. Default 0.
   */
  readonly edge: number;
  /** Deposits and withdrawals, alternating, in each currency after the start, 0 to 10,000. Default 0. */
  readonly transfers: number;
  /** How often positions settle funding and cash earns interest, in milliseconds: whole minutes. Default 0: never. */
  readonly fundingMs: number;
}

/** Options as given; undefined ones get defaults. */
export type GivenOptions = {
  readonly [Name in keyof SimulatorOptions]?: SimulatorOptions[Name] | undefined;
} & { readonly cacheDir: string };

const mostRendered = 999;
const mostRuns = 100_000;
/** Each takes about a kilobyte of memory. */
const mostRunsInAll = 200_000;

const mostSymbols = 100;
const mostCurrencies = 10;
const currencyName = /^[A-Za-z0-9]{1,12}$/;
const mostEdge = 1000;
const minuteMs = 60_000;

const defaults = {
  seed: "1",
  instances: 1,
  runs: 2,
  rows: 20_000,
  growing: false,
  clock: wallClock,
  faults: [],
  bookFaults: [],
  venue: "SIMEX",
  account: "main",
  portfolio: "core",
  symbols: 1,
  currencies: ["USD"],
  accounting: "spot" as const,
  edge: 0,
  transfers: 0,
  fundingMs: 0,
};

/** The options with defaults filled in. Throws `invalid_argument` for numbers out of range. */
export function simulatorOptions(given: GivenOptions): SimulatorOptions {
  const failed = given.bars === undefined ? 3 : 0;
  const present = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const options: SimulatorOptions = { ...defaults, failed, cacheDir: given.cacheDir, ...present };
  whole("instances", options.instances, 1, 1000);
  if (options.templates === undefined) {
    whole(
      "runs",
      options.runs,
      1,
      mostRendered,
      `With --templates, which reuses rows, there may be ${mostRuns}.`,
    );
  } else {
    whole("runs", options.runs, 1, mostRuns);
    whole("templates", options.templates, 1, mostRendered);
    const all = options.instances * options.runs;
    if (all > mostRunsInAll) {
      throw new RunvaultError(
        "invalid_argument",
        `${options.instances} instances with ${options.runs} runs each are ${all} runs, more than ${mostRunsInAll}`,
      );
    }
  }
  whole("rows", options.rows, 1, 10_000_000_000);
  whole("failed", options.failed, 0, 999);
  if (options.fills !== undefined) whole("fills", options.fills, 0, 1_000_000_000);
  whole("symbols", options.symbols, 1, mostSymbols);
  whole("transfers", options.transfers, 0, 10_000);
  currencies(options.currencies);
  edge(options.edge);
  if (!Number.isInteger(options.fundingMs / minuteMs) || options.fundingMs < 0) {
    throw new RunvaultError("invalid_argument", "the funding period must be a whole number of minutes", {
      hint: "Perpetual futures usually settle every 8h.",
    });
  }
  return options;
}

function currencies(names: readonly string[]): void {
  const wrong = names.find((name, at) => !currencyName.test(name) || names.indexOf(name) !== at);
  if (wrong === undefined && names.length >= 1 && names.length <= mostCurrencies) return;
  throw new RunvaultError(
    "invalid_argument",
    `currencies must be 1 to ${mostCurrencies} different names of 1 to 12 letters and digits, not ${JSON.stringify(names.join(","))}`,
    { hint: "For example, write USD,EUR." },
  );
}

function edge(basisPoints: number): void {
  const hundredths = Math.round(basisPoints * 100);
  if (hundredths / 100 === basisPoints && basisPoints >= 0 && basisPoints <= mostEdge) return;
  throw new RunvaultError(
    "invalid_argument",
    `edge must be basis points from 0 to ${mostEdge} with at most two decimals, not ${basisPoints}`,
  );
}

function whole(name: string, value: number, least: number, most: number, hint?: string): void {
  if (!Number.isInteger(value) || value < least || value > most) {
    throw new RunvaultError(
      "invalid_argument",
      `${name} must be a whole number from ${least} to ${most}, not ${value}`,
      hint === undefined ? {} : { hint },
    );
  }
}
