import { createHash, randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { RunvaultError } from "../../model/error.ts";
import { makeFolder, privateFile, privateFolder } from "../../model/make-folder.ts";
import { type TableName, tableNames } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import type { Nanoseconds } from "../../model/time.ts";
import type { BarSource } from "../bars/bars.ts";
import { csvBars } from "../bars/csv-bars.ts";
import { generatedBars } from "../bars/generated-bars.ts";
import { movedBars } from "../bars/moved-bars.ts";
import { bookFaultOf } from "../books/book-fault.ts";
import type { SimulatorOptions } from "../simulator-options.ts";
import { dataFileName, indexFileName, type RenderedRun, renderRun } from "../store/render-run.ts";
import type { WrittenTable } from "../store/table-writer.ts";
import {
  instanceIdOf,
  movedRun,
  renderedNumbers,
  runIdOf,
  startMicrosOf,
  templateCount,
} from "./run-numbers.ts";
import type { InstrumentPlan, RunPlan } from "./run-plan.ts";

/** Increase this whenever the same arguments give different bytes; worlds of other versions are not used. */
const renderVersion = 2;
const worldFile = "world.json";
/** The approximate number of rows in a run's tables for each bar of an instrument. */
const rowsPerBar = 10;
const fillsPerBar = 50;
const leastBars = 30;
const dayMinutes = 1440;
/** A partly rendered world of this age is abandoned. */
const abandonedMs = 86_400_000;
/** Generated prices move around 30,000.00. */
const generatedTickDecimals = 2;
const generatedAnchorTicks = 3_000_000;
const initialCash = 1_000_000n;

export interface WorldRun extends Omit<RenderedRun, "tables"> {
  readonly tables: Readonly<Record<TableName, Pick<WrittenTable, "rows" | "bytes">>>;
  /** Whether the clock decides what is visible. */
  readonly growing: boolean;
  /** The folder of its rows, or of its template's. */
  readonly folder: string;
  /** How much later its rows are than its template's; undefined for a rendered run. */
  readonly movedBy?: Nanoseconds;
}

/** A rendered world in the cache. */
export interface World {
  readonly key: string;
  readonly folder: string;
  /** Sorted by instance, then oldest first. */
  readonly runs: readonly WorldRun[];
  readonly instruments: readonly InstrumentPlan[];
  readonly strategy: string;
}

/** Observes and stops the rendering of a world. */
export interface RenderWatch {
  /** Stops the rendering. Nothing is kept. */
  readonly signal?: AbortSignal;
  /** Called from time to time with the current run, rows so far, and the share of the work done, above 0. */
  readonly onProgress?: (run: RunRef, rows: number, share: number) => void;
}

interface WorldRecord {
  readonly key: string;
  readonly runs: readonly RenderedRun[];
}

/**
 * The world of these options, from the cache or rendered into it. Rendering happens elsewhere and becomes visible by
 * one rename, so an interrupted one never counts. Of two simultaneous ones the first wins, and both use its bytes.
 */
export async function openWorld(options: SimulatorOptions, watch: RenderWatch = {}): Promise<World> {
  const symbol = options.symbol ?? (options.bars === undefined ? "BTC-PERP" : symbolOf(options.bars));
  const instruments = instrumentsOf(options, symbol);
  const key = await worldKey(options, symbol);
  const folder = join(options.cacheDir, key);
  let record = await readWorld(folder, key);
  if (record === undefined) {
    await makeFolder(options.cacheDir, privateFolder);
    await removeAbandoned(options.cacheDir);
    const aside = join(options.cacheDir, `${key}.${process.pid}.${randomBytes(4).toString("hex")}.part`);
    try {
      await mkdir(aside, privateFolder);
      await renderWorld(options, instruments, key, aside, watch);
      await renameUnlessThere(aside, folder);
    } finally {
      await rm(aside, { recursive: true, force: true });
    }
    record = await readWorld(folder, key);
    if (record === undefined) {
      throw new RunvaultError("internal", "a world that was just rendered is incomplete", {
        place: { file: folder },
      });
    }
  }
  return { key, folder, runs: worldRuns(options, record.runs, folder), instruments, strategy };
}

function worldRuns(options: SimulatorOptions, rendered: readonly RenderedRun[], folder: string): WorldRun[] {
  const numbers = renderedNumbers(options);
  const templates = templateCount(options);
  const start = (run: number) =>
    options.bars === undefined ? startMicrosOf(options, run, daysOf(barsWanted(options))) : 0;
  return Array.from({ length: options.instances }, (_, instance) => {
    const own = numbers.map((number, index): WorldRun => {
      const position = instance * numbers.length + index;
      const growing = options.growing && number === options.runs - 1;
      return { ...rendered[position]!, growing, folder: join(folder, runFolder(position)) };
    });
    const ended = options.growing ? own.slice(0, -1) : own;
    const growing = options.growing ? own.slice(-1) : [];
    const others = options.runs - own.length;
    const moved = Array.from({ length: others }, (_, index) => {
      const run = templates + index;
      const template = run % templates;
      return movedRun(options, ended[template]!, run, start(run) - start(template));
    });
    return [...ended, ...moved, ...growing];
  }).flat();
}

const strategy = "ma-crossover";

function instrumentsOf({ symbols, currencies }: SimulatorOptions, first: string): InstrumentPlan[] {
  return Array.from({ length: symbols }, (_, number) => ({
    symbol: number === 0 ? first : `${first}-${number + 1}`,
    currency: currencies[number % currencies.length]!,
  }));
}

async function renderWorld(
  options: SimulatorOptions,
  instruments: readonly InstrumentPlan[],
  key: string,
  folder: string,
  watch: RenderWatch,
): Promise<void> {
  const csv = options.bars === undefined ? undefined : await csvBars(options.bars);
  const runs: RenderedRun[] = [];
  const numbers = renderedNumbers(options);
  const allRuns = options.instances * numbers.length;
  let rowsBefore = 0;
  for (let instance = 0; instance < options.instances; instance += 1) {
    for (const run of numbers) {
      const seed = seedOf(options, instance, run);
      const growing = options.growing && run === options.runs - 1;
      const failed = options.failed > 0 && (run + 1) % options.failed === 0 && !growing;
      const bars = csv ?? barsToGenerate(options, seed, run);
      const plan = runPlan(options, instruments, instance, run, bars, failed);
      const target = join(folder, runFolder(runs.length));
      await mkdir(target, privateFolder);
      const onBars = (rows: number, bars: number) => {
        watch.signal?.throwIfAborted();
        watch.onProgress?.(plan, rowsBefore + rows, (runs.length + bars / plan.barCount) / allRuns);
      };
      const done = await renderRun(plan, target, onBars);
      rowsBefore += Object.values(done.tables).reduce((sum, table) => sum + table.rows, 0);
      runs.push(done);
    }
  }
  await writeFile(
    join(folder, worldFile),
    `${JSON.stringify({ key, runs } satisfies WorldRecord)}
`,
    { mode: privateFile },
  );
}

function runPlan(
  options: SimulatorOptions,
  instruments: readonly InstrumentPlan[],
  instance: number,
  run: number,
  bars: BarSource,
  failed: boolean,
): RunPlan {
  const instanceId = instanceIdOf(instance);
  return {
    instanceId,
    runId: runIdOf(options, bars.firstCloseMicros, run),
    seed: seedOf(options, instance, run),
    bars,
    barCount: failed ? Math.max(2, Math.floor((bars.count * 3) / 5)) : bars.count,
    failed,
    fills: options.fills,
    instruments,
    venue: options.venue,
    account: options.account,
    portfolio: options.portfolio,
    currencies: options.currencies,
    accounting: options.accounting,
    edge: Math.round(options.edge * 100),
    transfers: options.transfers,
    fundingMicros: options.fundingMs * 1000,
    strategy,
    lotDecimals: Math.min(3, 9 - bars.tickDecimals),
    initialCash,
    largeSeq: instance % 2 === 1,
    fault: bookFaultOf(options.bookFaults, instanceId),
  };
}

/**
 * The plan of a run that begins at an instant of the clock, in addition to those rendered with the world: at most a day
 * long, on bars generated for it, or the file's bars moved to the instant.
 */
export async function planOfBegunRun(
  options: SimulatorOptions,
  instruments: readonly InstrumentPlan[],
  instance: number,
  run: number,
  startMicros: number,
): Promise<RunPlan> {
  const ofADay = Math.min(dayMinutes, Math.max(leastBars, barsForRows(options)));
  const bars =
    options.bars === undefined
      ? generatedBars({
          seed: seedOf(options, instance, run),
          count: ofADay,
          startMicros,
          tickDecimals: generatedTickDecimals,
          anchorTicks: generatedAnchorTicks,
        })
      : movedBars(await csvBars(options.bars), startMicros);
  const plan = runPlan(options, instruments, instance, run, bars, false);
  return { ...plan, barCount: Math.min(dayMinutes, bars.count), fills: undefined, fault: undefined };
}

function seedOf(options: SimulatorOptions, instance: number, run: number): string {
  return `${options.seed}/${instance}/${run}`;
}

function barsWanted(options: SimulatorOptions): number {
  const wanted =
    options.fills === undefined
      ? barsForRows(options)
      : Math.min(200_000, Math.ceil(options.fills / fillsPerBar));
  return Math.max(leastBars, wanted);
}

function barsForRows({ rows, symbols }: SimulatorOptions): number {
  return Math.ceil(rows / (rowsPerBar * symbols));
}

function daysOf(bars: number): number {
  return Math.ceil(bars / dayMinutes);
}

function barsToGenerate(options: SimulatorOptions, seed: string, run: number): BarSource {
  const count = barsWanted(options);
  return generatedBars({
    seed,
    count,
    startMicros: startMicrosOf(options, run, daysOf(count)),
    tickDecimals: generatedTickDecimals,
    anchorTicks: generatedAnchorTicks,
  });
}

/** A hash of everything that the bytes depend on, including the contents of a file of bars. */
async function worldKey(options: SimulatorOptions, symbol: string): Promise<string> {
  const { clock: _clock, cacheDir: _cacheDir, faults: _faults, bars, ...rest } = options;
  const { currencies, symbols, accounting, edge, transfers, fundingMs, bookFaults, ...common } = rest;
  const sorted = Object.entries({
    ...common,
    currency: currencies[0],
    symbol,
    bars: bars === undefined ? "" : await hashOfFile(bars),
    renderVersion,
    // a world without these options keeps its old key
    ...(currencies.length === 1 ? {} : { currencies }),
    ...(symbols === 1 ? {} : { symbols }),
    ...(accounting === "spot" ? {} : { accounting }),
    ...(edge === 0 ? {} : { edge }),
    ...(transfers === 0 ? {} : { transfers }),
    ...(fundingMs === 0 ? {} : { fundingMs }),
    ...(bookFaults.length === 0 ? {} : { bookFaults: bookFaults.map(({ kind, target }) => [kind, target]) }),
  })
    .filter(([, value]) => value !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash("sha256").update(JSON.stringify(sorted)).digest("hex").slice(0, 32);
}

async function hashOfFile(file: string): Promise<string> {
  const hash = createHash("sha256");
  try {
    for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  } catch (thrown) {
    throw new RunvaultError("invalid_argument", `cannot read bars: ${(thrown as Error).message}`, {
      cause: thrown,
      place: { file },
      hint: "Name a CSV or CSV.gz file that the current user may read.",
    });
  }
  return hash.digest("hex");
}

/** The record of a world if all its files are complete; otherwise undefined, and it is rendered again. */
async function readWorld(folder: string, key: string): Promise<WorldRecord | undefined> {
  let record: WorldRecord;
  try {
    record = JSON.parse(await readFile(join(folder, worldFile), "utf8")) as WorldRecord;
    for (const [position, run] of record.runs.entries()) {
      for (const table of tableNames) {
        const data = await stat(join(folder, runFolder(position), dataFileName(table)));
        await stat(join(folder, runFolder(position), indexFileName(table)));
        if (data.size !== run.tables[table].bytes) return undefined;
      }
    }
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === "ENOENT" || thrown instanceof SyntaxError)
      return undefined;
    throw RunvaultError.from(thrown, { place: { file: folder } });
  }
  return record.key === key ? record : undefined;
}

async function renameUnlessThere(aside: string, folder: string): Promise<void> {
  try {
    await rename(aside, folder);
  } catch (thrown) {
    const code = (thrown as NodeJS.ErrnoException).code;
    if (code !== "ENOTEMPTY" && code !== "EEXIST")
      throw RunvaultError.from(thrown, { place: { file: folder } });
    // another process was first, or an incomplete world is replaced by the new one
    const there = await readWorld(folder, basename(folder));
    if (there !== undefined) return;
    await rm(folder, { recursive: true, force: true });
    await rename(aside, folder);
  }
}

async function removeAbandoned(cacheDir: string): Promise<void> {
  for (const name of await readdir(cacheDir)) {
    if (!name.endsWith(".part")) continue;
    const path = join(cacheDir, name);
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Number.POSITIVE_INFINITY }));
    if (Date.now() - mtimeMs > abandonedMs) await rm(path, { recursive: true, force: true });
  }
}

function runFolder(position: number): string {
  return `run-${position}`;
}

function symbolOf(file: string): string {
  return basename(file)
    .replace(/\.gz$/, "")
    .replace(/\.csv$/, "")
    .toUpperCase()
    .replace(/[^A-Z0-9._-]/g, "-");
}

/** The paths of a table's lines and index. */
export function tableFiles(
  run: WorldRun,
  table: TableName,
): { readonly data: string; readonly index: string } {
  return { data: join(run.folder, dataFileName(table)), index: join(run.folder, indexFileName(table)) };
}
