import { setImmediate } from "node:timers/promises";
import { formatScaled } from "../../model/fixed-point.ts";
import type { Bar } from "../bars/bars.ts";
import { siblingBars } from "../bars/sibling-bars.ts";
import type { BookBreak } from "../books/book-break.ts";
import { type Ledger, openLedger } from "../books/ledger.ts";
import { accountMoves } from "./account-moves.ts";
import { accountRows } from "./account-rows.ts";
import { eventRows } from "./event-rows.ts";
import { marketRows } from "./market-rows.ts";
import { orderDesk, type RunTally } from "./order-desk.ts";
import { randomFrom } from "./random.ts";
import type { RowSink, RunPlan } from "./run-plan.ts";
import { crossoverStrategy } from "./strategy.ts";

/** The number of bars between two flushes of the tables. Their rows take memory in addition to those held back. */
const flushBars = 32;

/** The result of a run. Amounts are in its first currency, and agree with its rows. */
export interface RunOutcome {
  /** UNIX nanoseconds, as text. */
  readonly started: string;
  readonly ended: string;
  readonly initialEquity: string;
  readonly finalEquity: string;
  readonly fees: string;
  /** Numbers of fills and of submitted orders that have rows. */
  readonly orders: number;
  readonly fills: number;
}

/**
 * Plays a run and emits its rows. `flush` is called from time to time with an instant, in microseconds, before all
 * later rows, and the number of bars played; its errors stop the run.
 */
export async function playRun(
  plan: RunPlan,
  books: BookBreak,
  emit: RowSink,
  flush: (micros: number, bars: number) => void,
): Promise<RunOutcome> {
  const events = eventRows(plan, emit);
  const started = plan.bars.firstCloseMicros - plan.bars.intervalMicros;
  const symbols = plan.instruments.map(({ symbol }) => symbol);
  events.runtime(started, "started", "INFO", `strategy ${plan.strategy} started`, {
    strategy: plan.strategy,
    ...(symbols.length === 1 ? { symbol: symbols[0] } : { symbols }),
  });
  events.account(started + 1_000, 0, { kind: "opened", message: `account ${plan.account} opened` });

  const accounts = plan.currencies.map((currency) => {
    const ledger = openLedger(currency, plan.accounting);
    ledger.deposit(plan.initialCash * 1_000_000_000n);
    events.account(started + 2_000, 0, {
      kind: "deposit",
      message: "initial deposit",
      amount: String(plan.initialCash),
      currency,
    });
    return { ledger, rows: accountRows(plan, ledger, books, emit) };
  });
  const tally: RunTally = { submitted: 0, traded: 0, orders: 0, fills: 0, fees: new Map() };
  const instruments = tradedInstruments(
    plan,
    accounts.map(({ ledger }) => ledger),
    books,
    tally,
    emit,
  );
  const moved = accounts.map(({ ledger, rows }) => {
    const held = instruments.filter((instrument) => instrument.ledger === ledger);
    return { ledger, rows, held };
  });
  const moves = accountMoves(plan, moved, books, events);

  let index = 0;
  let last: Bar | undefined;
  for await (const batch of plan.bars.batches()) {
    for (const bar of batch) {
      if (index >= plan.barCount) break;
      for (const instrument of instruments) instrument.close(bar, index);
      moves.settle(bar);
      for (const { rows } of accounts) rows.point(bar);
      moves.transfer(bar, index);
      for (const instrument of instruments) instrument.decide();
      last = bar;
      index += 1;
      if (index % flushBars === 0) {
        flush(bar.closeMicros, index);
        // lets signals and timers run in between
        await setImmediate();
      }
    }
    if (index >= plan.barCount) break;
  }
  const end = last?.closeMicros ?? started + plan.bars.intervalMicros;
  if (last !== undefined) for (const { rows } of accounts) rows.end(last);
  const ended = end + 500_000;
  if (plan.failed) {
    events.runtime(ended, "failed", "ERROR", 'strategy failed: "division by zero" in signal', {
      error: "division by zero",
      where: "signal → decide()",
    });
  } else {
    for (const { strategy } of instruments) strategy.stop(end + 100_000);
    const { orders, fills } = tally;
    events.runtime(ended, "stopped", "INFO", `strategy ${plan.strategy} stopped`, { orders, fills });
  }
  const [first] = accounts;
  return {
    started: `${started}000`,
    ended: `${ended}000`,
    initialEquity: String(plan.initialCash),
    finalEquity: formatScaled(first!.rows.equity, 9),
    fees: formatScaled(tally.fees.get(first!.ledger.currency) ?? 0n, 9),
    orders: tally.orders,
    fills: tally.fills,
  };
}

/** The run's instruments, each with bars, a holding in its currency's books, and its own strategy. */
function tradedInstruments(
  plan: RunPlan,
  ledgers: readonly Ledger[],
  books: BookBreak,
  tally: RunTally,
  emit: RowSink,
) {
  const nanosPerTickLot = 10n ** BigInt(9 - plan.bars.tickDecimals - plan.lotDecimals);
  const { length } = plan.instruments;
  let snapshots = 0;
  return plan.instruments.map((instrument, number) => {
    const { symbol, currency } = instrument;
    const siblings = number === 0 ? undefined : siblingBars(plan.seed, number, plan.bars.typicalTicks);
    const own = (name: string) => randomFrom(`${plan.seed} ${name}${number === 0 ? "" : ` ${number}`}`);
    const ledger = ledgers.find((candidate) => candidate.currency === currency)!;
    const holding = ledger.open(nanosPerTickLot);
    const random = own("run");
    const desk = orderDesk({ plan, instrument, ledger, holding, tally, books, random, emit });
    const strategy = crossoverStrategy({
      plan,
      symbol,
      barCount: siblings === undefined ? plan.barCount : siblings.count(plan.barCount),
      typicalTicks: siblings === undefined ? plan.bars.typicalTicks : siblings.typicalTicks,
      fills: plan.fills === undefined ? undefined : partOf(plan.fills, length, number),
      sharing: plan.instruments.filter((other) => other.currency === currency).length,
      nanosPerTickLot,
      desk,
      random,
      emit,
    });
    const market = marketRows(plan, symbol, own("book"), () => (snapshots += 1), emit);
    let bar: Bar | undefined;
    let bars = 0;
    return {
      symbol,
      ledger,
      holding,
      strategy,
      /** Takes the instrument's bar at this time, if it has one. */
      close(first: Bar, index: number): void {
        bar = siblings === undefined ? first : siblings.beside(first, index);
        if (bar === undefined) return;
        market(bar, bars);
        holding.see(bar.close);
        strategy.execute(bar);
      },
      /** Decides on orders after the bar that `close` took. */
      decide(): void {
        if (bar === undefined) return;
        strategy.decide(bar, bars);
        bars += 1;
      },
    };
  });
}

/** One of `parts` whole parts that add up to `whole` and are as equal as possible. */
function partOf(whole: number, parts: number, number: number): number {
  return Math.floor((whole * (number + 1)) / parts) - Math.floor((whole * number) / parts);
}
