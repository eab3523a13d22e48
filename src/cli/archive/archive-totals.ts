import { exit } from "../../model/error.ts";
import { byteText } from "../../model/text/byte-text.ts";
import { grouped, tookText } from "../../model/text/number-text.ts";
import { plural } from "../../model/text/plural.ts";
import type { RunReport } from "./archive-report.ts";

/** Results of runs, in words. Each run counts in one class, so they add up. */
const classes = {
  upToDate: "up to date",
  fetched: "fetched",
  quarantined: "quarantined",
  unverified: "unverified",
  incomplete: "incomplete",
  /** Committed but not as requested: a run without any present table. */
  notProven: "not proven",
  failed: "failed",
  stopped: "stopped",
  notTried: "not tried",
} as const;

type RunClass = keyof typeof classes;

/** Sums over all runs of a job. */
export class ArchiveTotals {
  readonly #counts = new Map<RunClass, number>();
  #rows = 0;
  #bytes = 0;
  #retries = 0;

  add(report: RunReport): void {
    this.#count(classOf(report), 1);
    this.#rows += report.outcome?.rows ?? 0;
    this.#bytes += report.outcome?.bytes ?? 0;
    this.#retries += report.retries;
  }

  addNotTried(runs: number): void {
    this.#count("notTried", runs);
  }

  get #runs(): number {
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
  }

  json(seconds: number) {
    const counts = Object.keys(classes).map((name) => [name, this.#counts.get(name as RunClass) ?? 0]);
    return {
      runs: this.#runs,
      ...(Object.fromEntries(counts) as Record<RunClass, number>),
      fetchedRows: this.#rows,
      fetchedBytes: this.#bytes,
      retries: this.#retries,
      seconds,
    };
  }

  /** `400 runs: 396 up to date, 3 fetched, 1 incomplete; 1,234,567 rows, 210.3 MB fetched in 2 min 14 s`. */
  text(seconds: number): string {
    const counts = Object.entries(classes).flatMap(([name, words]) => {
      const count = this.#counts.get(name as RunClass) ?? 0;
      return count === 0 ? [] : [`${grouped(count)} ${words}`];
    });
    const took = tookText(seconds * 1000);
    const rows = `${grouped(this.#rows)} ${plural(this.#rows, "row")}, ${byteText(this.#bytes)} fetched`;
    // runs that ended before their commit may have fetched some
    const what = this.#rows === 0 ? `took ${took}` : `${rows} in ${took}`;
    const runs = `${grouped(this.#runs)} ${plural(this.#runs, "run")}`;
    return `${runs}: ${counts.join(", ")}; ${what}\n`;
  }

  #count(name: RunClass, runs: number): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + runs);
  }
}

function classOf({ outcome, error, exit: status }: RunReport): RunClass {
  if (outcome === null) {
    if (error?.code === "interrupted") return "stopped";
    return error?.code === "incomplete" ? "incomplete" : "failed";
  }
  if (status === exit.done) return outcome.changed ? "fetched" : "upToDate";
  switch (outcome.manifest.state) {
    case "QUARANTINED":
      return "quarantined";
    case "UNVERIFIED":
      return "unverified";
    case "INCOMPLETE":
      return "incomplete";
    default:
      return "notProven";
  }
}
