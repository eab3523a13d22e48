import type { TableState } from "../../archive/manifest/manifest.ts";
import { exit } from "../../model/error.ts";
import { formatRun, parseRun } from "../../model/run-argument.ts";
import type { RunRef } from "../../model/source.ts";
import { countText } from "../../model/text/plural.ts";
import type {
  AfterLine,
  BeginLine,
  RecordedError,
  RunLine,
  RunResult,
  Trouble,
  TroubleKind,
} from "../record/job-record.ts";

/** An unproven table in the archive. */
export interface UnprovenTable {
  readonly instance: string;
  readonly run: string;
  readonly table: string;
  readonly state: TableState;
  /** Whether `runvault maintain accept` accepted it. */
  readonly accepted: boolean;
  readonly error: RecordedError | null;
}

/** An unproven run that the gateway will soon forget. */
export interface ExpiringRun {
  readonly instance: string;
  readonly run: string;
  /** When the gateway forgets it: an instant. */
  readonly forgotten: string;
}

/** The findings of an execution, as far as it got. */
export interface NightSeen {
  /** Its end: an instant. */
  readonly at: string;
  readonly begin: Pick<BeginLine, "job">;
  readonly exit: number;
  /** What ended the whole execution, if anything did. */
  readonly error: RecordedError | null;
  readonly runs: readonly RunLine[];
  /** Exports, the verification and reconciliations; null if the execution did not get that far. */
  readonly after: readonly AfterLine[] | null;
  /** Whether the job reconciles the runs that it commits. */
  readonly reconciles: boolean;
  /** Whether it writes reports of them. */
  readonly reports: boolean;
  /**
   * Whether the execution knows a run's state: finished work on it, found it unchanged, or found that it is no longer
   * the job's. False if the list of its instance did not come, or the deadline came first.
   */
  readonly looked: (run: RunRef) => boolean;
  /** Unproven tables of this job's runs, by their manifests, worked on or not. */
  readonly unproven: readonly UnprovenTable[];
  /** Unproven runs within a quarter of `keeps` of being forgotten; null if no list says. */
  readonly expiring: readonly ExpiringRun[] | null;
  /** Free space of the archive's disk, and how many nights it lasts; null if either is unknown. */
  readonly disk: { readonly freeBytes: number; readonly nights: number | null } | null;
  /** Starts since the last execution without one: instants, and reasons. */
  readonly missed: readonly { readonly at: string; readonly why: string }[];
  /** Earlier executions that ended without a result. */
  readonly died: readonly { readonly id: string; readonly at: string }[];
}

/** Fewer nights than this are trouble, which is over only from one more on. */
const fewNights = 3;

const unprovenStates: ReadonlySet<TableState> = new Set(["QUARANTINED", "UNVERIFIED", "INCOMPLETE"]);

/** Results after which a run's state is known. */
const settled: ReadonlySet<RunResult> = new Set(["archived", "unchanged", "by_other"]);

/**
 * Current troubles after an execution, with keys that stay the same from execution to execution. `before` has those
 * after the last one: what this execution did not look at stays as it was.
 */
export function troublesNow(night: NightSeen, before: readonly Trouble[]): readonly Trouble[] {
  const { at } = night;
  const found = new Map<string, Trouble>();
  const add = (trouble: Trouble) => found.set(trouble.key, trouble);
  const runLines = new Map(night.runs.map((line) => [idOf(line.instance, line.run), line]));
  const gone = new Set<string>();

  const failed = jobTrouble(night);
  if (failed !== null) add(failed);
  for (const { at: start, why } of night.missed) {
    add(
      made(at, "missed", start, {
        level: "missed",
        text: `the start of ${start} was missed: ${why}`,
        hint: "The next execution does the missed work; `runvault status` shows when that is.",
      }),
    );
  }
  for (const { id, at: began } of night.died) {
    add(
      made(at, "died", id, {
        level: "died",
        text: `the execution that began at ${began} died without a result`,
        hint: `\`runvault jobs show ${id}\` shows how far it got; out of memory and a restart of the machine are the usual reasons.`,
      }),
    );
  }
  for (const line of night.runs) {
    const run = { instance: line.instance, run: line.run };
    const id = idOf(line.instance, line.run);
    if (line.result === "gone" || line.plan === "gone") {
      gone.add(id);
      add(
        made(at, "gone", id, {
          ...run,
          level: "gone",
          text: `the gateway forgot ${id} before it was proven`,
          hint: "The archive keeps what it has; take what is missing from another archive, or remove the run with `runvault rm`.",
        }),
      );
      continue;
    }
    if (line.result === "failed" && !isJobs(line.error, night)) {
      add(
        made(at, "run", id, {
          ...run,
          level: String(line.exit),
          text: `${id} failed${line.error === null ? "" : `: ${line.error.message}`}`,
          hint: line.error?.hint ?? "The next execution tries it again.",
        }),
      );
    }
    if (!isEnded(line)) continue;
    for (const [table, { state, accepted, error }] of Object.entries(line.tables)) {
      if (accepted || !unprovenStates.has(state)) continue;
      add(tableTrouble(at, { ...run, table, state, accepted, error }));
    }
  }
  // for a run that was worked on, its line says more than the manifest; tables without a line are as in the manifest
  for (const table of night.unproven) {
    const id = idOf(table.instance, table.run);
    const line = runLines.get(id);
    if (table.accepted || !unprovenStates.has(table.state) || gone.has(id)) continue;
    if (line !== undefined && Object.hasOwn(line.tables, table.table)) continue;
    const isKnown = line === undefined ? night.looked(refOf(table.instance, table.run)) : isEnded(line);
    if (isKnown) add(tableTrouble(at, table));
  }
  for (const { instance, run, forgotten } of night.expiring ?? []) {
    const id = idOf(instance, run);
    if (gone.has(id)) continue;
    add(
      made(at, "expiring", id, {
        ...{ instance, run },
        level: "expiring",
        text: `the gateway forgets ${id} at ${forgotten}, and it is not proven`,
        hint: "Such runs come first in each execution: run the job now, with a longer deadline or higher budget if it does not reach them.",
      }),
    );
  }
  for (const line of night.after ?? []) {
    if (line.result === "failed" && !isJobs(line.error, night)) add(afterTrouble(at, line));
  }
  const full = diskTrouble(night, before);
  if (full !== null) add(full);

  for (const trouble of before) {
    if (found.has(trouble.key) || trouble.mended !== null) continue;
    if (!isJudged(trouble, night, runLines, gone)) found.set(trouble.key, trouble);
  }
  return [...found.values()];
}

/** Whether an execution could tell that a trouble it did not find is over. */
function isJudged(
  { kind, key, instance, run, table }: Trouble,
  night: NightSeen,
  runLines: ReadonlyMap<string, RunLine>,
  gone: ReadonlySet<string>,
): boolean {
  switch (kind) {
    case "job":
      return !isStopped(night.error);
    case "missed":
    case "died":
      return true;
    case "disk":
      return night.disk !== null;
    case "after": {
      const tried = night.after?.filter(({ error }) => !isJobs(error, night));
      const keys = tried?.map((line) => afterKey(line)) ?? [];
      // a run's books are checked when it is committed, and stay as they are until then
      if (instance !== null && run !== null) {
        const isAsked = key.startsWith("after:report:") ? night.reports : night.reconciles;
        return keys.includes(key) || gone.has(idOf(instance, run)) || !isAsked;
      }
      // an export that was removed from the file is over as well, once the others are made
      return keys.includes(key) || (night.after !== null && night.error === null);
    }
    case "gone":
    case "run":
    case "table":
    case "expiring": {
      if (instance === null || run === null) return true;
      const id = idOf(instance, run);
      if (gone.has(id)) return true;
      if (kind === "expiring") return night.expiring !== null;
      const line = runLines.get(id);
      if (line === undefined) return night.looked(refOf(instance, run));
      if (settled.has(line.result)) return true;
      if (isJobs(line.error, night)) return false;
      return line.result === "failed" && table !== null && Object.hasOwn(line.tables, table);
    }
  }
}

/** Whether an error is the one that ended the whole execution: it is reported once, and not for its run or export. */
function isJobs(error: RecordedError | null, { error: ended }: Pick<NightSeen, "error">): boolean {
  return error !== null && ended !== null && error.code === ended.code && error.message === ended.message;
}

/** Whether work on a run was finished, well or badly. */
function isEnded({ result }: RunLine): boolean {
  return settled.has(result) || result === "failed";
}

function jobTrouble({ at, begin, exit: status, error }: NightSeen): Trouble | null {
  // the one who stopped it knows
  if ((status === exit.done && error === null) || isStopped(error)) return null;
  return made(at, "job", null, {
    level: String(status),
    text: `the job ${begin.job} ended with exit status ${status}${error === null ? "" : `: ${error.message}`}`,
    hint: error?.hint ?? "`runvault jobs show` shows the result of each run.",
  });
}

function isStopped(error: RecordedError | null): boolean {
  return error?.code === "interrupted";
}

/** Open troubles without those that somebody has accepted since: they are not resolved, but no longer reported. */
export function stillOpen(
  before: readonly Trouble[],
  { unproven, runs }: Pick<NightSeen, "unproven" | "runs">,
): readonly Trouble[] {
  const accepted = new Set([
    ...unproven.flatMap((one) => (one.accepted ? [tableKey(one)] : [])),
    ...runs.flatMap(({ instance, run, tables }) =>
      Object.entries(tables).flatMap(([table, line]) =>
        line.accepted ? [tableKey({ instance, run, table })] : [],
      ),
    ),
  ]);
  return before.filter(({ key }) => !accepted.has(key));
}

function tableKey({ instance, run, table }: Pick<UnprovenTable, "instance" | "run" | "table">): string {
  return keyOf("table", `${idOf(instance, run)}/${table}`);
}

function tableTrouble(at: string, { instance, run, table, state, error }: UnprovenTable): Trouble {
  const id = idOf(instance, run);
  return made(at, "table", `${id}/${table}`, {
    ...{ instance, run, table, level: state },
    text: `${table} of ${id} is ${state}${error === null ? "" : `: ${error.message}`}`,
    hint: `${error?.hint ?? "The next execution tries it again."} If the fault is known, \`runvault maintain accept ${toCopy(id)} ${table} --reason TEXT\` accepts it.`,
  });
}

function afterKey({ what, out }: AfterLine): string {
  return keyOf("after", out === null ? what : `${what}:${out}`);
}

function afterTrouble(at: string, line: AfterLine): Trouble {
  const { what, out, error } = line;
  const subjects = {
    verify: "the verification",
    reconcile: `the reconciliation of ${out ?? "a run"}`,
    report: `the report of ${out ?? "a run"}`,
    keep: "the removal of old runs",
    export: `the export to ${out ?? "its file"}`,
  };
  const subject = subjects[what];
  const run = (what === "reconcile" || what === "report") && out !== null ? parseRun(out) : null;
  return {
    ...made(at, "after", null, {
      ...(run === null ? {} : { instance: run.instanceId, run: run.runId }),
      level: String(error?.exit ?? exit.bug),
      text: `${subject} failed${error === null ? "" : `: ${error.message}`}`,
      hint: error?.hint ?? "The next execution tries it again.",
    }),
    key: afterKey(line),
  };
}

function diskTrouble({ at, disk }: NightSeen, before: readonly Trouble[]): Trouble | null {
  if (disk?.nights == null) return null;
  const was = before.some(({ kind, mended }) => kind === "disk" && mended === null);
  // one night more before it is over, or a disk at the edge would be reported every other night
  if (disk.nights >= (was ? fewNights + 1 : fewNights)) return null;
  return made(at, "disk", null, {
    level: String(Math.min(disk.nights, fewNights)),
    text: `the disk of the archive has room for ${countText(disk.nights, "more night")}`,
    hint: "Free some space, for example with `runvault gc` or `runvault rm --older-than 90d`, or move the archive to a larger disk.",
  });
}

function made(
  at: string,
  kind: TroubleKind,
  of: string | null,
  told: Pick<Trouble, "level" | "text" | "hint"> & Partial<Pick<Trouble, "instance" | "run" | "table">>,
): Trouble {
  return {
    ...{ key: keyOf(kind, of), kind, instance: null, run: null, table: null },
    ...told,
    ...{ since: at, told: null, mended: null },
  };
}

function keyOf(kind: TroubleKind, of: string | null): string {
  return of === null ? kind : `${kind}:${of}`;
}

function refOf(instanceId: string, runId: string): RunRef {
  return { instanceId, runId };
}

/** A run's name in a command for copying; a placeholder if a shell would misread the name. */
function toCopy(id: string): string {
  return /^[\w.%/:+-]+$/.test(id) && !id.startsWith("-") ? id : "INSTANCE/RUN";
}

/** INSTANCE/RUN, as commands take it. */
function idOf(instance: string, run: string): string {
  return formatRun(refOf(instance, run));
}
