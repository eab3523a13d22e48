import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { formatScaled } from "../../model/fixed-point.ts";
import { type TableName, tableNames } from "../../model/profile/table.ts";
import { canonicalDouble } from "../../row/line.ts";
import { type Bar, barMicros } from "../world/bars.ts";
import { randomFrom } from "../world/random.ts";
import type { RowSink, RunPlan } from "../world/run-plan.ts";
import { type EquityStatistics, equityStatistics, statisticsConvention } from "../world/statistics.ts";
import { crossoverStrategy } from "../world/strategy.ts";
import { latestMicros, type TableWriter, tableWriter, type WrittenTable } from "./table-writer.ts";

/** Bars between two flushes of the tables: what is held in memory beyond the lateness. */
const flushBars = 32;
/** Bars between two snapshots of the order book. */
const snapshotBars = 5;
const bookLevels = 5;
const dayMicros = 86_400_000_000;
/** One row in so many is known minutes late; a power of two. */
const lateRows = 64;

export interface RenderedRun {
  readonly instanceId: string;
  readonly runId: string;
  readonly failed: boolean;
  /** UNIX nanoseconds, as text. */
  readonly started: string;
  readonly ended: string;
  /** When the last row is known. UNIX nanoseconds. */
  readonly complete: string;
  readonly initialEquity: string;
  readonly finalEquity: string;
  readonly fees: string;
  readonly orders: number;
  readonly fills: number;
  readonly tables: Readonly<Record<TableName, WrittenTable>>;
}

/** Names of a table's files in a run's folder. */
export function dataFileName(table: TableName): string {
  return `${table}.ndjson`;
}

export function indexFileName(table: TableName): string {
  return `${table}.index`;
}

/**
 * Plays a run and writes its tables into `folder`, in memory that does not grow with the run. `onBars` hears of the
 * rows and bars so far; what it throws stops the rendering.
 */
export async function renderRun(
  plan: RunPlan,
  folder: string,
  onBars: (rows: number, bars: number) => void = () => {},
): Promise<RenderedRun> {
  const writers = new Map<TableName, TableWriter>();
  const arrivals = randomFrom(`${plan.seed} arrivals`);
  const steps = randomFrom(`${plan.seed} seq`);
  const seqText = plan.largeSeq
    ? (seq: number): string => `1844674${String(seq).padStart(13, "0")}`
    : (seq: number): string => String(seq);
  const prefix = `{"run_id":${JSON.stringify(plan.runId)},"instance_id":${JSON.stringify(plan.instanceId)},"seq":"`;

  let rows = 0;
  const emit: RowSink = (table, micros, nanos, fields) => {
    rows += 1;
    const delay =
      arrivals.below(lateRows) === 0
        ? 120_000_000 + arrivals.below(latestMicros - 130_000_000)
        : 200 + arrivals.below(50_000);
    writers.get(table)!.add(micros, nanos, micros + delay, arrivals.below(1000), `",${fields}`);
  };

  let finished = false;
  try {
    for (const table of tableNames) {
      writers.set(
        table,
        tableWriter({
          prefix,
          dataFile: join(folder, dataFileName(table)),
          indexFile: join(folder, indexFileName(table)),
          seqText,
          seqStep: () => (steps.below(32) === 0 ? 2 + steps.below(5) : 1),
        }),
      );
    }
    const outcome = await play(plan, emit, (micros, bars) => {
      for (const writer of writers.values()) writer.flush(micros);
      onBars(rows, bars);
    });
    finished = true;
    const written = Object.fromEntries([...writers].map(([table, writer]) => [table, writer.finish()]));
    const complete = Object.values(written).reduce(
      (latest, table) =>
        table.complete !== "" && BigInt(table.complete) > latest ? BigInt(table.complete) : latest,
      0n,
    );
    return {
      instanceId: plan.instanceId,
      runId: plan.runId,
      failed: plan.failed,
      ...outcome,
      complete: String(complete),
      tables: written as Record<TableName, WrittenTable>,
    };
  } finally {
    if (!finished) for (const writer of writers.values()) writer.abandon();
  }
}

type Outcome = Pick<
  RenderedRun,
  "started" | "ended" | "initialEquity" | "finalEquity" | "fees" | "orders" | "fills"
>;

async function play(
  plan: RunPlan,
  emit: RowSink,
  flush: (micros: number, bars: number) => void,
): Promise<Outcome> {
  const random = randomFrom(`${plan.seed} run`);
  const strategy = crossoverStrategy(plan, random, emit);
  const { position } = strategy;
  const market = marketRows(plan, emit);
  const initial = plan.initialCash * 1_000_000_000n;
  const runFigures = equityStatistics(Number(initial));
  let dayFigures = equityStatistics(Number(initial));
  let day = -1;
  let equity = initial;

  const accountHead = `"resource_key":"portfolio.${plan.portfolio}","account":${JSON.stringify(plan.account)},"portfolio":${JSON.stringify(plan.portfolio)},"venue":"","symbol":"",`;
  const metrics = (micros: number, nanos: number, window: string, figures: EquityStatistics): void => {
    for (const { name, value } of figures.figures()) {
      emit(
        "metrics",
        micros,
        nanos,
        `${accountHead}"name":"${name}","value":${canonicalDouble(value)},"window":"${window}","convention":${JSON.stringify(statisticsConvention)},"currency":${JSON.stringify(plan.currency)}}`,
      );
    }
  };
  const runtimeEvent = (
    micros: number,
    kind: string,
    severity: string,
    message: string,
    payload: object,
  ): void =>
    emit(
      "events",
      micros,
      0,
      `"resource_key":"events.runtime","account":"","portfolio":"","venue":"","symbol":"","kind":"${kind}","severity":"${severity}","message":${JSON.stringify(message)},"amount":"","currency":"","payload":${JSON.stringify(JSON.stringify(payload))}}`,
    );
  const accountEvent = (micros: number, kind: string, message: string, amount: string): void =>
    emit(
      "events",
      micros,
      0,
      `"resource_key":"events.account","account":${JSON.stringify(plan.account)},"portfolio":${JSON.stringify(plan.portfolio)},"venue":"","symbol":"","kind":"${kind}","severity":"INFO","message":${JSON.stringify(message)},"amount":"${amount}","currency":${amount === "" ? '""' : JSON.stringify(plan.currency)},"payload":""}`,
    );

  const started = plan.bars.firstCloseMicros - barMicros;
  runtimeEvent(started, "runtime.started", "INFO", `strategy ${plan.strategy} started`, {
    strategy: plan.strategy,
    symbol: plan.symbol,
  });
  accountEvent(started + 1_000, "account.opened", `account ${plan.account} opened`, "");
  accountEvent(started + 2_000, "account.deposit", "initial deposit", String(plan.initialCash));

  let index = 0;
  let last: Bar | undefined;
  for await (const batch of plan.bars.batches()) {
    for (const bar of batch) {
      if (index >= plan.barCount) break;
      // the close of a bar at midnight still belongs to the day that ends
      const barDay = Math.ceil(bar.closeMicros / dayMicros);
      if (day >= 0 && barDay !== day) {
        metrics(day * dayMicros, 0, "day", dayFigures);
        dayFigures = equityStatistics(Number(equity));
      }
      day = barDay;
      market(bar, index);
      strategy.execute(bar);
      const mark = position.mark(bar.close);
      equity = mark.equity;
      emit(
        "equity",
        bar.closeMicros,
        bar.closeNanos,
        `${accountHead}"currency":${JSON.stringify(plan.currency)},"cash":"${formatScaled(position.cash, 9)}","position_value":"${formatScaled(mark.value, 9)}","equity":"${formatScaled(mark.equity, 9)}","realized":"${formatScaled(mark.realized, 9)}","unrealized":"${formatScaled(mark.unrealized, 9)}"}`,
      );
      runFigures.add(Number(equity));
      dayFigures.add(Number(equity));
      strategy.decide(bar, index);
      last = bar;
      index += 1;
      if (index % flushBars === 0) {
        flush(bar.closeMicros, index);
        // lets signals and timers in between
        await setImmediate();
      }
    }
    if (index >= plan.barCount) break;
  }
  const end = last?.closeMicros ?? started + barMicros;
  if (last !== undefined) {
    metrics(end, last.closeNanos + 1 > 999 ? 999 : last.closeNanos + 1, "run", runFigures);
  }
  const ended = end + 500_000;
  if (plan.failed) {
    runtimeEvent(ended, "runtime.failed", "ERROR", 'strategy failed: "division by zero" in signal', {
      error: "division by zero",
      where: "signal → decide()",
    });
  } else {
    strategy.stop(end + 100_000);
    runtimeEvent(ended, "runtime.stopped", "INFO", `strategy ${plan.strategy} stopped`, strategy.totals);
  }
  return {
    started: `${started}000`,
    ended: `${ended}000`,
    initialEquity: String(plan.initialCash),
    finalEquity: formatScaled(equity, 9),
    fees: formatScaled(position.fees, 9),
    ...strategy.totals,
  };
}

/** Emits the rows that the market alone decides: the bar, and now and then a snapshot of the book around its close. */
function marketRows(plan: RunPlan, emit: RowSink): (bar: Bar, index: number) => void {
  const random = randomFrom(`${plan.seed} book`);
  const { tickDecimals } = plan.bars;
  const scope = `"account":"","portfolio":"","venue":${JSON.stringify(plan.venue)},"symbol":${JSON.stringify(plan.symbol)},`;
  const barHead = `"resource_key":${JSON.stringify(`bars.${plan.venue}.${plan.symbol}.1m`)},${scope}"interval_ns":"${barMicros}000","ts_open":"`;
  const bookHead = `"resource_key":${JSON.stringify(`book.${plan.venue}.${plan.symbol}`)},${scope}"snapshot_id":"`;
  const price = (ticks: number): string => formatScaled(ticks, tickDecimals);
  return (bar, index) => {
    const nanos = String(bar.closeNanos).padStart(3, "0");
    emit(
      "bars",
      bar.closeMicros,
      bar.closeNanos,
      `${barHead}${bar.closeMicros - barMicros}${nanos}","open":"${price(bar.open)}","high":"${price(bar.high)}","low":"${price(bar.low)}","close":"${price(bar.close)}","volume":"${bar.volume}"}`,
    );
    if (index % snapshotBars !== 0) return;
    for (const side of ["BID", "ASK"]) {
      for (let level = 0; level < bookLevels; level += 1) {
        const ticks = side === "BID" ? bar.close - 1 - level : bar.close + 1 + level;
        // a bid below the first tick does not exist
        if (ticks <= 0) continue;
        const lots = 1 + random.below(100_000);
        emit(
          "order_book",
          bar.closeMicros,
          bar.closeNanos,
          `${bookHead}${index / snapshotBars + 1}","side":"${side}","level":${level},"price":"${price(ticks)}","quantity":"${formatScaled(lots, plan.lotDecimals)}","order_count":${1 + random.below(40)}}`,
        );
      }
    }
  };
}
