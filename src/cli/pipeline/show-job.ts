import { basename } from "node:path";
import { alignedTable } from "../../analytics/render/aligned-table.ts";
import { openArchive } from "../../archive/archive.ts";
import { type Layout, recordOfName } from "../../archive/layout.ts";
import { tableStates } from "../../archive/manifest/manifest.ts";
import { RunvaultError, worstExit } from "../../model/error.ts";
import { formatRun } from "../../model/run-argument.ts";
import { byteText } from "../../model/text/byte-text.ts";
import { grouped, tookText } from "../../model/text/number-text.ts";
import { plural } from "../../model/text/plural.ts";
import { visible } from "../../model/text/visible-text.ts";
import type {
  AfterLine,
  PlanLine,
  RecordedError,
  RunLine,
  ToldLine,
} from "../../pipeline/record/job-record.ts";
import { type FoundRecord, readRecords } from "../../pipeline/record/read-records.ts";
import { fitNames } from "../output/fit-names.ts";
import { keyedLines } from "../output/keyed-lines.ts";
import { minuteText } from "../output/minute-text.ts";
import { wrapLines } from "../output/wrap-lines.ts";
import type { Session } from "../process/session.ts";
import { countsText, planText } from "./counts-text.ts";
import { isNothing, removedRuns, removedText } from "./job-line-text.ts";
import { executionJson, stateWords } from "./list-jobs.ts";

interface Values {
  readonly archive: string;
  /** Only executions of this job. */
  readonly name?: string | undefined;
  readonly wide: boolean;
}

/** A record without its first and last line. */
interface Told {
  plan: PlanLine | null;
  readonly runs: RunLine[];
  readonly after: AfterLine[];
  readonly told: ToldLine[];
}

/** The most runs and troubles shown in text. */
const mostRuns = 30;
const mostTroubles = 10;

/** Shows one execution in full: the one whose id begins so, or the last. */
export async function showJob(id: string, values: Values, session: Session): Promise<number> {
  const { layout } = await openArchive(values.archive);
  const statuses: number[] = [];
  const onDamage = (error: RunvaultError) => void statuses.push(session.failure(error));
  const record = await recordOf(layout, id, values.name, onDamage);
  const told: Told = { plan: null, runs: [], after: [], told: [] };
  for await (const line of record.lines(onDamage)) {
    session.signal.throwIfAborted();
    if (line.kind === "plan") told.plan = line;
    else if (line.kind === "run") told.runs.push(line);
    else if (line.kind === "after") told.after.push(line);
    else if (line.kind === "told") told.told.push(line);
  }
  await session.print(
    session.json
      ? `${JSON.stringify({ ...executionJson(record), ...withoutKinds(told) }, null, 2)}\n`
      : textOf(record, told, values, session),
  );
  return worstExit(statuses);
}

async function recordOf(
  layout: Layout,
  id: string,
  job: string | undefined,
  onDamage: (error: RunvaultError) => void,
): Promise<FoundRecord> {
  const found: FoundRecord[] = [];
  const damage: RunvaultError[] = [];
  // damage in records of other jobs does not matter here
  const of = job === undefined ? {} : { job };
  for await (const record of readRecords(layout, { ...of, onDamage: (error) => void damage.push(error) })) {
    if (id === "last") {
      // one of these may be the last
      for (const error of damage.filter(isOfRecord)) onDamage(error);
      return record;
    }
    if (record.id.startsWith(id)) found.push(record);
  }
  const [only] = found;
  if (found.length === 1) return only!;
  if (only === undefined) {
    const unread = damage.filter(isOfRecord);
    for (const error of damage) if (error !== unread.at(-1)) onDamage(error);
    // it may be the one asked for
    if (unread.length > 0) throw unread.at(-1)!;
    throw new RunvaultError(
      "invalid_argument",
      id === "last"
        ? job === undefined
          ? "no job has run in this archive"
          : `the job ${job} has not run yet`
        : `no execution has the id ${JSON.stringify(id)}`,
      { hint: "`runvault jobs` lists executions with their ids." },
    );
  }
  const ids = found.slice(0, 10).map((one) => `${one.id} (${one.job}, ${minuteText(one.begin.at)})`);
  throw new RunvaultError(
    "invalid_argument",
    `the ids of ${found.length} executions begin with ${JSON.stringify(id)}`,
    { hint: `Give more of it: ${ids.join(", ")}${found.length > ids.length ? ", …" : ""}.` },
  );
}

function isOfRecord({ place }: RunvaultError): boolean {
  return place.file !== undefined && recordOfName(basename(place.file)) !== null;
}

function withoutKinds({ plan, runs, after, told }: Told) {
  const plain = (line: object) => ({ ...line, kind: undefined });
  return {
    plan: plan === null ? null : plain(plan),
    runs: runs.map(plain),
    after: after.map(plain),
    told: told.map(plain),
  };
}

function textOf(record: FoundRecord, told: Told, values: Values, session: Session): string {
  const { begin, result } = record;
  const lines: [string, string][] = [
    [
      "execution",
      visible(`${record.id} of ${record.job}: `) + session.paint(stateWords(record)) + statusText(record),
    ],
    [
      "job file",
      visible(`${begin.file}${begin.set.length === 0 ? "" : `, with --set ${begin.set.join(", ")}`}`),
    ],
    ["from", visible(begin.source)],
    ["by", visible(`${begin.tool}, pid ${begin.pid} on ${begin.host}`)],
    [
      "started",
      timeText(begin.at) + (begin.deadline === null ? "" : `, to end by ${timeText(begin.deadline)}`),
    ],
  ];
  if (result !== null)
    lines.push(["ended", `${timeText(result.at)}, after ${tookText(result.seconds * 1000)}`]);
  if (record.state === "died") lines.push(["died", diedText(told)]);
  const plan = told.plan ?? (result === null ? null : { runs: result.plans });
  const isUnplanned = told.plan === null && result?.error != null && Object.keys(result.plans).length === 0;
  if (isUnplanned) lines.push(["plan", "not known: it ended before the runs were chosen"]);
  else if (plan !== null) lines.push(["plan", planText(plan)]);
  if (result !== null) {
    const aside = result.quarantinedRows;
    lines.push(
      ...(isUnplanned ? [] : [["runs", countsText(result.results)] as [string, string]]),
      [
        "rows",
        `${grouped(result.rows)} in ${byteText(result.bytes)}${aside === 0 ? "" : `; ${grouped(aside)} set aside`}`,
      ],
      ["gateway", `${count(result.requests, "request")}, ${counted(result.retries, "retry", "retries")}`],
      ...stepLines(told.runs),
      ["memory", `${grouped(result.peakMemoryMb)} MB at most`],
      ...(isUnplanned ? [] : [["archive", archiveText(result.states, session)] as [string, string]]),
      ["disk", `${grownText(result.grownBytes)}, ${byteText(result.freeBytes)} free afterwards`],
      ...errorLines(result.error, session, "error"),
    );
  }
  for (const { what, out, result: came, rows, seconds, error, verdict, removed } of told.after) {
    if (removed !== undefined && isNothing(removed) && error === null) continue;
    const names = {
      verify: "verified",
      reconcile: "reconciled",
      report: "reported",
      keep: "retention",
      export: "exported",
    };
    const name = `${names[what]} ${out ?? ""}`.trimEnd();
    const said =
      removed !== undefined
        ? `: ${removedText(removed)}`
        : verdict !== undefined
          ? `: ${verdict}`
          : came === "done"
            ? ""
            : `: ${came}`;
    const of = rows === null ? "" : `, ${count(rows, "row")}`;
    lines.push(
      ["then", visible(`${name}${said}${of}, ${tookText(seconds * 1000)}`)],
      ...removedLines(removed),
      ...errorLines(error, session),
    );
  }
  for (const { to, result: came, attempts, error } of told.told) {
    const times = attempts === 1 ? "" : ` after ${attempts} attempts`;
    lines.push(["told", `${to}: ${came}${times}`], ...errorLines(error, session));
  }
  const troubles = result?.troubles ?? [];
  for (const [index, { text, hint, since }] of troubles.slice(0, mostTroubles).entries()) {
    lines.push(["trouble", visible(`${text} (since ${minuteText(since)})`)]);
    // a hint shared by several is shown after the last of them
    const isLast = index + 1 === mostTroubles || troubles[index + 1]?.hint !== hint;
    if (hint !== null && isLast) lines.push(["", visible(session.toCopy(hint))]);
  }
  if (troubles.length > mostTroubles)
    lines.push(["", `${mostTroubles} of ${grouped(troubles.length)} are shown; --json has all`]);
  return `${keyedLines(lines, session)}${runsText(told.runs, values, session)}`;
}

function removedLines(removed: AfterLine["removed"]): [string, string][] {
  const named = removed === undefined ? [] : removedRuns(removed);
  const shown = named.slice(0, mostRuns).map((run): [string, string] => ["", run]);
  if (named.length === shown.length) return shown;
  return [...shown, ["", `${mostRuns} of ${grouped(named.length)} are shown; --json has all`]];
}

function statusText({ result }: FoundRecord): string {
  return result === null || result.exit === 0 ? "" : ` (exit status ${result.exit})`;
}

function diedText({ plan, runs }: Told): string {
  if (plan === null) return "before the runs were chosen";
  return `after ${count(runs.length, "run")} with work`;
}

function timeText(iso: string): string {
  return `${iso.slice(0, 19).replace("T", " ")} UTC`;
}

function archiveText(
  states: Partial<Record<(typeof tableStates)[number], number>>,
  { paint }: Session,
): string {
  const some = tableStates.filter((state) => (states[state] ?? 0) > 0);
  if (some.length === 0) return "no runs of this job";
  return some.map((state) => `${grouped(states[state]!)} ${paint(state)}`).join(", ");
}

function grownText(bytes: number): string {
  if (bytes === 0) return "the archive did not grow";
  return bytes > 0 ? `the archive grew by ${byteText(bytes)}` : `the archive shrank by ${byteText(-bytes)}`;
}

function errorLines(
  error: RecordedError | null,
  { toCopy }: Pick<Session, "toCopy">,
  name = "",
): [string, string][] {
  if (error === null) return [];
  const said: [string, string][] = [[name, visible(errorText(error))]];
  return error.hint === null ? said : [...said, ["", visible(toCopy(error.hint))]];
}

function count(number: number, noun: string): string {
  return counted(number, noun, plural(2, noun));
}

function counted(number: number, one: string, many: string): string {
  return `${grouped(number)} ${number === 1 ? one : many}`;
}

/** The time that runs took by step, summed over all: they run side by side. */
function stepLines(runs: readonly RunLine[]): [string, string][] {
  const sums = new Map<string, number>();
  for (const { steps } of runs)
    for (const [step, seconds] of Object.entries(steps)) sums.set(step, (sums.get(step) ?? 0) + seconds);
  const said = [...sums].map(([step, seconds]) => `${step} ${tookText(seconds * 1000)}`);
  return said.length === 0 ? [] : [["steps", visible(`${said.join(", ")}, of all runs together`)]];
}

/** The runs that had work, failed ones first, with what went wrong below. */
function runsText(runs: readonly RunLine[], { wide }: Values, session: Session): string {
  if (runs.length === 0) return "";
  const ordered = [...runs.filter(isWrong), ...runs.filter((run) => !isWrong(run))];
  const shown = ordered.slice(0, mostRuns);
  const names = shown.map(({ instance, run }) => formatRun({ instanceId: instance, runId: run }));
  const columns = ["run", "plan", "result", "state", "rows", "size", "took"];
  const right = [false, false, false, false, true, true, true];
  const paint = (cell: string, column: string) =>
    column === "result" || column === "state" ? session.paint(cell) : cell;
  const tableWith = (cut: readonly string[]) =>
    alignedTable(
      columns,
      shown.map(({ plan, result, rows, bytes, seconds, tables }, index) => [
        cut[index]!,
        plan,
        result.replaceAll("_", " "),
        worstState(tables),
        grouped(rows),
        byteText(bytes),
        tookText(seconds * 1000),
      ]),
      right,
      paint,
    );
  const table = wide ? tableWith(names) : fitNames(names, tableWith, session);
  const told = shown.flatMap((run, index) => wrongLines(names[index]!, run, session));
  const more =
    ordered.length > shown.length
      ? `${shown.length} of ${grouped(ordered.length)} runs with work are shown; --json has all\n`
      : "";
  const below = told.length === 0 ? "" : `\n${wrapLines(told.join(""), session.terminal.columns)}`;
  return `\n${table}${more}${below}`;
}

function isWrong({ exit }: RunLine): boolean {
  return exit !== 0;
}

function worstState(tables: RunLine["tables"]): string {
  const states = new Set(Object.values(tables).map(({ state }) => state));
  return tableStates.findLast((state) => states.has(state)) ?? "";
}

function wrongLines(name: string, { error, tables }: RunLine, { toCopy }: Pick<Session, "toCopy">): string[] {
  const ofTables = Object.entries(tables).flatMap(([table, { state, error: own, accepted }]) =>
    own === null ? [] : [`${table}: ${state}${accepted ? ", accepted" : ""}: ${errorText(own)}`],
  );
  const errors = [error, ...Object.values(tables).map((table) => table.error)];
  const hints = new Set(errors.map((one) => one?.hint ?? null).filter((hint) => hint !== null));
  const said = [
    ...(error === null ? [] : [errorText(error)]),
    ...ofTables,
    ...[...hints].map((hint) => `hint: ${toCopy(hint)}`),
  ];
  return said.map((text) => `${visible(`${name}  ${text}`)}\n`);
}

function errorText({ code, message }: RecordedError): string {
  return `${code}: ${message}`;
}
