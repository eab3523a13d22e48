import type { Manifest } from "../../archive/manifest/manifest.ts";
import { RunvaultError } from "../../model/error.ts";
import type { TableName } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import { formatTime } from "../../model/time.ts";
import { Limit } from "../query/limit.ts";
import { type OpenViews, openViews } from "../query/open-views.ts";
import type { QueryArchive } from "../query/query-views.ts";
import { requireProven } from "../require-proven.ts";
import { createMacros } from "../sql/macros.ts";
import { type RunTrades, readRunTrades } from "../trades/run-trades.ts";
import { requireOverlap, writeBenchmark } from "./benchmark-prices.ts";
import {
  type MetricsDocument,
  type MetricsRun,
  type MetricsSection,
  metricsVersion,
} from "./metrics-document.ts";
import type { MetricsOptions } from "./metrics-options.ts";
import type { MeasuredRun, Section } from "./section.ts";
import { sections } from "./sections.ts";

export interface MeasureOptions extends MetricsOptions {
  /** Rows that are not proven, in place of an error. */
  readonly allowIncomplete: boolean;
  readonly memoryLimitMb: number;
  readonly signal?: AbortSignal | undefined;
  /** Told of each run once its figures are there, while the views still show its rows: for what else is read of it. */
  readonly onRun?: (measured: MeasuredRun, told: MetricsRun) => Promise<void>;
}

/**
 * The figures of runs. DuckDB has one thread, so that sums of doubles come in one order and the same archive gives the
 * same document. Throws `incomplete` where a table that they need is not proven and that is not allowed, and
 * `invalid_argument` where the benchmark or the instruments do not fit a run.
 */
export async function measureRuns(
  archive: QueryArchive,
  manifests: readonly Manifest[],
  options: MeasureOptions,
): Promise<MetricsDocument> {
  const { allowIncomplete, memoryLimitMb, signal } = options;
  const wanted = sections.filter((section) => section.isWanted(options));
  const tables = [...new Set(wanted.flatMap((section) => section.tables))];
  await using views = await openViews(archive, {
    readManifests: () => Promise.resolve(manifests),
    allowIncomplete,
    memoryLimitMb,
    threads: 1,
    signal,
  });
  if (!allowIncomplete) requireProven(views.shortfall(tables), "figures need rows that are proven");
  using limit = new Limit(views.connection, undefined, signal);
  try {
    await views.show(tables, signal);
    await createMacros(views.connection);
    if (options.benchmark?.kind === "prices")
      await writeBenchmark(views.connection, options.benchmark.prices);
    const runs: MetricsRun[] = [];
    for (const manifest of manifests) {
      signal?.throwIfAborted();
      const run = { instanceId: manifest.instanceId, runId: manifest.runId };
      for (const table of tables) await views.showOnly(table, run);
      const measured: MeasuredRun = {
        ...{ run, manifest, views, connection: views.connection },
        ...{ exactTypes: archive.exactTypes, options, trades: once(() => tradesOf(measured)) },
      };
      await requireOverlap(measured);
      const told = await measureRun(measured, wanted, views);
      await options.onRun?.(measured, told);
      runs.push(told);
    }
    return { version: metricsVersion, options: toldOptions(options), runs };
  } catch (error) {
    throw limit.reason() ?? (error instanceof RunvaultError ? error : await views.errorOf(error));
  }
}

async function measureRun(
  measured: MeasuredRun,
  wanted: readonly Section[],
  views: OpenViews,
): Promise<MetricsRun> {
  const { manifest, run } = measured;
  const { horizon, state } = manifest;
  const own: MetricsSection[] = [];
  for (const section of wanted) own.push(await readSection(section, measured));
  const { unproven, withheld } = views.shortfall([...new Set(wanted.flatMap(({ tables }) => tables))]);
  return {
    instance: run.instanceId,
    run: run.runId,
    state,
    until: manifest.run.final || horizon === null ? null : formatTime(BigInt(horizon)),
    unproven: [...unproven, ...withheld]
      .filter((table) => table.state !== null && isOf(table, run))
      .map((table) => `${table.table} (${table.state})`),
    sections: own,
  };
}

async function readSection(section: Section, measured: MeasuredRun): Promise<MetricsSection> {
  const { options, manifest, run } = measured;
  const absent = absenceOf(manifest, section.tables[0]);
  const head = { name: section.name, title: section.title, conventions: section.conventions(options) };
  if (absent !== null) return { ...head, absent, notes: [], groups: [] };
  try {
    const { groups, notes } = await section.read(measured);
    // copied: the document has arrays of its own
    return {
      ...head,
      absent: null,
      notes: [...notes],
      groups: groups.map((group) => ({ ...group, parts: [...group.parts] })),
    };
  } catch (error) {
    throw error instanceof RunvaultError ? error.at({ instance: run.instanceId, run: run.runId }) : error;
  }
}

/** Calls back once, and gives the same answer from then on. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

function tradesOf({ views, exactTypes, run, options }: MeasuredRun): Promise<RunTrades> {
  const { instruments, group } = options;
  return readRunTrades(views, exactTypes, run, { instruments, withOrders: group === "order" });
}

/** Why there is nothing of a table; null where there may be rows. */
function absenceOf(manifest: Manifest, table: TableName): string | null {
  const state = manifest.tables[table]?.state;
  if (state === undefined) return `${table} was never archived for this run`;
  return state === "ABSENT" ? `the gateway keeps no ${table} of this run` : null;
}

function isOf(table: { readonly instance: string; readonly run: string }, run: RunRef): boolean {
  return table.instance === run.instanceId && table.run === run.runId;
}

function toldOptions(options: MeasureOptions): MetricsDocument["options"] {
  const { session, fill, periods, rf, log, base, benchmark, group, window, instruments, allowIncomplete } =
    options;
  return {
    ...{ session, fill, periods, rf, log, base },
    benchmark:
      benchmark === null ? null : benchmark.kind === "symbol" ? benchmark.symbol : benchmark.prices.file,
    ...{ group, window, instruments: instruments?.file ?? null, allowIncomplete },
  };
}
