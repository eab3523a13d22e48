import { parseTime } from "../../model/time.ts";
import { barMicros } from "../bars/bars.ts";
import type { SimulatorOptions } from "../simulator-options.ts";
import type { RenderedRun } from "../store/render-run.ts";

type Numbering = Pick<SimulatorOptions, "runs" | "templates" | "growing">;

const dayMinutes = 1440;
const minuteMicros = 60_000_000;
const growingFrom = micros("2024-01-01");
const finishedFrom = micros("2022-01-01");
/** Times before 2001-09-09 have fewer than 19 digits, so moving one could change a line's length. */
const earliest = micros("2002-01-01");
const lettersOfInstances = [
  "alpha",
  "beta",
  "gamma",
  "delta",
  "epsilon",
  "zeta",
  "eta",
  "theta",
  "iota",
  "kappa",
];

/** The name of an instance, counted from 0: alpha-1, beta-2, … */
export function instanceIdOf(instance: number): string {
  return `${lettersOfInstances[instance % lettersOfInstances.length]!}-${instance + 1}`;
}

/** The numbers, from 0, of an instance's rendered runs, in order. */
export function renderedNumbers(options: Numbering): number[] {
  const templates = templateCount(options);
  const last = options.runs - 1;
  const numbers = Array.from({ length: templates }, (_, run) => run);
  return options.growing ? [...numbers, last] : numbers;
}

/** The number of an instance's rendered runs that have ended; other runs may reuse their rows. */
export function templateCount({ runs, templates, growing }: Numbering): number {
  const ended = growing ? runs - 1 : runs;
  return Math.min(ended, templates ?? ended);
}

/** When a run with bars for this many days begins: each run on its own day. */
export function startMicrosOf(options: Numbering, run: number, days: number): number {
  if (options.growing && run === options.runs - 1) return growingFrom;
  if (options.templates === undefined) return finishedFrom + run * days * dayMinutes * minuteMicros;
  const room = (growingFrom - earliest) / minuteMicros;
  // with more runs than days they begin closer together, and may overlap
  const step = Math.min(days * dayMinutes, Math.floor(room / options.runs)) * minuteMicros;
  return Math.min(finishedFrom, growingFrom - options.runs * step) + run * step;
}

/** A run is named for its first day, in UTC, and its number among the instance's runs. */
export function runIdOf({ templates }: Numbering, firstCloseMicros: number, run: number): string {
  // a template's lines are served under other ids of the same length
  const digits = templates === undefined ? 3 : 6;
  const day = new Date(firstCloseMicros / 1000).toISOString().slice(0, 10);
  return `${day}-${String(run + 1).padStart(digits, "0")}`;
}

/** A run that reuses a template's rows under its own id, later by this many microseconds. */
export function movedRun<Run extends Omit<RenderedRun, "tables">>(
  options: Numbering,
  template: Run,
  run: number,
  byMicros: number,
): Run & { readonly movedBy: bigint } {
  const movedBy = BigInt(byMicros) * 1000n;
  const later = (time: string) => String(BigInt(time) + movedBy);
  const started = later(template.started);
  return {
    ...template,
    runId: runIdOf(options, Number(BigInt(started) / 1000n) + barMicros, run),
    started,
    ended: later(template.ended),
    complete: later(template.complete),
    movedBy,
  };
}

function micros(day: string): number {
  return Number(parseTime(day) / 1000n);
}
