import type { ListFinding } from "../../extract/choose/list-finding.ts";
import { formatRun } from "../../model/run-argument.ts";
import { byteText } from "../../model/text/byte-text.ts";
import { grouped } from "../../model/text/number-text.ts";
import { countText } from "../../model/text/plural.ts";
import { visible } from "../../model/text/visible-text.ts";
import type { PlannedJob, PlannedJobRun } from "../../pipeline/execute/plan-job.ts";
import type { RecordLine } from "../../pipeline/record/job-record.ts";
import { findingJson } from "../archive/list-findings.ts";
import { ReportStream } from "../output/report-stream.ts";
import type { Session } from "../process/session.ts";
import { countsText } from "./counts-text.ts";
import { lineText } from "./job-line-text.ts";

/** Reports executions on standard output as they proceed. With --quiet the text has only what is wrong. */
export class JobTelling {
  readonly #stream: ReportStream;
  readonly #session: Session;
  readonly #jobs: string[] = [];

  constructor(session: Session) {
    this.#session = session;
    this.#stream = new ReportStream(session);
  }

  /** A record line, when it is added; `toCopy` makes commands in hints work on the job's archive. */
  async line(job: string, line: RecordLine, toCopy: (text: string) => string): Promise<void> {
    const { kind, ...rest } = line;
    const { globals, paint } = this.#session;
    this.#add(job);
    await this.#stream.tell(
      kind,
      () => ({ ...rest, job }),
      () => lineText(job, line, { globals, paint, toCopy }),
    );
  }

  /** A finding about a gateway's lists, in JSON; as text it goes to standard error. */
  async finding(job: string, finding: ListFinding): Promise<void> {
    this.#add(job);
    await this.#stream.tell(
      "list",
      () => ({ job, ...findingJson(finding) }),
      () => "",
    );
  }

  /** The plan for a run. */
  async plannedRun(job: string, run: PlannedJobRun): Promise<void> {
    const { instanceId, runId, plan, rows, diskBytes, error } = run;
    this.#add(job);
    const isSilent = this.#session.globals.quiet || (plan === "unchanged" && !this.#session.globals.verbose);
    const need =
      error !== null
        ? `failed: ${error.code}`
        : rows === null
          ? plan === "unchanged" || plan === "gone"
            ? ""
            : "rows unknown"
          : `${grouped(rows)} rows, about ${byteText(diskBytes ?? 0)}`;
    await this.#stream.tell(
      "planned",
      () => ({ job, instance: instanceId, run: runId, plan, rows, diskBytes, error: error?.code ?? null }),
      () =>
        isSilent ? "" : `${plan.padEnd(9)}  ${visible(formatRun(run))}${need === "" ? "" : `  ${need}`}\n`,
    );
  }

  /** The plan of an execution. */
  async planned(job: string, totals: PlannedJob): Promise<void> {
    this.#add(job);
    const { counts, neededBytes, freeBytes, fits, toRemove } = totals;
    const words = countsText(counts);
    const old =
      toRemove.runs === 0
        ? ""
        : `; ${countText(toRemove.runs, "old run")} to remove, ${byteText(toRemove.bytes)}`;
    const room = fits ? "" : ", which is not enough";
    await this.#stream.tell(
      "totals_planned",
      () => ({ job, ...totals }),
      () =>
        this.#session.globals.quiet && fits
          ? ""
          : `${job}: ${words}; about ${byteText(neededBytes)} of disk needed, ${byteText(freeBytes)} free${room}${old}; nothing was written\n`,
    );
  }

  /** The overall result. Throws the output's failure. */
  async end(status: number): Promise<void> {
    await this.#stream.end(
      { exit: status },
      (of) => ({ exit: status, jobs: this.#jobs.map((job) => documentOf(job, of)) }),
      () => "",
    );
  }

  #add(job: string): void {
    if (!this.#jobs.includes(job)) this.#jobs.push(job);
  }
}

function documentOf(job: string, of: (type: string) => readonly object[]) {
  const told = (kind: string) =>
    of(kind)
      .filter((one) => (one as { readonly job?: string }).job === job)
      .map(({ job: _, ...rest }: { job?: string }) => rest);
  const [begin = null] = told("begin");
  const [plan = null] = told("plan");
  const [result = null] = told("result");
  const [totals = null] = told("totals_planned");
  const common = { job, lists: told("list") };
  if (totals !== null) return { ...common, planned: told("planned"), totals };
  return { ...common, begin, plan, runs: told("run"), after: told("after"), told: told("told"), result };
}
