import { type ErrorCode, RunvaultError } from "../../model/error.ts";
import { parseJson } from "../../model/outside-json.ts";
import { hasDerivedSeq } from "../../model/profile/row-map.ts";
import { type FilterName, filterNames, type Table, tables } from "../../model/profile/table.ts";
import type { HistorySource, RowRequest, RunRef } from "../../model/source.ts";
import { normalizedLine } from "../../row/same-line.ts";

/** A promise that a source breaks. */
export interface SourceFault {
  /** The request, such as `rows of fills from 1640995200000000000`. */
  readonly asked: string;
  readonly message: string;
}

/** Most rows of a table that are read: a source is checked with a small run. */
const mostRows = 100_000;

/**
 * Checks a source against all promises of HistorySource, using one of its finished runs: the run is listed, inexact ids
 * are refused, another run has no rows. Rows are canonical lines of the run in key order, the same in each answer,
 * whether requested whole, within bounds, up to a limit or by a filter; facts give their number. Returns all faults.
 * Throws what the source throws.
 */
export async function checkSource(source: HistorySource, run: RunRef): Promise<readonly SourceFault[]> {
  const faults: SourceFault[] = [];
  const tell = (asked: string, message: string) => faults.push({ asked, message });
  await checkLists(source, run, tell);
  const facts = await source.facts(run, {});
  for (const table of tables) {
    const asked = `rows of ${table.name}`;
    const all = await linesOf(source, { ...run, table: table.name }).catch((error: unknown) => {
      if (codeOf(error) === "history_unavailable") return null;
      throw error;
    });
    if (all === null) {
      if ((facts?.get(table.name)?.rows ?? 0n) > 0n) tell(asked, "history_unavailable, but facts count rows");
      continue;
    }
    const said = facts?.get(table.name);
    if (facts !== null && (said?.rows ?? 0n) !== BigInt(all.length)) {
      tell(`facts of ${table.name}`, `${said?.rows ?? 0n} rows, but ${all.length} came`);
    }
    if (await checkRows(source, run, table, all, tell)) await checkAsks(source, run, table, all, tell);
  }
  return faults;
}

type Tell = (asked: string, message: string) => void;

async function checkLists(source: HistorySource, run: RunRef, tell: Tell): Promise<void> {
  const { instanceId, runId } = run;
  const instances = await source.instances();
  if (!instances.some((entry) => entry.instanceId === instanceId)) tell("instances", `no ${instanceId}`);
  const runs = await source.runs(instanceId);
  if (runs !== null && !runs.some((entry) => entry.runId === runId))
    tell(`runs of ${instanceId}`, `no ${runId}`);
  const starts = (runs ?? []).map(({ started }) => started);
  if (starts.some((started, at) => at > 0 && started < starts[at - 1]!)) {
    tell(`runs of ${instanceId}`, "not oldest first");
  }
  for (const nobody of ["", "current"]) {
    const code = await refusal(() => linesOf(source, { ...run, runId: nobody, table: "fills" }));
    if (code === undefined) tell(`rows of the run ${JSON.stringify(nobody)}`, "answered, not refused");
  }
}

/** Whether the table's rows are the run's, and in order; later checks rely on it. */
async function checkRows(
  source: HistorySource,
  run: RunRef,
  table: Table,
  all: readonly string[],
  tell: Tell,
): Promise<boolean> {
  const asked = `rows of ${table.name}`;
  const isDerived = hasDerivedSeq(source.traits?.(table.name)?.map);
  let before: readonly [bigint, bigint] | undefined;
  for (const [at, line] of all.entries()) {
    const numbered = isDerived ? line.replace('"seq":""', '"seq":"0"') : line;
    const canonical = normalizedLine(table, numbered);
    if (canonical === null) return fails(`line ${at + 1} is not a row of the table: ${line.slice(0, 200)}`);
    const row = fieldsOf(canonical);
    if (row.run_id !== run.runId || row.instance_id !== run.instanceId) {
      return fails(`line ${at + 1} is a row of ${row.instance_id}/${row.run_id}`);
    }
    const key = [BigInt(row.ts_event!), isDerived ? BigInt(at) : BigInt(row.seq!)] as const;
    if (before !== undefined && !(before[0] < key[0] || (before[0] === key[0] && before[1] < key[1]))) {
      return fails(`line ${at + 1} sorts before the line above it by (ts_event, seq)`);
    }
    before = key;
  }
  if (!isSame(await linesOf(source, { ...run, table: table.name }), all, isDerived)) {
    return fails("a second request returned other rows");
  }
  return true;
  function fails(message: string): false {
    tell(asked, message);
    return false;
  }
}

/** Requests parts of a table's rows in every way that a request can. */
async function checkAsks(
  source: HistorySource,
  run: RunRef,
  table: Table,
  all: readonly string[],
  tell: Tell,
): Promise<void> {
  const traits = source.traits?.(table.name);
  const isDerived = hasDerivedSeq(traits?.map);
  const compare = async (
    how: string,
    request: Partial<RowRequest>,
    wanted: readonly string[],
    ofRun: RunRef = run,
  ) => {
    const asked = `rows of ${table.name} ${how}`;
    try {
      const lines = await linesOf(source, { ...ofRun, ...request, table: table.name });
      if (!isSame(lines, wanted, isDerived))
        tell(asked, `returned ${lines.length} rows, not the ${wanted.length} expected`);
    } catch (error) {
      const isNobody = ofRun !== run && ["run_not_found", "instance_not_found"].includes(codeOf(error));
      if (!isNobody) tell(asked, RunvaultError.from(error).message);
    }
  };
  const nobody = { instanceId: run.instanceId, runId: `${run.runId}-of-nobody` };
  await compare(`of the run ${nobody.runId}, which does not exist`, {}, [], nobody);
  if (all.length === 0) return;
  const rows = all.map(fieldsOf);
  const times = rows.map(({ ts_event }) => BigInt(ts_event!));
  const [first, middle, last] = [times[0]!, times[times.length >> 1]!, times.at(-1)!];
  const windows = [
    { from: first, to: last + 1n },
    { from: middle },
    { to: middle },
    { from: first + 1n, to: middle + 1n },
    { from: middle, to: middle },
    { from: last + 1n },
  ];
  for (const window of windows) {
    const { from = first, to = last + 1n } = window;
    const within = all.filter((_, at) => times[at]! >= from && times[at]! < to);
    await compare(`from ${window.from ?? "the first"} to ${window.to ?? "the last"}`, window, within);
  }
  if (traits?.takesLimit !== false && !isDerived) {
    for (const limit of [1, 7, all.length]) await compare(`up to ${limit}`, { limit }, all.slice(0, limit));
  }
  for (const filter of filterNames) {
    if (!table.filters.includes(filter) || traits?.filters.includes(filter) === false) continue;
    const value = rows.at(-1)![filter] ?? "";
    const wanted = all.filter((_, at) => rows[at]![filter] === value);
    if (value !== "") await compare(`with ${filter} ${value}`, { filters: { [filter]: value } }, wanted);
    await compare(`with ${filter} of nobody`, { filters: { [filter]: "of nobody" } }, []);
  }
}

/** Whether the same lines came in the same order; if nothing orders rows of one time, whether each came as often. */
function isSame(lines: readonly string[], wanted: readonly string[], anyOrder: boolean): boolean {
  if (lines.length !== wanted.length) return false;
  const [a, b] = anyOrder ? [lines.toSorted(), wanted.toSorted()] : [lines, wanted];
  return a.every((line, at) => line === b[at]);
}

async function linesOf(source: HistorySource, request: RowRequest): Promise<string[]> {
  const chunks: Uint8Array[] = [];
  let rows = 0;
  for await (const chunk of source.rows({ ...request, final: true })) {
    chunks.push(Uint8Array.from(chunk));
    for (const byte of chunk) if (byte === 10) rows += 1;
    if (rows > mostRows) {
      throw new RunvaultError("limit_exceeded", `more than ${mostRows} rows`, {
        place: { table: request.table },
        hint: "Check the source with a smaller run.",
      });
    }
  }
  const lines = Buffer.concat(chunks).toString("utf8").split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

function fieldsOf(
  line: string,
): Partial<Record<FilterName | "run_id" | "instance_id" | "ts_event" | "seq", string>> {
  return parseJson(line) as Record<string, string>;
}

async function refusal(ask: () => Promise<unknown>): Promise<ErrorCode | undefined> {
  try {
    await ask();
    return undefined;
  } catch (error) {
    return codeOf(error);
  }
}

function codeOf(error: unknown): ErrorCode {
  return RunvaultError.from(error).code;
}
