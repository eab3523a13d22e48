import { type Archive, openArchive } from "../archive/archive.ts";
import { verifyArchive, verifyRun } from "../archive/verify.ts";
import type { VerifyCheck, VerifyReport } from "../archive/verify-report.ts";
import { verifyAgainst } from "../extract/verify-against.ts";
import { openRestGateway } from "../gateway/rest-gateway.ts";
import { exit, worstExit } from "../model/error.ts";
import type { HistorySource, RunRef } from "../model/source.ts";
import { type GatewayValues, gatewaySettings } from "./gateway-options.ts";
import { formatRun } from "./run-argument.ts";
import type { Session } from "./session.ts";

interface Values extends GatewayValues {
  readonly archive: string;
  readonly deep: boolean;
  readonly against?: string | undefined;
}

/** Verifies the runs named, or all. Findings are the result, on standard output; the exit status sums them up. */
export async function verifyRuns(runs: readonly RunRef[], values: Values, session: Session): Promise<number> {
  const archive = await openArchive(values.archive);
  await using gateway = await gatewayToAsk(values, session);
  const { reports, statuses } = await collected(archive, runs, gateway, values.deep, session);
  const status = worstExit(statuses);
  const text = session.json
    ? `${JSON.stringify({ exit: status, runs: reports }, null, 2)}\n`
    : reports.map(textOf).join("") || "no runs to verify\n";
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
): Promise<{ reports: VerifyReport[]; statuses: number[] }> {
  const reports: VerifyReport[] = [];
  const statuses: number[] = [];
  using progress = session.progress();
  const options = {
    deep,
    signal: session.signal,
    onProgress: ({ run, table }: { run: RunRef; table: string }) => progress.on(`${formatRun(run)} ${table}`),
  };
  for await (const report of reportsOf(archive, runs, options)) {
    const checks = [...report.checks];
    if (gateway !== undefined && report.generation !== null) {
      const against = await verifyAgainst(gateway, (await archive.manifest(report.run))!, session.signal);
      checks.push(...against.checks);
      if (against.unproven) statuses.push(exit.incomplete);
    }
    statuses.push(report.exit);
    reports.push({ ...report, checks });
  }
  return { reports, statuses };
}

async function gatewayToAsk(values: Values, session: Session): Promise<HistorySource | undefined> {
  if (values.against === undefined) return undefined;
  return openRestGateway(await gatewaySettings({ ...values, gateway: values.against }, session));
}

async function* reportsOf(
  archive: Archive,
  runs: readonly RunRef[],
  options: Parameters<typeof verifyArchive>[1],
): AsyncIterable<VerifyReport> {
  if (runs.length === 0) yield* verifyArchive(archive, options);
  for (const run of runs) yield await verifyRun(archive, run, options);
}

function textOf(report: VerifyReport): string {
  const bad = report.checks.filter(({ level }) => level !== "ok");
  const good = report.checks.length - bad.length;
  const verdict = report.damaged
    ? "DAMAGED"
    : bad.some(({ level }) => level === "unproven")
      ? "not proven"
      : "verified";
  return `${formatRun(report.run)}  ${verdict}: ${good} checks passed\n${bad.map(lineOf).join("")}`;
}

function lineOf({ table, check, level, detail, files }: VerifyCheck): string {
  const where = table === null ? check : `${table} ${check}`;
  return `  ${level}: ${where}: ${detail}${files.length === 0 ? "" : ` (${files.slice(0, 3).join(", ")})`}\n`;
}
