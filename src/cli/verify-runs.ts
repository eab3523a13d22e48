import { type Archive, openArchive } from "../archive/archive.ts";
import { JobDuckDB } from "../archive/job-duckdb.ts";
import { type VerifyProgress, verifyArchive, verifyRun } from "../archive/verify.ts";
import { type PlacesReport, verifyPlaces } from "../archive/verify-places.ts";
import type { VerifyCheck, VerifyReport } from "../archive/verify-report.ts";
import { verifyAgainst } from "../extract/verify-against.ts";
import { exit, RunvaultError, usualHints, worstExit } from "../model/error.ts";
import type { HistorySource, RunRef } from "../model/source.ts";
import { type GatewayValues, openGatewayFor } from "./gateway-options.ts";
import { formatRun } from "./run-argument.ts";
import type { Session } from "./session.ts";

interface Values extends GatewayValues {
  readonly archive: string;
  readonly deep: boolean;
  readonly against?: string | undefined;
}

/** A run's own report, with what the gateway's facts added to it. */
interface RunReport extends VerifyReport {
  /** Whether the gateway's facts were there to compare with; null where no gateway was to be asked. */
  readonly compared: boolean | null;
}

/** Verifies the runs named, or all. Findings are the result, on standard output; the exit status sums them up. */
export async function verifyRuns(runs: readonly RunRef[], values: Values, session: Session): Promise<number> {
  const archive = await openArchive(values.archive);
  await using gateway = await gatewayToAsk(values, session);
  const places = await verifyPlaces(archive, runs.length === 0 ? undefined : runs);
  const reports = await collected(archive, runs, gateway, values.deep, session);
  const status = worstExit([places.exit, ...reports.map((report) => report.exit)]);
  const text = session.json
    ? `${JSON.stringify({ exit: status, places, runs: reports }, null, 2)}\n`
    : placesText(places) + (reports.map(textOf).join("") || "no runs to verify\n");
  await session.terminal.out(text);
  return status;
}

/** The reports, with progress shown until the last is there. */
async function collected(
  archive: Archive,
  runs: readonly RunRef[],
  gateway: HistorySource | undefined,
  deep: boolean,
  session: Session,
): Promise<RunReport[]> {
  const reports: RunReport[] = [];
  using progress = session.progress();
  let before = 0;
  let done = 0;
  const options = {
    deep,
    signal: session.signal,
    onProgress: ({ run, table, rows, totalRows }: VerifyProgress) => {
      progress.on(`${formatRun(run)} ${table}`);
      progress.expect(before + totalRows);
      progress.add(before + rows - done, 0);
      done = before + rows;
    },
  };
  let unreachable = false;
  for await (const report of reportsOf(archive, runs, options)) {
    before = done;
    if (gateway === undefined || report.generation === null) {
      reports.push({ ...report, compared: null });
    } else if (unreachable) {
      reports.push(notCompared(report, "the gateway could not be asked before", exit.gateway));
    } else {
      try {
        reports.push(await compared(report, archive, gateway, session.signal));
      } catch (thrown) {
        session.signal.throwIfAborted();
        // what the archive itself showed is a finding whatever the gateway says
        const { instanceId, runId } = report.run;
        const error = RunvaultError.from(thrown).at({ instance: instanceId, run: runId });
        reports.push(notCompared(report, `${error.code}: ${error.message}`, session.failure(error)));
        // the next run would only meet it again, after all the waiting
        unreachable = error.scope === "job" && error.exit === exit.gateway;
      }
    }
  }
  return reports;
}

async function compared(
  report: VerifyReport,
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

function notCompared(report: VerifyReport, why: string, status: number): RunReport {
  const check = {
    run: report.run,
    table: null,
    check: "facts",
    level: "unproven",
    ok: false,
    detail: `not compared: ${why}`,
    files: [],
  } as const;
  return {
    ...report,
    checks: [...report.checks, check],
    unproven: true,
    exit: worstExit([report.exit, status]),
    compared: false,
  };
}

async function gatewayToAsk(values: Values, session: Session): Promise<HistorySource | undefined> {
  if (values.against === undefined) return undefined;
  return await openGatewayFor({ ...values, gateway: values.against }, session);
}

async function* reportsOf(
  archive: Archive,
  runs: readonly RunRef[],
  options: Parameters<typeof verifyArchive>[1],
): AsyncIterable<VerifyReport> {
  if (runs.length === 0) yield* verifyArchive(archive, options);
  await using duckdb = new JobDuckDB();
  for (const run of runs) yield await verifyRun(archive, run, { ...options, duckdb });
}

/** Nothing where there is nothing to tell. */
function placesText({ checks, damaged, unproven }: PlacesReport): string {
  const told = checks.filter(({ level }) => level !== "ok");
  if (told.length === 0) return "";
  const verdict = damaged ? "DAMAGED" : unproven ? "not proven" : "sound";
  return `folders of the archive  ${verdict}\n${told.map((check) => lineOf({ ...check, table: null })).join("")}`;
}

function textOf(report: RunReport): string {
  const bad = report.checks.filter(({ level }) => level !== "ok");
  const good = report.checks.length - bad.length;
  const verdict = report.damaged
    ? "DAMAGED"
    : report.generation === null
      ? "not archived"
      : bad.some(({ level }) => level === "unproven")
        ? "not proven"
        : report.compared === false
          ? "not compared: the gateway has no storage facts"
          : "verified";
  // where tables are named, the run's state only says it again
  const told = bad.some(({ check, table }) => check === "state" && table !== null);
  const lines = bad.filter(({ check, table }) => !(told && check === "state" && table === null)).map(lineOf);
  const next = report.damaged ? usualHints.archive_damaged : report.unproven ? unprovenHint : undefined;
  const end = next === undefined ? "" : `  next: ${next}\n`;
  const passed = report.generation === null && !report.damaged ? "" : `: ${good} checks passed`;
  return `${formatRun(report.run)}  ${verdict}${passed}\n${lines.join("")}${end}`;
}

const unprovenHint =
  "Archive the run again: only what is missing is asked for. Rows set aside are under quarantine/, each with its reason.";

function lineOf({ table, check, level, detail, files }: Omit<VerifyCheck, "run">): string {
  const where = table === null ? check : `${table} ${check}`;
  return `  ${level}: ${where}: ${detail}${files.length === 0 ? "" : ` (${files.slice(0, 3).join(", ")})`}\n`;
}
