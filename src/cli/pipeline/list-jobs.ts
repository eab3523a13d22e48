import { alignedTable } from "../../analytics/render/aligned-table.ts";
import { openArchive } from "../../archive/archive.ts";
import { RunvaultError, worstExit } from "../../model/error.ts";
import { nearestName } from "../../model/text/nearest-name.ts";
import { grouped, tookText } from "../../model/text/number-text.ts";
import { type FoundRecord, jobsWithRecords, readRecords } from "../../pipeline/record/read-records.ts";
import { fitNames } from "../output/fit-names.ts";
import type { Session } from "../process/session.ts";
import { exitWords } from "./exit-words.ts";

interface Values {
  readonly archive: string;
  readonly name?: string | undefined;
  readonly failed: boolean;
  readonly limit: number;
  readonly wide: boolean;
}

/** Lists executions, newest first. An unreadable record is reported and hides no other. */
export async function listJobs(values: Values, session: Session): Promise<number> {
  const { name, failed, limit } = values;
  const { layout } = await openArchive(values.archive);
  const statuses: number[] = [];
  const onDamage = (error: RunvaultError) => void statuses.push(session.failure(error));
  if (name !== undefined) {
    const known = await jobsWithRecords(layout);
    if (!known.includes(name)) throw noSuchJob(name, known);
  }
  const shown: FoundRecord[] = [];
  let isMore = false;
  for await (const record of readRecords(layout, {
    ...(name === undefined ? {} : { job: name }),
    onDamage,
  })) {
    session.signal.throwIfAborted();
    if (failed && !hasFailed(record)) continue;
    isMore = shown.length === limit;
    if (isMore) break;
    shown.push(record);
  }
  await session.print(
    session.json
      ? `${JSON.stringify({ executions: shown.map(executionJson), more: isMore }, null, 2)}\n`
      : textOf(shown, isMore, values, session),
  );
  return worstExit(statuses);
}

function noSuchJob(name: string, known: readonly string[]): RunvaultError {
  const near = nearestName(name, known);
  const hint =
    near !== null
      ? `Did you mean ${near}?`
      : known.length === 0
        ? "No job has run in this archive."
        : `The jobs that have run in this archive are ${known.slice(0, 20).join(", ")}.`;
  return new RunvaultError("invalid_argument", `no job ${JSON.stringify(name)} has run in this archive`, {
    hint,
  });
}

function hasFailed({ state, result }: FoundRecord): boolean {
  return state === "died" || (result !== null && result.exit !== 0);
}

/** An execution in JSON reports: the first and last line of its record. */
export function executionJson({ job, id, file, state, begin, result }: FoundRecord) {
  const { kind: _, ...begun } = begin;
  const ended = result === null ? null : { ...result, kind: undefined };
  return { job, id, file, state, words: stateWords({ state, result }), begin: begun, result: ended };
}

/** The state of an execution, in one to three words. */
export function stateWords({ state, result }: Pick<FoundRecord, "state" | "result">): string {
  return result === null ? state : exitWords(result.exit);
}

interface Column {
  readonly name: string;
  readonly right?: boolean;
  readonly cell: (record: FoundRecord) => string;
}

function columnsFor(wide: boolean): Column[] {
  const minute = (at: string | undefined) => (wide ? (at ?? "") : (at?.slice(0, 16).replace("T", " ") ?? ""));
  const counted = (name: string, count: (result: NonNullable<FoundRecord["result"]>) => number): Column => ({
    name,
    right: true,
    cell: ({ result }) => (result === null ? "" : grouped(count(result))),
  });
  const columns: (Column | false)[] = [
    { name: "id", cell: ({ id }) => id },
    { name: wide ? "started" : "started (UTC)", cell: ({ begin }) => minute(begin.at) },
    wide && { name: "ended", cell: ({ result }) => result?.at ?? "" },
    {
      name: "took",
      right: true,
      cell: ({ result }) => (result === null ? "" : tookText(result.seconds * 1000)),
    },
    { name: "result", cell: stateWords },
    counted("archived", ({ results }) => results.archived ?? 0),
    wide && counted("rows", ({ rows }) => rows),
    wide && counted("failed", ({ results }) => results.failed ?? 0),
    wide && counted("unchanged", ({ results }) => results.unchanged ?? 0),
    wide && counted("requests", ({ requests }) => requests),
    wide && counted("retries", ({ retries }) => retries),
    wide && { name: "pid", right: true, cell: ({ begin }) => String(begin.pid) },
    wide && { name: "host", cell: ({ begin }) => begin.host },
    wide && { name: "job file", cell: ({ begin }) => begin.file },
  ];
  return columns.filter((column) => column !== false);
}

function textOf(shown: readonly FoundRecord[], isMore: boolean, values: Values, session: Session): string {
  const { name, failed, wide, limit } = values;
  if (shown.length === 0) return failed ? "no failed executions\n" : "no executions\n";
  const columns = columnsFor(wide);
  const cells = shown.map((record) => columns.map(({ cell }) => cell(record)));
  const paint = (cell: string, column: string) => (column === "result" ? session.paint(cell) : cell);
  // for a single job the name is left out
  const named = name === undefined;
  const tableWith = (jobs: readonly string[]) =>
    alignedTable(
      [...(named ? ["job"] : []), ...columns.map((column) => column.name)],
      cells.map((row, index) => [...(named ? [jobs[index]!] : []), ...row]),
      [...(named ? [false] : []), ...columns.map(({ right }) => right === true)],
      paint,
    );
  const jobs = shown.map(({ job }) => job);
  const table = wide || !named ? tableWith(jobs) : fitNames(jobs, tableWith, session);
  return isMore ? `${table}the newest ${grouped(limit)}; --limit N lists more\n` : table;
}
