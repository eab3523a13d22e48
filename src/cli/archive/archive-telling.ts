import type { ArchiveTarget } from "../../extract/choose/choose-runs.ts";
import type { ListFinding } from "../../extract/choose/list-finding.ts";
import { exit } from "../../model/error.ts";
import { formatRun } from "../../model/run-argument.ts";
import type { RunRef } from "../../model/source.ts";
import { grouped } from "../../model/text/number-text.ts";
import { plural } from "../../model/text/plural.ts";
import { visible } from "../../model/text/visible-text.ts";
import type { ReportForm } from "../options/report-form.ts";
import { ReportStream } from "../output/report-stream.ts";
import type { Session } from "../process/session.ts";
import type { RunReport } from "./archive-report.ts";
import { reportJson } from "./archive-report-json.ts";
import { reportText } from "./archive-report-text.ts";
import { ArchiveTotals } from "./archive-totals.ts";
import { findingJson } from "./list-findings.ts";

/** Reports each run when it is committed, and the totals. With --quiet the text has only what is wrong. */
export class ArchiveTelling {
  readonly form: ReportForm;
  readonly stream: ReportStream;
  readonly #session: Session;
  readonly #quiet: boolean;
  readonly #hasTotals: boolean;
  readonly #totals = new ArchiveTotals();
  readonly #startedMs = performance.now();
  #runs = 0;

  constructor(session: Session, target: ArchiveTarget, runs: readonly RunRef[]) {
    const { paint, globals, terminal } = session;
    const isNamed = target.kind === "runs";
    this.#session = session;
    this.stream = new ReportStream(session);
    this.#quiet = globals.quiet;
    this.#hasTotals = runs.length > 1 || !isNamed;
    this.form = {
      paint,
      columns: terminal.columns,
      withTables: isNamed || globals.verbose,
      nameColumns: Math.min(40, Math.max(0, ...runs.map((run) => visible(formatRun(run)).length))),
    };
  }

  /** Reports them in JSON; as text they go to standard error. */
  async findings(findings: readonly ListFinding[]): Promise<void> {
    const silent = () => "";
    for (const finding of findings) await this.stream.tell("list", () => findingJson(finding), silent);
  }

  /** Reports a run that the gateway no longer lists and that cannot be planned. */
  async notListed({ instanceId, runId }: RunRef): Promise<void> {
    const words = "no longer listed: run without --dry-run to see what becomes of it";
    await this.stream.tell(
      "not_listed",
      () => ({ instanceId, runId }),
      () => (this.#quiet ? "" : `${this.#nameOf({ instanceId, runId })}  ${words}\n`),
    );
  }

  async run(report: RunReport): Promise<void> {
    this.#runs++;
    this.#totals.add(report);
    const isSilent = this.#quiet && report.exit === exit.done;
    await this.stream.tell(
      "run",
      () => reportJson(report, this.#session.toCopy),
      () => (isSilent ? "" : this.#session.toCopy(reportText(report, this.form))),
    );
  }

  /** Reports runs that the job did not reach: as text only the first ones by name, in JSON all. */
  async notTried(runs: readonly RunRef[]): Promise<void> {
    this.#runs += runs.length;
    this.#totals.addNotTried(runs.length);
    for (const [index, { instanceId, runId }] of runs.entries()) {
      await this.stream.tell(
        "not_tried",
        () => ({ instanceId, runId }),
        () => (index < mostNamed ? `${this.#nameOf({ instanceId, runId })}  not tried\n` : ""),
      );
    }
    const more = runs.length - mostNamed;
    if (more > 0) await this.stream.say(`${grouped(more)} more ${plural(more, "run")} not tried\n`);
  }

  async end(status: number): Promise<void> {
    const seconds = Math.round(performance.now() - this.#startedMs) / 1000;
    const peakMemoryMb = Math.round(process.resourceUsage().maxRSS / 1024);
    const totals = this.#totals.json(seconds);
    await this.stream.end(
      { exit: status, peakMemoryMb, ...totals },
      (of) => ({
        exit: status,
        peakMemoryMb,
        totals,
        lists: of("list"),
        runs: of("run"),
        notTried: of("not_tried"),
      }),
      () => this.#endText(seconds),
    );
  }

  #nameOf(run: RunRef): string {
    return visible(formatRun(run)).padEnd(this.form.nameColumns);
  }

  #endText(seconds: number): string {
    if (this.#quiet) return "";
    if (this.#runs === 0) return "no runs to archive\n";
    return this.#hasTotals ? this.#totals.text(seconds) : "";
  }
}

const mostNamed = 10;
