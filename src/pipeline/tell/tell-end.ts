import { exit } from "../../model/error.ts";
import type { BeginLine, ResultLine, RunLine, ToldLine } from "../record/job-record.ts";
import type { Changes } from "./changes.ts";
import { lastSuccessIn, metricsText } from "./metrics.ts";
import { heartbeatNotifier, type Notifiers, pushgatewayNotifier } from "./open-notifiers.ts";
import { type ToldChanges, tellListeners } from "./tell-changes.ts";
import { type TellContext, tellOne, wholeTime } from "./tell-one.ts";
import { textfileNotifier } from "./write-textfile.ts";

/** An execution that ended. */
export interface EndToTell {
  readonly begin: BeginLine;
  readonly result: Omit<ResultLine, "troubles">;
  readonly runs: readonly RunLine[];
  readonly changes: Changes;
  /** End of the last earlier execution that succeeded, by the records; null if unknown. */
  readonly lastSuccess: string | null;
  /** When the schedule starts the job next; null without a schedule. */
  readonly nextStart: string | null;
}

/**
 * Notifies about an execution's end: always the heartbeat, and webhook and command of changes, all in parallel; then
 * the metrics, which count failed notifications. Never throws, changes no exit status, and takes at most about a
 * minute. Notifications about the start must be over: a heartbeat's start must not arrive after its end.
 */
export async function tellEnd(notifiers: Notifiers, end: EndToTell): Promise<ToldChanges> {
  using time = wholeTime(notifiers.times, notifiers.signal);
  const context = { ...notifiers, signal: time.signal };
  const beat = end.result.exit === exit.done ? "done" : "fail";
  const [beats, changed] = await Promise.all([
    notifiers.heartbeat === null ? [] : tellOne(heartbeatNotifier(notifiers.heartbeat, beat), context),
    tellListeners(notifiers, end, context),
  ]);
  const lines = [beats, changed.told].flat();
  const failed = lines.filter(({ result }) => result === "failed").length;
  return {
    told: [...lines, ...(await tellFigures(notifiers, end, failed, context))],
    troubles: changed.troubles,
  };
}

async function tellFigures(
  { textfile, pushgateway }: Notifiers,
  end: EndToTell,
  notifiersFailed: number,
  context: TellContext,
): Promise<readonly ToldLine[]> {
  const { job } = end.begin;
  const figures = (lastSuccess: string | null) => metricsText({ ...end, lastSuccess, notifiersFailed });
  const lines: Promise<ToldLine>[] = [];
  if (textfile !== null) {
    const text = async (old: string) => await figures(end.lastSuccess ?? lastSuccessIn(old, job));
    lines.push(tellOne(textfileNotifier(textfile, text), context));
  }
  if (pushgateway !== null) {
    lines.push(tellOne(pushgatewayNotifier(pushgateway, await figures(end.lastSuccess)), context));
  }
  return await Promise.all(lines);
}
