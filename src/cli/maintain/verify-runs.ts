import { type Archive, openArchive } from "../../archive/archive.ts";
import { type FoundRun, foundRuns, type RunChoice } from "../../archive/manifest/found-runs.ts";
import type { Manifest } from "../../archive/manifest/manifest.ts";
import { type VerifyProgress, verifyArchive, verifyRun } from "../../archive/verify/verify.ts";
import { type PlacesReport, verifyPlaces } from "../../archive/verify/verify-places.ts";
import type { VerifyCheck } from "../../archive/verify/verify-report.ts";
import { drawSample, type Sample } from "../../archive/verify/verify-sample.ts";
import { type PendingWork, pendingWork } from "../../archive/write/pending-work.ts";
import { JobDuckDB } from "../../duckdb/job-duckdb.ts";
import { verifyAgainst } from "../../extract/run/verify-against.ts";
import { type ErrorCode, errorCodes, exit, RunvaultError, worstExit } from "../../model/error.ts";
import { formatRun } from "../../model/run-argument.ts";
import type { HistorySource } from "../../model/source.ts";
import { byteText } from "../../model/text/byte-text.ts";
import { countText } from "../../model/text/plural.ts";
import { visible } from "../../model/text/visible-text.ts";
import { pendingJson, pendingLine } from "../archive/pending-told.ts";
import { type GatewayValues, openGatewayFor } from "../options/gateway-options.ts";
import { type CommandToCopy, commandsToCopy } from "../output/command-to-copy.ts";
import { wrapLines } from "../output/wrap-lines.ts";
import type { Session } from "../process/session.ts";
import { isGone, nextOf, type RunReport } from "./verify-next.ts";
import { repairRun } from "./verify-repair.ts";

interface Values extends GatewayValues {
  readonly archive: string;
  readonly scratch?: string | undefined;
  readonly deep: boolean;
  /** Share of the files' bytes to read; default all. */
  readonly sample?: number | undefined;
  /** Only runs committed within so many milliseconds. */
  readonly since?: number | undefined;
  readonly repair: boolean;
  readonly against?: string | undefined;
}

/** How much of the archive was checked. */
interface Scope {
  readonly found: readonly FoundRun[];
  /** Runs committed too long ago. */
  readonly skipped: number;
  readonly sample: Sample | undefined;
}

/** Verifies the named runs, or all. Findings are the result, on standard output; the exit status sums them up. */
export async function verifyRuns(
  chosen: readonly RunChoice[],
  values: Values,
  session: Session,
): Promise<number> {
  const archive = await openArchive(values.archive, { scratch: values.scratch });
  const command = commandsToCopy(values, session);
  await using gateway = await gatewayToAsk(values, session);
  const pending = (await pendingWork(archive, forPlaces)).filter((work) => isChosen(work, chosen));
  const scope = await scopeOf(archive, chosen, values).catch((error: unknown) => {
    throw pending.length === 0 ? error : onlyPending(error, command, pending[0]!);
  });
  const runs = chosen.length === 0 ? undefined : scope.found.map(({ run }) => run);
  const places = await verifyPlaces(archive, runs);
  const reports = await collected(archive, scope, chosen.length === 0, gateway, values, command, session);
  const status = worstExit([places.exit, ...reports.map((report) => report.exit)]);
  const { skipped, sample } = scope;
  const { has: _, ...covered } = sample ?? { has: null };
  const told = {
    skipped,
    sample: sample === undefined ? null : covered,
    pending: pending.map((work) => pendingJson(work, command)),
  };
  const text = session.json
    ? `${JSON.stringify({ exit: status, places, ...told, runs: reports }, null, 2)}\n`
    : wrapLines(
        placesText(places, session) +
          (reports.map((report) => textOf(report, command, session)).join("") || "no runs to verify\n") +
          scopeText(scope) +
          pending.map((work) => pendingLine(work, command)).join(""),
        session.terminal.columns,
      );
  await session.print(text);
  return status;
}

/** Links are reported with the archive's other folders. */
function forPlaces(): void {}

function isChosen({ instanceId, runId }: PendingWork, chosen: readonly RunChoice[]): boolean {
  const names = (one: RunChoice) =>
    one.instanceId === instanceId && (one.runId === undefined || one.runId === runId);
  return chosen.length === 0 || chosen.some(names);
}

/** A `not_archived` error for a run that has pending work. */
function onlyPending(thrown: unknown, command: CommandToCopy, work: PendingWork): unknown {
  const error = RunvaultError.from(thrown);
  if (error.code !== "not_archived") return thrown;
  const hint = `Nothing of it is committed yet: \`${pendingJson(work, command).command}\` continues it.`;
  return new RunvaultError(error.code, error.message, { place: error.place, hint, cause: error });
}

async function scopeOf(archive: Archive, chosen: readonly RunChoice[], values: Values): Promise<Scope> {
  const since = values.since === undefined ? Number.NEGATIVE_INFINITY : Date.now() - values.since;
  const found: FoundRun[] = [];
  const manifests: Manifest[] = [];
  const seen = new Set<string>();
  let skipped = 0;
  for await (const one of foundRuns(archive, chosen)) {
    if (seen.has(one.file)) continue;
    seen.add(one.file);
    // an unreadable time hides no run
    if (one.manifest !== null && Date.parse(one.manifest.committedAt) < since) {
      skipped++;
      continue;
    }
    // manifests name every file of their runs, so they are read again one by one unless a sample needs them all
    if (values.sample !== undefined && one.manifest !== null) manifests.push(one.manifest);
    found.push({ ...one, manifest: null });
  }
  const sample =
    values.sample === undefined ? undefined : drawSample(archive.layout, manifests, values.sample);
  return { found, skipped, sample };
}

function scopeText({ skipped, sample }: Scope): string {
  const lines: string[] = [];
  if (skipped > 0)
    lines.push(
      `${skipped === 1 ? "1 run was" : `${skipped} runs were`} committed before --since, and not checked`,
    );
  if (sample !== undefined) {
    const { files, ofFiles, bytes, ofBytes } = sample;
    const read = `${files} of ${countText(ofFiles, "file")} read, ${byteText(bytes)} of ${byteText(ofBytes)}`;
    lines.push(`${read}; of the others only presence and size were checked`);
  }
  return lines.map((line) => `${line}\n`).join("");
}

/** Collects the reports, showing progress until the last one. */
async function collected(
  archive: Archive,
  scope: Scope,
  all: boolean,
  gateway: HistorySource | undefined,
  { deep, repair }: Values,
  command: CommandToCopy,
  session: Session,
): Promise<RunReport[]> {
  const reports: RunReport[] = [];
  using progress = session.progress();
  let before = 0;
  let done = 0;
  await using duckdb = new JobDuckDB();
  const options = {
    deep,
    duckdb,
    sample: scope.sample,
    signal: session.signal,
    onProgress: ({ run, table, rows, totalRows }: VerifyProgress) => {
      progress.on(`${formatRun(run)} ${table}`);
      progress.expect(before + totalRows);
      progress.add(before + rows - done, 0);
      done = before + rows;
    },
  };
  let unreachable: ErrorCode | null = null;
  const reported = verifyArchive(archive, { ...options, runs: scope.found, leftovers: all });
  for await (const first of reported) {
    // an error in reading a run would also stop its repair
    const repaired = repair && first.damaged && first.generation !== null && first.remedy === null;
    const mended = repaired ? await repairRun(archive, first.run, duckdb, command, session) : null;
    // rebuilt files are verified like all others
    const again = mended?.changed ? await verifyRun(archive, first.run, options) : first;
    const status = worstExit([again.exit, mended?.exit ?? exit.done]);
    const report = { ...again, notCompared: null, repair: mended, exit: status };
    before = done;
    if (gateway === undefined || report.generation === null) {
      reports.push({ ...report, compared: null });
    } else if (unreachable !== null) {
      const why = "the gateway could not be reached before";
      reports.push(notCompared(report, unreachable, why, errorCodes[unreachable].exit));
    } else {
      try {
        reports.push(await compared(report, archive, gateway, session.signal));
      } catch (thrown) {
        session.signal.throwIfAborted();
        // damage in the archive itself is a finding whatever the gateway says
        const { instanceId, runId } = report.run;
        const error = RunvaultError.from(thrown).at({ instance: instanceId, run: runId });
        reports.push(
          notCompared(report, error.code, `${error.code}: ${error.message}`, session.failure(error)),
        );
        // the next run would only fail the same way, after all the waiting
        if (error.scope === "job" && error.isGateways) unreachable = error.code;
      }
    }
  }
  return reports;
}

async function compared(
  report: Omit<RunReport, "compared">,
  archive: Archive,
  gateway: HistorySource,
  signal: AbortSignal,
): Promise<RunReport> {
  const manifest = await archive.manifest(report.run);
  // removed since it was verified
  if (manifest === null) return { ...report, compared: null };
  const against = await verifyAgainst(gateway, manifest, signal);
  const status = against.unproven || !against.asked ? exit.incomplete : exit.done;
  return {
    ...report,
    checks: [...report.checks, ...against.checks],
    unproven: report.unproven || against.unproven,
    exit: worstExit([report.exit, status]),
    compared: against.asked,
  };
}

/** A report without the gateway's facts; the findings about the archive itself stay. */
function notCompared(
  report: Omit<RunReport, "compared">,
  code: ErrorCode,
  why: string,
  status: number,
): RunReport {
  const { run, checks, repair } = report;
  const check = {
    run,
    table: null,
    check: "facts",
    level: "notice",
    ok: true,
    detail: `not compared: ${why}`,
    files: [],
  } as const;
  return {
    ...report,
    checks: [...checks, check],
    exit: worstExit([report.exit, status]),
    compared: false,
    notCompared: code,
    // the gateway cannot send what it does not know
    repair: repair !== null && isGone(code) ? { ...repair, archive: null } : repair,
  };
}

async function gatewayToAsk(values: Values, session: Session): Promise<HistorySource | undefined> {
  if (values.against === undefined) return undefined;
  return await openGatewayFor({ ...values, gateway: values.against }, session);
}

/** Empty if there is nothing to report. */
function placesText({ checks, damaged, unproven }: PlacesReport, { paint }: Session): string {
  const told = checks.filter(({ level }) => level !== "ok");
  if (told.length === 0) return "";
  const verdict = damaged ? "DAMAGED" : unproven ? "not proven" : "sound";
  return `folders of the archive  ${paint(verdict)}\n${told.map((check) => lineOf({ ...check, table: null })).join("")}`;
}

function textOf(report: RunReport, command: CommandToCopy, { paint }: Session): string {
  const bad = report.checks.filter(({ level }) => level !== "ok");
  const good = report.checks.length - bad.length;
  const verdict = report.damaged
    ? "DAMAGED"
    : report.generation === null
      ? "not archived"
      : bad.some(({ level }) => level === "unproven")
        ? "not proven"
        : report.notCompared !== null
          ? "not compared"
          : report.compared === false
            ? "not compared: the gateway has no storage facts"
            : "verified";
  // if tables are listed, the run's state only repeats them
  const told = bad.some(({ check, table }) => check === "state" && table !== null);
  const lines = bad.filter(({ check, table }) => !(told && check === "state" && table === null)).map(lineOf);
  const next = nextOf(report, command);
  const end = next === undefined ? "" : `  next: ${visible(next)}\n`;
  const failed = report.checks.filter(({ level }) => level === "damaged").length;
  const passed = report.damaged
    ? `: ${failed} of ${report.checks.length} checks failed`
    : report.generation === null
      ? ""
      : `: ${good} checks passed`;
  const { buckets = 0 } = report.repair ?? {};
  const repaired = buckets === 0 ? "" : `  repaired: ${countText(buckets, "bucket")} of Parquet rebuilt\n`;
  return `${visible(formatRun(report.run))}  ${paint(verdict)}${passed}\n${lines.join("")}${repaired}${end}`;
}

function lineOf({ table, check, level, detail, files }: Omit<VerifyCheck, "run">): string {
  const where = table === null ? check : `${table} ${check}`;
  const named = files.length === 0 ? "" : ` (${files.slice(0, 3).join(", ")})`;
  return `  ${visible(`${level}: ${where}: ${detail}${named}`)}\n`;
}
