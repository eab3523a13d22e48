import { alignedTable } from "../../analytics/render/aligned-table.ts";
import { openArchive } from "../../archive/archive.ts";
import { acceptanceJson, acceptanceOf, acceptanceText } from "../../archive/manifest/acceptance.ts";
import { acceptedAside, attemptReason, attemptText } from "../../archive/manifest/attempt-text.ts";
import { consistentRuns, type FoundRun } from "../../archive/manifest/found-runs.ts";
import type { Manifest, TableManifest, TableState } from "../../archive/manifest/manifest.ts";
import { committedBytes } from "../../archive/manifest/manifest-files.ts";
import { throughWords } from "../../archive/manifest/through-words.ts";
import { type PendingWork, pendingWork } from "../../archive/write/pending-work.ts";
import { RunvaultError, worstExit } from "../../model/error.ts";
import { formatRun } from "../../model/run-argument.ts";
import type { RunRef } from "../../model/source.ts";
import { byteText } from "../../model/text/byte-text.ts";
import { grouped } from "../../model/text/number-text.ts";
import { countText, plural } from "../../model/text/plural.ts";
import { visible } from "../../model/text/visible-text.ts";
import { formatTime } from "../../model/time.ts";
import { instanceNotArchived } from "../../model/usual-errors.ts";
import { pendingJson, pendingLine } from "../archive/pending-told.ts";
import { type CommandToCopy, commandsToCopy } from "../output/command-to-copy.ts";
import { fitColumns } from "../output/fit-columns.ts";
import { fitNames } from "../output/fit-names.ts";
import { wrapLines } from "../output/wrap-lines.ts";
import type { Session } from "../process/session.ts";

/** Values of `--state`: states of committed runs, runs with uncommitted work, and unreadable manifests. */
export type ListedState = TableState | "pending" | "damaged";

interface Values {
  readonly archive: string;
  readonly scratch?: string | undefined;
  readonly state?: readonly ListedState[] | undefined;
  readonly wide: boolean;
}

/** A listed run. Its manifest, which names every file, is not kept. */
interface ListedRun extends RunRef {
  readonly state: ListedState;
  readonly status: string | null;
  readonly started: string | null;
  readonly ended: string | null;
  /** Rows that readers show. */
  readonly rows: number;
  readonly bytes: number;
  readonly generation: number | null;
  readonly committedAt: string | null;
  readonly pending: PendingWork | null;
  readonly tables: Readonly<Record<string, ReturnType<typeof tableJson>>>;
  /** Lines that say which tables are behind, and why. */
  readonly told: readonly string[];
}

/** Lists the runs of an archive or of one instance. An unreadable manifest hides only its own run. */
export async function listRuns(
  instanceId: string | undefined,
  values: Values,
  session: Session,
): Promise<number> {
  const archive = await openArchive(values.archive, { scratch: values.scratch });
  // throws if a folder is a link
  await archive.manifestFiles();
  const statuses: number[] = [];
  const pendings = await pendingWork(archive, (error) => statuses.push(session.failure(error)));
  const work = new Map(
    pendings
      .filter((one) => instanceId === undefined || one.instanceId === instanceId)
      .map((one) => [formatRun(one), one]),
  );
  const runs: ListedRun[] = [];
  for await (const found of foundOf(archive, instanceId)) {
    const pending = work.get(formatRun(found.run)) ?? null;
    work.delete(formatRun(found.run));
    if (found.manifest !== null) runs.push(listedOf(found.manifest, pending));
    else {
      const { message, file, hint } = found.damage!;
      statuses.push(
        session.failure(new RunvaultError("archive_damaged", message, { place: { file }, hint })),
      );
      runs.push({ ...uncommitted(found.run, "damaged"), pending });
    }
  }
  for (const one of work.values()) runs.push({ ...uncommitted(one, "pending"), pending: one });
  if (runs.length === 0 && instanceId !== undefined) throw instanceNotArchived(instanceId);
  runs.sort((a, b) => order(a.instanceId, b.instanceId) || order(a.runId, b.runId));
  const { state } = values;
  const shown = state === undefined ? runs : runs.filter((run) => isIn(run, state));
  const command = commandsToCopy(values, session);
  await session.print(
    session.json
      ? `${JSON.stringify({ runs: shown.map((run) => runJson(run, command)) }, null, 2)}\n`
      : textOf(shown, runs.length, values, session),
  );
  return worstExit(statuses);
}

async function* foundOf(
  archive: Awaited<ReturnType<typeof openArchive>>,
  instanceId: string | undefined,
): AsyncGenerator<FoundRun> {
  try {
    yield* consistentRuns(archive, instanceId === undefined ? [] : [{ instanceId }]);
  } catch (error) {
    // a part of it may be pending
    if (!(error instanceof RunvaultError) || error.code !== "not_archived") throw error;
  }
}

function isIn({ state, pending }: ListedRun, wanted: readonly ListedState[]): boolean {
  return wanted.includes(state) || (pending !== null && wanted.includes("pending"));
}

function listedOf(manifest: Manifest, pending: PendingWork | null): ListedRun {
  const { instanceId, runId, state, run, generation, committedAt } = manifest;
  const tables = Object.entries(manifest.tables);
  return {
    instanceId,
    runId,
    state,
    status: run.status,
    started: timeOrNull(run.started),
    ended: timeOrNull(run.ended),
    rows: tables.reduce((sum, [, { proven }]) => sum + (proven?.certificate?.rows ?? 0), 0),
    bytes: committedBytes(manifest),
    generation,
    committedAt,
    pending,
    tables: Object.fromEntries(tables.map(([name, table]) => [name, tableJson(table)])),
    told: shortfallLines(manifest),
  };
}

function uncommitted({ instanceId, runId }: RunRef, state: "pending" | "damaged") {
  const nothing = { status: null, started: null, ended: null, generation: null, committedAt: null };
  return { instanceId, runId, state, ...nothing, rows: 0, bytes: 0, tables: {}, told: [] };
}

function tableJson(table: TableManifest) {
  const { state, proven, attempt } = table;
  const through = throughWords((proven ?? attempt.holding)?.through);
  return {
    state,
    proven: proven?.state ?? null,
    proof: proven?.certificate?.proof ?? null,
    rows: proven?.certificate?.rows ?? null,
    setAside: proven?.certificate?.quarantined ?? null,
    until: proven?.certificate?.until ?? null,
    behindSince: attempt.behindSince,
    error: attempt.error?.code ?? null,
    reason: attemptReason(table),
    accepted: acceptanceJson(table),
    // how the rows came, if not as the contract says
    ...(through.length === 0 ? {} : { through }),
  };
}

function runJson({ told: _, pending, ...run }: ListedRun, command: CommandToCopy) {
  return { ...run, pending: pending === null ? null : pendingJson(pending, command) };
}

/** A line for each table that is behind, or proven without the rows set aside. */
function shortfallLines(manifest: Manifest): string[] {
  return Object.entries(manifest.tables).flatMap(([name, table]) => {
    const aside = acceptedAside(table);
    const accepted = acceptanceOf(table);
    const attempt = attemptText(table);
    const told = [
      accepted === null ? attempt : `${attempt}; ${acceptanceText(accepted)}`,
      aside === 0 ? null : `${countText(aside, "row")} set aside, as the operator accepted`,
    ];
    return told
      .filter((text) => text !== null)
      .map((text) => `${visible(`${formatRun(manifest)}  ${name}: ${text}`)}\n`);
  });
}

/** A line for tables whose rows did not come as the contract says, one for all with the same reason. */
function throughLines(run: ListedRun): string[] {
  const tables = Object.entries(run.tables).filter(([, { through }]) => through !== undefined);
  const byWords = Map.groupBy(tables, ([, { through }]) => through!.join(", "));
  return [...byWords].map(
    ([words, alike]) =>
      `${visible(`${formatRun(run)}  ${alike.map(([name]) => name).join(", ")}: ${words}`)}\n`,
  );
}

function textOf(runs: readonly ListedRun[], inAll: number, values: Values, session: Session): string {
  if (runs.length === 0)
    return inAll === 0
      ? "no runs\n"
      : `no runs in these states; ${grouped(inAll)} ${plural(inAll, "run")} in other states\n`;
  const all = columnsFor(runs, values.wide).map((column) => ({ ...column, cells: runs.map(column.cell) }));
  const columns = values.wide ? all : fitColumns(all, session);
  const names = ["run", ...columns.map(({ name }) => name)];
  const right = [false, ...columns.map((column) => column.right === true)];
  const paint = (cell: string, column: string) => (column === "state" ? session.paint(cell) : cell);
  const tableWith = (shown: readonly string[]) =>
    alignedTable(
      names,
      shown.map((name, index) => [name, ...columns.map(({ cells }) => cells[index]!)]),
      right,
      paint,
    );
  const ids = runs.map(formatRun);
  const table = values.wide ? tableWith(ids) : fitNames(ids, tableWith, session);
  const command = commandsToCopy(values, session);
  const told = runs.flatMap((run) => [
    ...run.told,
    ...(values.wide ? throughLines(run) : []),
    ...(run.pending === null ? [] : [pendingLine(run.pending, command)]),
  ]);
  return told.length === 0 ? table : `${table}\n${wrapLines(told.join(""), session.terminal.columns)}`;
}

interface Column {
  readonly name: string;
  readonly right?: boolean;
  readonly cell: (run: ListedRun) => string;
}

/** The most useful columns, in 100 characters with names of usual length; with --wide all. */
function columnsFor(runs: readonly ListedRun[], wide: boolean): Column[] {
  const isAnyPending = runs.some(({ pending }) => pending !== null);
  const columns: (Column | false)[] = [
    { name: "state", cell: ({ state }) => state },
    wide && { name: "status", cell: ({ status }) => status ?? "" },
    { name: "rows", right: true, cell: ({ rows, generation }) => (generation === null ? "" : grouped(rows)) },
    {
      name: "size",
      right: true,
      cell: ({ bytes, generation }) => (generation === null ? "" : byteText(bytes)),
    },
    wide && { name: "started", cell: ({ started }) => started ?? "" },
    wide && { name: "ended", cell: ({ ended }) => ended ?? "" },
    wide
      ? { name: "committed", cell: ({ committedAt }) => committedAt ?? "" }
      : {
          name: "committed (UTC)",
          cell: ({ committedAt }) => committedAt?.slice(0, 16).replace("T", " ") ?? "",
        },
    wide && { name: "generation", right: true, cell: ({ generation }) => String(generation ?? "") },
    isAnyPending && {
      name: "pending",
      right: true,
      cell: ({ pending }) => (pending === null ? "" : byteText(pending.bytes)),
    },
  ];
  return columns.filter((column) => column !== false);
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function timeOrNull(ns: string | null): string | null {
  return ns === null ? null : formatTime(BigInt(ns));
}
