import { type Archive, openArchive } from "../../archive/archive.ts";
import type { Step } from "../../archive/write/run-journal.ts";
import {
  plainRebuild,
  profileRebuild,
  type RebuildWork,
  type RebuiltRun,
  type RebuiltRuns,
  rebuildRuns,
  wideningRebuild,
} from "../../extract/rebuild/rebuild-runs.ts";
import type { WantedTypes } from "../../extract/rebuild/widened-types.ts";
import type { RunWatcher } from "../../extract/run-watcher.ts";
import { exit, worstExit } from "../../model/error.ts";
import { hasExtraColumn, keptInSegments } from "../../model/profile/extra-column.ts";
import { isIdentityMap } from "../../model/profile/identity-map.ts";
import { type TableName, tableNames } from "../../model/profile/table.ts";
import { formatRun } from "../../model/run-argument.ts";
import type { RunRef } from "../../model/source.ts";
import { grouped, tookText } from "../../model/text/number-text.ts";
import { countText, plural } from "../../model/text/plural.ts";
import { visible } from "../../model/text/visible-text.ts";
import { version } from "../../model/version.ts";
import { manifestsOf } from "../list/manifests-of.ts";
import { type CommandToCopy, commandsToCopy } from "../output/command-to-copy.ts";
import type { Session } from "../process/session.ts";
import { appliedProfile } from "./applied-profile.ts";
import { killStep } from "./kill-step.ts";

interface Values {
  readonly archive: string;
  readonly scratch?: string | undefined;
  readonly tables?: readonly TableName[] | undefined;
  readonly widen?: WantedTypes | undefined;
  /** File of the profile that is applied to the rows. */
  readonly profile?: string | undefined;
}

/** With its exit status. */
interface RunReport extends RebuiltRun {
  readonly exit: number;
}

/** The result for all runs. */
interface Result extends Omit<RebuiltRuns, "error"> {
  readonly reports: readonly RunReport[];
  readonly exit: number;
}

/** Rebuilds the named runs, or all, one after another. A failing run does not stop the others. */
export async function reportRebuild(
  runs: readonly RunRef[],
  values: Values,
  session: Session,
): Promise<number> {
  const archive = await openArchive(values.archive, { scratch: values.scratch });
  const step = killStep(session.terminal.env);
  const work = await workOf(archive, runs, values, step);
  if (work.since !== null) session.note(`continuing the rebuild of ${work.since}`);
  const result = await rebuildAndTell(archive, work, step, session);
  if (result.reports.some(({ outcome }) => outcome?.changed))
    for (const table of lackingExtra(archive, work)) session.note(session.toCopy(keptInSegments(table)));
  const { unfinished } = result;
  const command = commandsToCopy(values, session);
  const goOn = unfinished.length === 0 ? null : commandToGoOn(archive, unfinished, command);
  if (session.json) {
    const { reports, ...rest } = result;
    await session.print(`${JSON.stringify({ ...rest, goOn, runs: reports.map(jsonOf) }, null, 2)}\n`);
  } else {
    const rest = restText(result, goOn);
    if (rest !== "") await session.print(rest);
  }
  return result.exit;
}

async function workOf(
  archive: Archive,
  runs: readonly RunRef[],
  { profile, tables, widen }: Values,
  step: Step,
): Promise<RebuildWork> {
  if (widen !== undefined) return await wideningRebuild(archive, widen, step);
  if (profile === undefined) return await plainWork(archive, runs, tables, step);
  return profileRebuild(await manifestsOf(archive, runs), tables, await appliedProfile(profile));
}

async function plainWork(
  archive: Archive,
  named: readonly RunRef[],
  tables: readonly TableName[] | undefined,
  step: Step,
): Promise<RebuildWork> {
  return await plainRebuild(
    archive,
    await manifestsOf(archive, named),
    { runs: named, tables, tool: tool() },
    step,
  );
}

async function rebuildAndTell(
  archive: Archive,
  work: RebuildWork,
  step: Step,
  session: Session,
): Promise<Result> {
  const reports: RunReport[] = [];
  using progress = session.progress();
  const watcher: RunWatcher = {
    run: (run, number, of) => progress.run(formatRun(run), number, of),
    expect: (rows) => progress.expect(rows),
    rows: (rows, bytes) => progress.add(rows, bytes),
    conversion: (change) => progress.conversion(change),
  };
  const rebuilding = rebuildRuns(archive, work, { signal: session.signal, tool: tool(), step, watcher });
  let next = await rebuilding.next();
  for (; !next.done; next = await rebuilding.next()) {
    const { error } = next.value;
    const report = { ...next.value, exit: error === null ? exit.done : session.failure(error) };
    reports.push(report);
    // an archive takes hours: each result is printed at once, and survives a stop
    if (!session.json) await session.print(`${visible(lineOf(report))}\n`);
  }
  const { error, ...rest } = next.value;
  const statuses = [
    ...reports.map((report) => report.exit),
    ...(error === null ? [] : [session.failure(error)]),
  ];
  return { reports, ...rest, exit: worstExit(statuses) };
}

/** Tables whose rows may now have fields without a column, and whose Parquet has no column `extra`. */
function lackingExtra(archive: Archive, { profile, tables }: RebuildWork): TableName[] {
  return tableNames.filter((name) => {
    const map = profile?.maps[name];
    if (map === undefined || isIdentityMap(map) || map.fields !== "keep") return false;
    return (tables ?? [name]).includes(name) && !hasExtraColumn(archive.exactTypes(name));
  });
}

function tool(): string {
  return `runvault ${version()}`;
}

function jsonOf({ instanceId, runId, outcome, seconds, error, exit: status }: RunReport) {
  if (outcome === null) {
    const { code, message, hint = null } = error!;
    return { instanceId, runId, exit: status, error: { code, message, hint } };
  }
  const { generation, state, changed, buckets, resumedBuckets, rows } = outcome;
  return {
    ...{ instanceId, runId, exit: status, state, generation, changed },
    ...{ buckets, resumedBuckets, rows, seconds },
  };
}

/** The command that started the unfinished type change of these tables. */
function commandToGoOn(archive: Archive, unfinished: readonly TableName[], command: CommandToCopy): string {
  const columns = unfinished.flatMap((table) => {
    const former = archive.formerTypes(table)!;
    const types = archive.exactTypes(table);
    const hasExtra = hasExtraColumn(types);
    if (hasExtra !== hasExtraColumn(former)) return [hasExtra ? "--extra" : "--drop-extra", table];
    return Object.entries(types)
      .filter(([column, type]) => type !== former[column])
      .flatMap(([column, type]) => ["--widen", `${table}.${column}=${type.match(/\d+/g)!.join(",")}`]);
  });
  return command("maintain rebuild", ...columns);
}

/** The lines after the rebuilt runs. */
function restText({ reports, notTried, unfinished }: Result, goOn: string | null): string {
  const lines = [
    ...notTried.map((run) => `${formatRun(run)}  not tried`),
    ...(unfinished.length === 0
      ? []
      : [
          `the types of ${unfinished.join(", ")} are not yet changed in all runs: \`${goOn}\` finishes the change`,
        ]),
  ];
  if (lines.length === 0) return reports.length === 0 ? "nothing to rebuild\n" : "";
  return `${lines.map(visible).join("\n")}\n`;
}

function lineOf(report: RunReport): string {
  const { outcome, error, seconds } = report;
  if (outcome === null) return `${formatRun(report)}  failed: ${error!.code}`;
  const { generation, changed, buckets, resumedBuckets, rows } = outcome;
  if (!changed) return `${formatRun(report)}  nothing to do, generation ${generation}`;
  const resumed = resumedBuckets === 0 ? "" : `, ${resumedBuckets} already there`;
  return `${formatRun(report)}  generation ${generation}: ${grouped(rows)} ${plural(rows, "row")}, ${countText(buckets, "bucket")} converted${resumed}, ${tookText(seconds * 1000)}`;
}
