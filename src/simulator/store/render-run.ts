import { join } from "node:path";
import { type TableName, tableNames } from "../../model/profile/table.ts";
import { type BookBreak, brokenBooks, countedBooks, soundBooks } from "../books/book-break.ts";
import { noPlaceFor } from "../books/book-fault.ts";
import { playRun, type RunOutcome } from "../world/play-run.ts";
import { randomFrom } from "../world/random.ts";
import type { RowSink, RunPlan } from "../world/run-plan.ts";
import { latestMicros, type TableWriter, tableWriter, type WrittenTable } from "./table-writer.ts";

/** One row in this many is known minutes late; a power of two. */
const lateRows = 64;

export interface RenderedRun extends RunOutcome {
  readonly instanceId: string;
  readonly runId: string;
  readonly failed: boolean;
  /** When the last row is known. UNIX nanoseconds, as text. */
  readonly complete: string;
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
 * Plays a run and writes its tables into `folder`, in constant memory. `onBars` gets rows and bars so far; its errors
 * stop the rendering. Throws `invalid_argument` if the run's fault has no possible place.
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

  const books = await booksOf(plan, onBars);
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
    const outcome = await playRun(plan, books, emit, (micros, bars) => {
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

/** The run's books, broken in one of the possible places for its fault, which a first pass counts. */
async function booksOf(plan: RunPlan, onBars: (rows: number, bars: number) => void): Promise<BookBreak> {
  const { fault } = plan;
  if (fault === undefined) return soundBooks;
  const counted = countedBooks(fault.kind);
  await playRun(
    plan,
    counted,
    () => {},
    () => onBars(0, 0),
  );
  if (counted.places === 0) throw noPlaceFor(fault, plan.instanceId, plan.runId);
  return brokenBooks(fault.kind, 1 + randomFrom(`${plan.seed} ${fault.kind}`).below(counted.places));
}
