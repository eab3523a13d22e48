import { RunvaultError } from "../../model/error.ts";
import { type TableName, tableNamed } from "../../model/profile/table.ts";
import { formatRun } from "../../model/run-argument.ts";
import type { RunRef } from "../../model/source.ts";
import { isoOf, type Nanoseconds, parseTime } from "../../model/time.ts";
import { notArchived } from "../../model/usual-errors.ts";
import type { Archive } from "../archive.ts";
import { lockRun } from "../lock.ts";
import { acceptanceOf } from "../manifest/acceptance.ts";
import type { Acceptance, Manifest, TableManifest } from "../manifest/manifest.ts";
import { latestView } from "../manifest/table-view.ts";
import { typesNow } from "../types-now.ts";
import { commitRun, tidyCommitted } from "./commit.ts";
import { refuseFetchedWork } from "./refuse-fetched-work.ts";
import { holdsCommittedWork, RunJournal, type Step } from "./run-journal.ts";

export interface AcceptTable {
  readonly archive: Archive;
  readonly run: RunRef;
  readonly table: TableName;
  /** Who accepts it, and why; null undoes the acceptance. */
  readonly word: Pick<Acceptance, "by" | "reason"> | null;
  readonly clock: () => Nanoseconds;
  /** Version of this program, for the manifest. */
  readonly tool: string;
  readonly step?: Step;
}

export interface AcceptedTable {
  readonly manifest: Manifest;
  readonly table: TableManifest;
}

/**
 * Commits the operator's acceptance of an unproven table, or undoes it. Nothing else in the run changes. Throws
 * `not_archived`; `table_unknown` and `invalid_argument` if there is nothing to accept or undo; `locked` if a job is
 * working on the run, or left fetched rows that are not committed.
 */
export async function acceptTable(asked: AcceptTable): Promise<AcceptedTable> {
  const { archive, run, table: name, word, clock, tool, step = () => {} } = asked;
  // before the lock: its file would be the only trace of a misspelt run
  wordOn(await committedOf(archive, run), asked);
  await using _lock = await lockRun(archive.layout, run);
  await archive.refresh();
  const committed = await committedOf(archive, run);
  const table = wordOn(committed, asked);
  // a kill came between the commit and the end of its job
  if (await holdsCommittedWork(archive.layout, run, committed))
    await tidyCommitted(archive, committed, clock());
  await refuseFetchedWork(archive, committed);
  const { layout, store } = archive;
  const storageVersion = committed.run.final ? committed.run.storageVersion : null;
  const work = { layout, store, run: committed, committed, storageVersion, final: committed.run.final };
  await using journal = await RunJournal.open({ ...work, exactTypes: typesNow(archive) }, step);
  const at = isoOf(clock());
  const { accepted: _, ...before } = table;
  const next =
    word === null ? before : { ...before, accepted: { at, ...word, ...basisOf(committed, table) } };
  const manifest: Manifest = {
    ...committed,
    generation: journal.generation,
    tables: { ...committed.tables, [name]: next },
    tool,
    committedAt: at,
  };
  await commitRun(archive, manifest, journal, step);
  await journal.remove();
  step("pending-removed");
  return { manifest, table: next };
}

async function committedOf(archive: Archive, run: RunRef): Promise<Manifest> {
  const committed = await archive.manifest(run);
  if (committed === null) throw notArchived(run);
  return committed;
}

/** The table to accept. */
function wordOn(
  committed: Manifest,
  { table: name, word }: Pick<AcceptTable, "table" | "word">,
): TableManifest {
  const { instanceId: instance, runId: run } = committed;
  const place = { instance, run, table: tableNamed(name).name };
  const table = committed.tables[name];
  if (table === undefined) {
    throw new RunvaultError("table_unknown", `the run was archived without ${name}`, {
      place,
      hint: `Archived of it: ${Object.keys(committed.tables).join(", ")}.`,
    });
  }
  if (word === null) {
    if (acceptanceOf(table) !== null) return table;
    throw new RunvaultError("invalid_argument", `${name} of this run is not accepted`, {
      place,
      hint: "`runvault runs` shows what is accepted and by whom.",
    });
  }
  if (table.attempt.outcome !== "ok") return table;
  throw new RunvaultError(
    "invalid_argument",
    `${name} of this run is ${table.state}: only a QUARANTINED, UNVERIFIED or INCOMPLETE table can be accepted as it is`,
    { place, hint: `\`runvault runs\` shows what is wrong with ${formatRun(committed)}, if anything.` },
  );
}

/** What is accepted, in a form that shows later whether it has changed. */
function basisOf(
  { run, startedAt }: Manifest,
  table: TableManifest,
): Pick<Acceptance, "attemptAt" | "outcome" | "final" | "storageVersion" | "gatewayRows"> {
  const { attempt } = table;
  // a job that skipped this table may have seen a newer version
  const isOfLastJob = parseTime(attempt.at) >= parseTime(startedAt);
  return {
    attemptAt: attempt.at,
    outcome: attempt.outcome as Acceptance["outcome"],
    final: run.final,
    storageVersion: isOfLastJob ? run.storageVersion : (attempt.holding?.storageVersion ?? null),
    gatewayRows: latestView(table).certificate?.gatewayRows ?? null,
  };
}
