import type { Manifest } from "../../archive/manifest/manifest.ts";
import { Disposables } from "../../model/disposables.ts";
import { RunvaultError } from "../../model/error.ts";
import type { TableName } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import { formatTime } from "../../model/time.ts";
import { benchmarkBars, requireOverlap, writeBenchmark } from "../performance/benchmark-prices.ts";
import { Limit } from "../query/limit.ts";
import { type OpenViews, openViews } from "../query/open-views.ts";
import type { QueryArchive } from "../query/query-views.ts";
import type { BooksSource } from "../reconcile/books-source.ts";
import { findFillOrder } from "../reconcile/find-fill-order.ts";
import { type LackingTable, refusalOf } from "../require-proven.ts";
import type { MetricsOptions } from "../section/metrics-options.ts";
import { type MeasuredRun, NothingToSay, type Section, tablesOf } from "../section/section.ts";
import { createTotalViews } from "../section/total-views.ts";
import { type MacroName, macroNames } from "../sql/macro-names.ts";
import { createMacros } from "../sql/macros.ts";
import { type RunTrades, readRunTrades } from "../trades/run-trades.ts";
import {
  type MetricsDocument,
  type MetricsRun,
  type MetricsSection,
  metricsVersion,
} from "./metrics-document.ts";
import { samplePoints } from "./sampled-points.ts";
import { sections } from "./sections.ts";

export interface MeasureOptions extends MetricsOptions {
  /** Uses unproven rows instead of throwing an error. */
  readonly allowIncomplete: boolean;
  readonly memoryLimitMb: number;
  readonly signal?: AbortSignal | undefined;
  /**
   * Called, instead of an error, if some sections need unproven tables: these say so, and the others remain. The result
   * must not look complete.
   */
  readonly onRefused?: (error: RunvaultError) => void;
  /** Called for each run when its figures are ready, while the views still show its rows, to read more of it. */
  readonly onRun?: (measured: MeasuredRun, told: MetricsRun) => Promise<void>;
}

/**
 * The figures of runs. DuckDB has one thread, so that sums of doubles are in a fixed order and the same archive gives
 * the same document. Throws `incomplete` if a needed table is not proven and that is not allowed, unless `onRefused` is
 * given and some section remains; and `invalid_argument` if the benchmark or the instruments file does not fit a run.
 * If instruments are unclear without such a file, or the rows do not say whose a deposit is, the affected sections say
 * so.
 */
export async function measureRuns(
  archive: QueryArchive,
  manifests: readonly Manifest[],
  options: MeasureOptions,
): Promise<MetricsDocument> {
  const { allowIncomplete, memoryLimitMb, signal } = options;
  const wanted = sections.filter((section) => section.isWanted(options));
  const tables = [...new Set(wanted.flatMap((section) => tablesOf(section, options)))];
  await using views = await openViews(archive, {
    readManifests: () => Promise.resolve(manifests),
    allowIncomplete,
    memoryLimitMb,
    threads: 1,
    signal,
  });
  const refused = allowIncomplete
    ? null
    : refusalOf(views.shortfall(tables), "figures need rows that are proven");
  if (refused !== null && options.onRefused === undefined) throw refused.error;
  using limit = new Limit(views.connection, undefined, signal);
  try {
    await views.show(tables, signal);
    await createMacros(views.connection, calledMacros(manifests));
    if (options.benchmark?.kind === "prices")
      await writeBenchmark(views.connection, options.benchmark.prices);
    if (options.rates !== null) await createTotalViews(views.connection, options.rates);
    const runs: MetricsRun[] = [];
    for (const manifest of manifests) {
      signal?.throwIfAborted();
      const run = { instanceId: manifest.instanceId, runId: manifest.runId };
      for (const table of tables) await views.showOnly(table, run);
      const lacking = (refused?.tables ?? []).filter((table) => isOf(table, run));
      const isCompared = !lacking.some(({ table }) => table === "bars");
      const measured: MeasuredRun = {
        ...{ run, manifest, views, connection: views.connection },
        ...{ exactTypes: archive.exactTypes, options, trades: once(() => tradesOf(measured)) },
        benchmarkBars: isCompared ? await benchmarkBars(views.connection, run, options) : null,
      };
      const hasSeries = !lacking.some(({ table }) => table === "equity" || table === "events");
      await using sampled = new Disposables();
      // with rates, sections read the series of all accounts together, too
      const sample = async () => {
        if (hasSeries) sampled.use(await samplePoints(measured));
      };
      if (options.rates === null) await whereClear(sample);
      if (isCompared) await whereClear(() => requireOverlap(measured));
      const told = await measureRun(measured, wanted, { views, lacking });
      if (options.rates !== null && options.onRun !== undefined) await whereClear(sample);
      await options.onRun?.(measured, told);
      runs.push(told);
    }
    if (refused !== null) {
      const stands = runs.some((run) => run.sections.some(({ absent }) => absent === null));
      if (!stands) throw refused.error;
      options.onRefused?.(refused.error);
    }
    return { version: metricsVersion, options: toldOptions(options), runs };
  } catch (error) {
    throw limit.reason() ?? (error instanceof RunvaultError ? error : await views.errorOf(error));
  }
}

/** Macros that some section may call: those of orders and of factors are called where a run has such rows. */
function calledMacros(manifests: readonly Manifest[]): readonly MacroName[] {
  return (Object.keys(macroNames) as MacroName[]).filter((name) => {
    const [table] = macroNames[name];
    return table === "equity" || manifests.some((manifest) => absenceOf(manifest, table) === null);
  });
}

async function measureRun(
  measured: MeasuredRun,
  wanted: readonly Section[],
  { views, lacking }: { readonly views: OpenViews; readonly lacking: readonly LackingTable[] },
): Promise<MetricsRun> {
  const { manifest, run, options } = measured;
  const { horizon, state } = manifest;
  const own: MetricsSection[] = [];
  for (const section of wanted) own.push(await readSection(section, measured, lacking));
  const { unproven, withheld } = views.shortfall(wanted.flatMap((section) => tablesOf(section, options)));
  return {
    instance: run.instanceId,
    run: run.runId,
    state,
    until: manifest.run.final || horizon === null ? null : formatTime(BigInt(horizon)),
    unproven: [...unproven, ...withheld]
      .filter((table) => table.state !== null && isOf(table, run))
      .filter(({ table }) => !lacking.some((one) => one.table === table))
      .map(({ table, state }) => `${table} (${state})`),
    refused: lacking.map(({ table, state }) => `${table} (${state})`),
    sections: own,
  };
}

async function readSection(
  section: Section,
  measured: MeasuredRun,
  lacking: readonly LackingTable[],
): Promise<MetricsSection> {
  const { options, manifest, run } = measured;
  const absent = absenceOf(manifest, section.tables[0]) ?? unprovenOf(section, options, lacking);
  const head = { name: section.name, title: section.title, conventions: section.conventions(options) };
  if (absent !== null) return { ...head, absent, notes: [], groups: [] };
  try {
    const { groups, notes } = await section.read(measured);
    // copied, because the document has its own arrays
    return {
      ...head,
      absent: null,
      notes: [...notes],
      groups: groups.map((group) => ({ ...group, parts: [...group.parts] })),
    };
  } catch (error) {
    if (error instanceof NothingToSay) return { ...head, absent: error.message, notes: [], groups: [] };
    throw error instanceof RunvaultError ? error.at({ instance: run.instanceId, run: run.runId }) : error;
  }
}

/** Runs preparation that sections can do without: if it has nothing to say, each section says why. */
async function whereClear(body: () => Promise<void>): Promise<void> {
  try {
    await body();
  } catch (error) {
    if (!(error instanceof NothingToSay)) throw error;
  }
}

/** Calls `make` once, and returns the same promise from then on. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** Throws `NothingToSay` if the instruments are unclear, unless a file was given that should define them. */
async function tradesOf({ views, exactTypes, run, manifest, options }: MeasuredRun): Promise<RunTrades> {
  const { instruments, group, fillOrder } = options;
  try {
    const source: BooksSource = {
      ...{ run, exactTypes, connection: views.connection, isFinal: manifest.run.final, started: null },
      showOnly: (table, of) => views.showOnly(table, of),
      lacking: (table) => absenceOf(manifest, table),
    };
    const order =
      fillOrder === "auto" ? ((await findFillOrder(source, { instruments })) ?? "key") : fillOrder;
    return await readRunTrades(views, exactTypes, run, { instruments, order, withOrders: group === "order" });
  } catch (error) {
    const isUnclear =
      error instanceof RunvaultError && error.code === "invalid_argument" && instruments === null;
    throw isUnclear ? new NothingToSay(`${error.message}. ${error.hint}`) : error;
  }
}

/** Why a table has no rows; null if it may have some. */
function absenceOf(manifest: Manifest, table: TableName): string | null {
  const state = manifest.tables[table]?.state;
  if (state === undefined) return `${table} was never archived for this run`;
  return state === "ABSENT" ? `the gateway keeps no ${table} of this run` : null;
}

/** Says that a section's rows are not proven; null if they are. */
function unprovenOf(
  section: Section,
  options: MetricsOptions,
  lacking: readonly LackingTable[],
): string | null {
  const own = lacking.filter(({ table }) => tablesOf(section, options).includes(table));
  if (own.length === 0) return null;
  return `needs rows that are not proven: ${own.map(({ table, state }) => `${table} (${state})`).join(", ")}`;
}

function isOf(table: { readonly instance: string; readonly run: string }, run: RunRef): boolean {
  return table.instance === run.instanceId && table.run === run.runId;
}

function toldOptions(options: MeasureOptions): MetricsDocument["options"] {
  const { session, fill, periods, rf, log, base, benchmark, group, window, instruments, allowIncomplete } =
    options;
  const { psrBenchmark, omegaReturn, fillOrder, rates, bookAgeMs, horizons } = options;
  return {
    ...{ session, fill, periods, rf, log, base },
    rates: rates?.file ?? null,
    benchmark:
      benchmark === null ? null : benchmark.kind === "symbol" ? benchmark.symbol : benchmark.prices.file,
    ...{
      psrBenchmark,
      omegaReturn,
      group,
      fillOrder,
      window,
      instruments: instruments?.file ?? null,
      bookAge: `${bookAgeMs / 1_000}s`,
      horizons: [...horizons],
      allowIncomplete,
    },
  };
}
