import { alignedTable } from "../analytics/aligned-table.ts";
import { type Archive, findArchive, openArchive } from "../archive/archive.ts";
import { attemptHint, attemptReason, provenText } from "../archive/attempt-text.ts";
import { holds } from "../archive/convert-types.ts";
import { driftText } from "../archive/drift.ts";
import { JobDuckDB } from "../archive/job-duckdb.ts";
import type { Manifest, TableManifest } from "../archive/manifest.ts";
import type { Step } from "../archive/pending.ts";
import { exampleSetAside, type SetAside } from "../archive/set-aside.ts";
import { knownSource, rememberSource } from "../archive/sources.ts";
import { toldView } from "../archive/table-view.ts";
import { type ArchiveJob, archiveRun, defaultSettings, type RunOutcome } from "../extract/archive-run.ts";
import { finishedRuns, type HeldRuns, type RunToArchive } from "../extract/finished-runs.ts";
import { firstOfMany } from "../extract/first-of-many.ts";
import { type ListFinding, listNote } from "../extract/list-finding.ts";
import { planRun, type RunPlan } from "../extract/plan-run.ts";
import { SeenSource } from "../extract/proof/seen-source.ts";
import { recogniseSource } from "../extract/recognise-source.ts";
import { RunLists } from "../extract/run-lists.ts";
import type { Gateway } from "../gateway/gateway.ts";
import { byteText } from "../model/byte-text.ts";
import { errorCodes, exit, RunvaultError, worstExit } from "../model/error.ts";
import { countText, plural } from "../model/plural.ts";
import type { HistorySource, RunRef } from "../model/source.ts";
import { type TableName, tableNamed } from "../model/table.ts";
import { wallClock } from "../model/time.ts";
import { visible } from "../model/visible-text.ts";
import type { ArchiveTarget, ArchiveValues } from "./archive-values.ts";
import { type Budget, openBudget } from "./budget.ts";
import { certificateJson } from "./certificate-json.ts";
import { openGatewayFor, retryPolicyFor } from "./gateway-options.ts";
import { killStep } from "./kill-step.ts";
import { exitsOf, findingJson, tellFindings } from "./list-findings.ts";
import { durationText, grouped, showProgress } from "./progress.ts";
import { formatRun } from "./run-argument.ts";
import type { Session } from "./session.ts";
import { version } from "./version.ts";

/** Moments of a job after which something of it stays, however it ends. */
const keepingSteps: ReadonlySet<string> = new Set([
  "segment-journalled",
  "survey-journalled",
  "window-compared",
  "parquet-journalled",
]);

/** What one run came to: its manifest, or the error that ended it. */
interface RunReport extends RunRef {
  readonly outcome: RunOutcome | null;
  readonly seconds: number;
  /** Requests repeated for this run, by the job and by the gateway's client. */
  readonly retries: number;
  readonly error: RunvaultError | null;
  readonly exit: number;
  /** By table, one of the rows set aside, with the reason. */
  readonly setAside: Readonly<Partial<Record<string, SetAside>>>;
  /** Where all of them are. */
  readonly quarantineDir: string | null;
}

/** What the command works with: the gateway that its options name, and the time. */
export interface ArchiveMeans extends Pick<ArchiveJob, "clock" | "retry" | "wait"> {
  readonly gateway: Gateway;
  /** Converts the rows of all runs. */
  readonly duckdb: JobDuckDB;
}

/** Archives the runs one after another. One that fails does not keep the others from being archived. */
export async function archiveAll(
  target: ArchiveTarget,
  values: ArchiveValues,
  session: Session,
): Promise<number> {
  const retry = retryPolicyFor(values, session);
  const leastRate =
    values.minRate === undefined
      ? undefined
      : { bytesPerSecond: values.minRate, windowMs: values.minRateWindow ?? 30_000 };
  await using gateway = await openGatewayFor(values, session, retry, { leastRate });
  await using duckdb = new JobDuckDB();
  return await archiveFrom({ gateway, duckdb, retry, clock: wallClock }, target, values, session);
}

/** The same, from a gateway that is open, by a clock that may be any. */
export async function archiveFrom(
  means: ArchiveMeans,
  target: ArchiveTarget,
  values: ArchiveValues,
  session: Session,
): Promise<number> {
  using budget = openBudget(values, means.gateway);
  const { gateway } = budget;
  const signal = AbortSignal.any([session.signal, budget.signal]);
  return await archiveWithin(budget, { ...means, gateway }, target, values, { ...session, signal });
}

async function archiveWithin(
  budget: Budget,
  means: ArchiveMeans,
  target: ArchiveTarget,
  values: ArchiveValues,
  session: Session,
): Promise<number> {
  const { gateway, retry, clock } = means;
  const settings = settingsOf(values, clock);
  let archive = await findArchive(values.archive, values);
  if (archive !== null && !values.dryRun) refuseOtherTypes(archive, values.decimal);
  // nobody relies yet on the types of an archive that this command makes
  const widen = values.widen ?? (archive === null ? "auto" : "never");
  const rules = { settled: () => clock() - settings.settleNs };
  if (archive !== null && !values.dryRun) {
    const lists = new RunLists(gateway, { ...rules, finishedStatus: values.finishedStatus ?? [] });
    const { signal } = session;
    await recogniseSource({ archive, source: gateway, lists, isMoved: values.sourceMoved, retry, signal });
  }
  const known = archive === null ? null : await knownSource(archive.layout, gateway.label);
  const lists = new RunLists(gateway, {
    ...rules,
    finishedStatus: values.finishedStatus ?? known?.finishedStatus ?? [],
  });
  const held = archive === null || known === null ? null : { archive, addresses: known.addresses };
  const { runs, findings } = await runsOf(target, lists, held, session);
  if (values.dryRun) return await dryRun(runs, findings, means, lists, archive, values, session);
  const kill = killStep(session.terminal.env);
  const step: Step = (name) => {
    if (keepingSteps.has(name)) budget.keep();
    kill(name);
  };
  /** The archive, made for the first run that the gateway knows: a misspelt name leaves nothing behind. */
  const archiveFor = async (run: RunRef) => {
    if (archive !== null) return archive;
    await lists.describe(run, session.signal);
    archive = await openArchive(values.archive, {
      create: true,
      exactTypes: values.decimal,
      scratch: values.scratch,
      step,
    });
    return archive;
  };
  const seen = new SeenSource(known ?? undefined, values.empty);
  const statuses: number[] = [];
  const told: string[] = [];
  const toldAsJson: ReturnType<typeof jsonOf>[] = [];
  const spent: number[] = [];
  for (const run of runs) {
    if (budget.signal.aborted) {
      spent.push(session.failure(budget.signal.reason));
      break;
    }
    budget.begin();
    const shared = { settings, lists, seen, step, budget };
    const report = await archiveOne(run, means, archiveFor, { ...values, widen }, session, shared);
    statuses.push(report.exit);
    // only of a source that answers as one
    if (report.outcome !== null && archive !== null) await rememberWords(archive, gateway, values);
    if (target.kind === "runs" && report.error === null) {
      const remarks = await remarkOn(run, lists, session.signal);
      tellFindings(remarks, session);
      for (const remark of remarks) findings.push(remark);
    }
    // what will be told is all that is kept: a manifest names every file of its run, which adds up over many runs
    if (session.json) toldAsJson.push(jsonOf(report));
    else told.push(reportText(report));
    if (report.error?.scope === "job") break;
  }
  const notTried = runs.slice(statuses.length).map(({ instanceId, runId }) => ({ instanceId, runId }));
  const status = worstExit([...statuses, ...spent, ...exitsOf(findings)]);
  const peakMemoryMb = Math.round(process.resourceUsage().maxRSS / 1024);
  if (session.json) {
    const body = {
      exit: status,
      peakMemoryMb,
      lists: findings.map(findingJson),
      runs: toldAsJson,
      notTried,
    };
    await session.print(`${JSON.stringify(body, null, 2)}\n`);
  } else {
    await session.print(textOf(told, notTried));
  }
  return status;
}

/** Throws `invalid_argument` when --decimal asks for other types than an archive made before has. */
function refuseOtherTypes(archive: Archive, asked: ArchiveValues["decimal"]): void {
  for (const [table, types] of Object.entries(asked ?? {})) {
    for (const [column, type] of Object.entries(types)) {
      const kept = archive.exactTypes(tableNamed(table).name)[column];
      if (kept === type) continue;
      throw new RunvaultError(
        "invalid_argument",
        `--decimal ${table}.${column}: this archive keeps it as ${kept}, not as ${type}`,
        {
          place: { file: archive.dir },
          hint: "Types are fixed when an archive is made: leave --decimal out, or point --archive at a new folder.",
        },
      );
    }
  }
}

/** The runs to archive, with what there is to tell of the lists that named them, told. */
async function runsOf(
  target: ArchiveTarget,
  lists: RunLists,
  held: HeldRuns | null,
  session: Session,
): Promise<{ runs: readonly RunToArchive[]; findings: ListFinding[] }> {
  if (target.kind === "runs") {
    return { runs: target.runs.map((run) => ({ ...run, listed: true })), findings: [] };
  }
  const { runs, findings } = await finishedRuns(lists, target.instances, held, session.signal);
  const told = firstOfMany(findings);
  tellFindings(told, session);
  return { runs, findings: told };
}

/** What is odd about the description of a run that was named; nothing where its source does not know it any more. */
async function remarkOn(run: RunRef, lists: RunLists, signal: AbortSignal): Promise<ListFinding[]> {
  const note = (text: string) => [listNote(run.instanceId, [run.runId], `${run.runId} ${text}`)];
  try {
    const { remark } = (await lists.look(run, signal)).standing;
    return remark === null ? [] : note(remark);
  } catch (thrown) {
    // the run is archived: whatever stops the command is told with the next
    if (signal.aborted) return [];
    const { code, message } = RunvaultError.from(thrown);
    if (code === "run_not_found" || code === "instance_not_found") return [];
    // the run's own job went by what there was before
    return note(`could not be described once more: ${message}`);
  }
}

/** Keeps the source's own words for a run that has ended, where they were given. */
async function rememberWords(
  archive: Archive,
  { label }: HistorySource,
  { finishedStatus }: ArchiveValues,
): Promise<void> {
  if (finishedStatus === undefined) return;
  await rememberSource(archive.layout, label, (known) => ({ ...known, finishedStatus }));
}

async function archiveOne(
  run: RunToArchive,
  { gateway: source, ...means }: ArchiveMeans,
  archiveFor: (run: RunRef) => Promise<Archive>,
  values: ArchiveValues,
  session: Session,
  {
    budget,
    ...shared
  }: Required<Pick<ArchiveJob, "settings" | "lists" | "seen" | "step">> & {
    readonly budget: Budget;
  },
): Promise<RunReport> {
  const startedMs = performance.now();
  const seconds = () => Math.round(performance.now() - startedMs) / 1000;
  const retriesBefore = source.stats.retries;
  const clientRetries = () => source.stats.retries - retriesBefore;
  const { instanceId, runId } = run;
  const expected = new Map<string, number>();
  using progress = session.progress();
  progress.on(formatRun(run));
  try {
    const archive = await archiveFor(run);
    const job: ArchiveJob = {
      source,
      archive,
      run: { instanceId, runId },
      ...(values.tables === undefined ? {} : { tables: values.tables }),
      signal: session.signal,
      tool: `runvault ${version()}`,
      ...means,
      ...shared,
      onPlan: (table, rows) => {
        if (rows === undefined) return;
        expected.set(table.name, rows);
        progress.expect([...expected.values()].reduce((sum, count) => sum + count, 0));
      },
      onRows: (_table, rows, bytes) => progress.add(rows, bytes),
      onNote: (text) => session.log.info({ instance: instanceId, run: runId }, text),
    };
    const outcome = await archiveWidening(job, values, session, shared.step);
    return {
      instanceId,
      runId,
      outcome,
      seconds: seconds(),
      // an unchanged run's manifest tells of the job that made it
      retries: clientRetries() + (outcome.changed ? outcome.manifest.retries : 0),
      error: null,
      exit: exitOf(outcome.manifest, values),
      setAside: await setAsideOf(archive, outcome.manifest),
      quarantineDir: archive.layout.quarantineDir(run),
    };
  } catch (thrown) {
    const error = budget.explain(RunvaultError.from(thrown).at({ instance: instanceId, run: runId }));
    const status = session.failure(error);
    return {
      instanceId,
      runId,
      outcome: null,
      seconds: seconds(),
      retries: clientRetries(),
      error,
      exit: status,
      setAside: {},
      quarantineDir: null,
    };
  }
}

/** Of each table that has rows set aside, one of them. */
async function setAsideOf(archive: Archive, manifest: Manifest): Promise<RunReport["setAside"]> {
  const examples: Record<string, SetAside> = {};
  for (const [name, table] of Object.entries(manifest.tables)) {
    const example = await exampleSetAside(archive.layout, manifest, toldView(table).quarantine);
    if (example !== null) examples[name] = example;
  }
  return examples;
}

function settingsOf(values: ArchiveValues, clock: ArchiveJob["clock"]) {
  return {
    concurrency: values.concurrency,
    settleNs: BigInt(values.settle) * 1_000_000n,
    require: values.require,
    acceptShrink: values.acceptShrink,
    acceptQuarantine: values.acceptQuarantine,
    finalPass: values.finalPass,
    sourceMoved: values.sourceMoved,
    close: values.close,
    recheckBefore: recheckBefore(values.recheck, clock),
    fingerprint: values.fingerprint,
    ...(values.segmentBytes === undefined ? {} : { segmentBytes: values.segmentBytes }),
    ...(values.sliceRows === undefined ? {} : { sliceRows: values.sliceRows }),
  };
}

/** The instant before which what was last checked is asked again; null where nothing is. */
function recheckBefore(age: ArchiveValues["recheck"], clock: ArchiveJob["clock"]): bigint | null {
  if (age === undefined) return null;
  return clock() - BigInt(age === true ? 0 : age) * 1_000_000n;
}

/**
 * Archives a run; with `--widen auto`, as a new archive has it by itself, again for as long as values turn up that do
 * not fit their columns, which are widened in between: once for nearly any data, for then they are as wide as there is.
 */
async function archiveWidening(
  job: ArchiveJob,
  values: ArchiveValues,
  session: Session,
  step: (name: string) => void,
): Promise<RunOutcome> {
  let outcome = await archiveRun(job);
  while (values.widen === "auto" && outcome.tooNarrow.length > 0) {
    const { archive } = job;
    const wanted: Partial<Record<TableName, Record<string, string>>> = {};
    for (const { table, column, type } of outcome.tooNarrow) {
      const name = tableNamed(table).name;
      const wider = holds(widestType, type) ? widestType : type;
      wanted[name] = { ...wanted[name], [column]: wider };
      session.note(`widening ${table}.${column} to ${wider} in the whole archive`);
    }
    const { widenArchive } = await import("./rebuild-runs.ts");
    // the run's own progress goes on being shown
    const { stderr: stream, err: write } = session.terminal;
    const silent = { ...session, progress: () => showProgress({ style: "off", stream, write }) };
    const widened = await widenArchive(archive, wanted, step, silent);
    // each failure is told already; the run stays as it was committed
    if (widened.exit !== exit.done) return outcome;
    outcome = await archiveRun(job);
  }
  return outcome;
}

/** As many digits as there are, half of them decimals: what tokens are counted in. */
const widestType = "DECIMAL(38,18)";

/** The exit status a committed run leads to: its tables' errors, and 4 where anything is not proven. */
function exitOf(manifest: Manifest, values: ArchiveValues): number {
  const tables = Object.entries(manifest.tables).filter(
    ([name]) => values.tables === undefined || (values.tables as readonly string[]).includes(name),
  );
  const statuses = tables.flatMap(([, table]) => {
    if (table.attempt.outcome === "ok") return [exit.done];
    const code = table.attempt.error?.code;
    const own =
      code !== undefined && code in errorCodes
        ? errorCodes[code as keyof typeof errorCodes].exit
        : exit.incomplete;
    return [exit.incomplete, own];
  });
  if (tables.every(([, { state }]) => state === "ABSENT")) statuses.push(exit.incomplete);
  return worstExit(statuses);
}

function jsonOf(report: RunReport) {
  const { instanceId, runId, outcome, seconds, retries, error } = report;
  if (outcome === null) {
    return {
      instanceId,
      runId,
      state: null,
      exit: report.exit,
      retries,
      error: { code: error!.code, message: error!.message, hint: error!.hint ?? null },
    };
  }
  const { manifest, changed, resumedSegments, rows, bytes, warnings } = outcome;
  const tables = Object.entries(manifest.tables).map(([name, table]) => {
    const { state, certificate, drift, error: failure } = toldView(table);
    const { behindSince, notes } = table.attempt;
    const proven = provenJson(table);
    const setAside = report.setAside[name] ?? null;
    const why = { error: failure, reason: attemptReason(table), hint: attemptHint(table) };
    const proof = certificate === null ? {} : certificateJson(certificate);
    return [name, { state, ...proof, drift, setAside, ...why, proven, behindSince, notes }];
  });
  return {
    instanceId,
    runId,
    state: manifest.state,
    exit: report.exit,
    generation: manifest.generation,
    horizon: manifest.horizon,
    changed,
    resumedSegments,
    fetchedRows: rows,
    fetchedBytes: bytes,
    seconds,
    retries,
    warnings,
    tables: Object.fromEntries(tables),
  };
}

/** What readers show of a table. */
function provenJson({ proven }: TableManifest) {
  if (proven === null) return null;
  const { state, certificate } = proven;
  const { rows = 0, quarantined = 0, until = null, checkedAt = null } = certificate ?? {};
  return { state, rows, setAside: quarantined, until, checkedAt };
}

/** What readers show of a table whose latest attempt went wrong. */
function shownText({ proven, attempt }: TableManifest): string {
  if (attempt.outcome === "ok") return "";
  if (proven === null) return "nothing proven is shown";
  const { rows = 0 } = proven.certificate ?? {};
  return `shown as proven before: ${provenText(proven)}, ${grouped(rows)} ${plural(rows, "row")}; behind since ${attempt.behindSince}`;
}

function textOf(told: readonly string[], notTried: readonly RunRef[]): string {
  if (told.length === 0) return "no runs to archive\n";
  const untried = notTried.map((run) => `${visible(formatRun(run))}  not tried\n`);
  return [...told, ...untried].join("\n");
}

function reportText(report: RunReport): string {
  const { outcome, seconds, retries } = report;
  if (outcome === null) {
    const { code, message } = report.error!;
    const end = code === "incomplete" ? `INCOMPLETE: ${message}` : `failed: ${code}`;
    return `${visible(`${formatRun(report)}  ${end}`)}\n`;
  }
  const { manifest, changed, rows, bytes, resumedSegments, warnings } = outcome;
  const rate = seconds > 0 ? ` (${grouped(Math.round(rows / seconds))} rows/s)` : "";
  const resumed = resumedSegments > 0 ? `, ${countText(resumedSegments, "segment")} there from before` : "";
  const repeated = retries === 0 ? "" : `, ${retries} ${retries === 1 ? "retry" : "retries"}`;
  const how = changed
    ? `${grouped(rows)} ${plural(rows, "row")} fetched, ${byteText(bytes)} in ${durationText(seconds * 1000)}${rate}${repeated}${resumed}`
    : `up to date, nothing fetched${repeated}`;
  const head = `${visible(formatRun(report))}  ${manifest.state}  generation ${manifest.generation}: ${how}\n`;
  const lines = Object.entries(manifest.tables).map(([name, entry]) => {
    const { state, certificate, drift } = toldView(entry);
    const notes = [
      certificate !== null && certificate.quarantined > 0 ? `${certificate.quarantined} set aside` : "",
      drift.length > 0 ? `unknown: ${driftText(drift)}` : "",
      // rows set aside are told ahead
      state === "QUARANTINED" ? "" : (attemptReason(entry) ?? ""),
      shownText(entry),
      ...entry.attempt.notes,
    ];
    const note = notes.filter((text) => text !== "").join("; ");
    const counted =
      certificate === null
        ? ["", "", ""]
        : [
            grouped(certificate.rows),
            certificate.gatewayRows === null ? "" : grouped(BigInt(certificate.gatewayRows)),
            certificate.proof,
          ];
    return [name, state, ...counted, note];
  });
  const columns = ["table", "state", "rows", "gateway", "proof"];
  const right = [false, false, true, true, false];
  const table = notedTable(columns, lines, right);
  const examples = Object.entries(report.setAside).map(
    ([name, example]) =>
      `  ${visible(`set aside of ${name}, one of them: ${example!.reason}: ${example!.row}`)}\n`,
  );
  const aside = Object.values(manifest.tables).some((entry) => toldView(entry).quarantine.length > 0);
  if (aside)
    examples.push(`  rows set aside, each with its reason: ${visible(String(report.quarantineDir))}\n`);
  const told = warnings.map((text) => `  warning: ${visible(text)}\n`);
  return [head, table, ...hintLines(manifest), ...told, ...examples].join("");
}

/** What helps the tables that failed, each remedy once. */
function hintLines(manifest: Manifest): string[] {
  const hinted = Object.entries(manifest.tables).flatMap(([name, table]) => {
    const hint = attemptHint(table);
    return hint === null ? [] : [{ name, hint }];
  });
  return [...Map.groupBy(hinted, ({ hint }) => hint)].map(
    ([hint, tables]) => `  hint for ${tables.map(({ name }) => name).join(", ")}: ${visible(hint)}\n`,
  );
}

/** A table whose last cells are notes, which are rare: a column of blanks would only be a rule over nothing. */
function notedTable(
  columns: readonly string[],
  lines: readonly (readonly string[])[],
  right: readonly boolean[],
): string {
  const noted = lines.some((cells) => cells.at(-1) !== "");
  const shown = noted ? lines : lines.map((cells) => cells.slice(0, columns.length));
  return indented(alignedTable(noted ? [...columns, "note"] : columns, shown, [...right, false]));
}

function indented(text: string): string {
  return text.replace(/^(?=.)/gm, "  ");
}

async function dryRun(
  runs: readonly RunToArchive[],
  findings: readonly ListFinding[],
  { gateway: source, clock, retry }: ArchiveMeans,
  lists: RunLists,
  archive: Archive | null,
  values: ArchiveValues,
  session: Session,
): Promise<number> {
  const settings = { ...defaultSettings, ...settingsOf(values, clock) };
  const plans: RunPlan[] = [];
  // what the gateway no longer names cannot be planned: the job says so of it
  for (const run of runs.filter(({ listed }) => listed)) {
    plans.push(
      await planRun({
        source,
        lists,
        archive,
        folder: values.archive,
        scratch: values.scratch,
        run,
        tables: values.tables,
        settings,
        clock,
        retry,
        signal: session.signal,
      }),
    );
  }
  const needs = plans.flatMap(({ tables }) => tables).map(({ diskBytes }) => diskBytes);
  const known = needs.reduce<number>((sum, bytes) => sum + (bytes ?? 0), 0);
  // null: a gateway without storage facts cannot be asked how much there is
  const need = needs.includes(null) ? null : known;
  const free = plans[0]?.freeBytes ?? 0;
  const fits = plans.length > 0 && known > free ? false : need === null ? null : true;
  if (session.json) {
    const body = {
      lists: findings.map(findingJson),
      runs: plans.map(planJson),
      neededBytes: need,
      freeBytes: free,
      fits,
    };
    await session.print(`${JSON.stringify(body, null, 2)}\n`);
  } else {
    await session.print(planText(plans, need, free));
  }
  const failures = plans.flatMap(({ tables }) => tables.flatMap(({ error }) => error?.exit ?? []));
  if (fits !== false) return worstExit([...failures, ...exitsOf(findings)]);
  throw new RunvaultError(
    "storage_full",
    `the plan needs about ${byteText(known)}, the disk has ${byteText(free)} free`,
    {
      place: { file: values.archive },
      hint: "Free some space, or point --archive at a larger disk.",
    },
  );
}

function planJson(plan: RunPlan) {
  const tables = plan.tables.map(({ error, ...table }) => ({
    ...table,
    error: error === null ? null : { code: error.code, message: error.message, hint: error.hint ?? null },
  }));
  return { ...plan, horizon: plan.horizon?.toString(), tables };
}

function planText(plans: readonly RunPlan[], need: number | null, free: number): string {
  if (plans.length === 0) return "no runs to archive\n";
  const unknown = "unknown";
  const parts = plans.map((plan) => {
    if (plan.upToDate) return `${visible(formatRun(plan))}  up to date\n`;
    const rows = plan.tables.map((table) => [
      table.table,
      table.absent ? "absent" : table.slices === null ? unknown : String(table.slices),
      table.rows === null ? unknown : grouped(table.rows),
      table.textBytes === null ? unknown : byteText(table.textBytes),
      table.diskBytes === null ? unknown : byteText(table.diskBytes),
      table.error === null ? "" : `${table.error.code}: ${table.error.message}`,
    ]);
    const heads = ["table", "slices", "rows", "text", "disk"];
    const table = notedTable(heads, rows, [false, true, true, true, true]);
    return `${visible(`${formatRun(plan)}  ${plan.status}`)}\n${table}`;
  });
  const needed =
    need === null
      ? "space needed is unknown: the gateway has no storage facts"
      : `about ${byteText(need)} needed`;
  return `${parts.join("\n")}\n${needed}, ${byteText(free)} free; nothing was fetched\n`;
}
