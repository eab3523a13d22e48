import type { Archive } from "../../archive/archive.ts";
import { openArchiveSource } from "../../archive/read/archive-source.ts";
import { RunvaultError } from "../../model/error.ts";
import { formatScaled } from "../../model/fixed-point.ts";
import type { TableName } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import { countText } from "../../model/text/plural.ts";
import { openViews } from "../query/open-views.ts";
import type { Shortfall, TableOfRun } from "../shortfall.ts";
import type { BooksSource } from "./books-source.ts";
import { type BooksOptions, checkBooks } from "./check-books.ts";
import { checkMetrics } from "./check-metrics.ts";
import { checkOrders } from "./check-orders.ts";
import { checkSummary } from "./check-summary.ts";
import { manifestOf, requireProvenBooks, whyLacking } from "./proven-tables.ts";
import { judged, type ReconciledRun, type ReconcileReport, verdictOf } from "./reconcile-report.ts";

export interface ReconcileOptions extends BooksOptions {
  /** Uses unproven rows instead of throwing an error. */
  readonly allowIncomplete?: boolean;
  readonly memoryLimitMb: number;
  readonly signal?: AbortSignal;
}

/** The tables that are reconciled. */
export const reconciledTables = [
  "fills",
  "orders",
  "bars",
  "equity",
  "metrics",
  "events",
] as const satisfies readonly TableName[];

/**
 * Reconciles runs of an archive: the figures that the gateway reported against its rows. Throws
 * `run_not_found` for a run that the archive does not have, `incomplete` if a table of one is not proven, and what the
 * resolving of instruments throws.
 */
export async function reconcile(
  archive: Archive,
  runs: readonly RunRef[],
  options: ReconcileOptions,
): Promise<{ readonly report: ReconcileReport; readonly shortfall: Shortfall }> {
  const manifests = await Promise.all(runs.map((run) => manifestOf(archive, run)));
  if (!options.allowIncomplete)
    for (const manifest of manifests) requireProvenBooks(manifest, reconciledTables);
  const { memoryLimitMb, signal } = options;
  // one thread: the pass takes most of the time, and statistics are the same every time
  await using views = await openViews(archive, {
    readManifests: async () => manifests,
    allowIncomplete: options.allowIncomplete ?? false,
    memoryLimitMb,
    threads: 1,
    signal,
  });
  const documents = openArchiveSource(archive);
  const reconciled: ReconciledRun[] = [];
  try {
    await views.show(reconciledTables, signal);
    for (const manifest of manifests) {
      signal?.throwIfAborted();
      const run = { instanceId: manifest.instanceId, runId: manifest.runId };
      const source: BooksSource = {
        run,
        started: manifest.run.started === null ? null : BigInt(manifest.run.started),
        isFinal: manifest.run.final,
        connection: views.connection,
        showOnly: (name, of) => views.showOnly(name, of),
        exactTypes: (table) => archive.exactTypes(table),
        lacking: (table) => whyLacking(manifest, table),
      };
      const books = await checkBooks(source, options);
      const { points, moves } = books;
      const findings = [
        ...books.findings,
        await checkOrders(source),
        await checkMetrics(source, points, moves),
        await checkSummary(
          source,
          await documents.document(run, "summary"),
          points,
          moves,
          options.tolerance,
        ),
      ];
      const { unproven, doubts } = doubtsOf(views.shortfall(reconciledTables), run);
      const checks = findings.map((finding) => {
        const own = restsOn[finding.number]!.flatMap((table) => doubts.get(table) ?? []);
        return judged({ ...finding, unchecked: [...finding.unchecked, ...own] });
      });
      reconciled.push({
        instance: run.instanceId,
        run: run.runId,
        verdict: verdictOf(checks),
        unproven: [...unproven],
        tolerance:
          options.tolerance === null ? "0" : formatScaled(options.tolerance.value, options.tolerance.scale),
        accounting: books.accounting,
        costs: books.costs,
        fillOrder: books.order,
        instruments: [...books.instruments],
        checks,
      });
    }
  } catch (error) {
    if (error instanceof RunvaultError) throw error;
    throw await views.errorOf(error);
  }
  return { report: { version: 1, runs: reconciled }, shortfall: views.shortfall(reconciledTables) };
}

/** The tables that each check uses, by its number. */
const restsOn: Readonly<Record<number, readonly (typeof reconciledTables)[number][]>> = {
  1: ["equity"],
  2: ["equity", "fills", "events", "bars"],
  3: ["equity", "fills", "events", "bars"],
  4: ["equity", "fills", "events", "bars"],
  5: ["equity", "fills", "bars"],
  6: ["orders", "fills"],
  7: ["metrics", "equity", "events"],
  8: ["orders", "fills", "equity", "events"],
};

/** Tables of a run that may lack rows: checks that hold for others may not hold for these. */
function doubtsOf({ unproven, withheld, setAside }: Shortfall, run: RunRef) {
  const isOwn = ({ instance, run: of }: TableOfRun) => instance === run.instanceId && of === run.runId;
  const notProven = [...unproven, ...withheld].filter((table) => isOwn(table) && table.state !== null);
  const doubts = new Map<TableName, string>();
  for (const { table, rows } of setAside.filter(isOwn))
    doubts.set(table, `${countText(rows, "row")} of ${table} ${rows === 1 ? "was" : "were"} set aside`);
  for (const { table, state } of notProven)
    if (!doubts.has(table)) doubts.set(table, `${table} is ${state}: rows may be missing`);
  return { unproven: notProven.map(({ table, state }) => `${table} (${state})`), doubts };
}
