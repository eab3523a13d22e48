import { isoOf } from "../../model/time.ts";
import type { BeginLine, ToldLine } from "../record/job-record.ts";
import { testMessage } from "./message.ts";
import { heartbeatNotifier, type Notifiers, pushgatewayNotifier } from "./open-notifiers.ts";
import { type Notifier, tellOne, wholeTime } from "./tell-one.ts";
import { textfileTest } from "./write-textfile.ts";

/**
 * Tests every notifier of a job file in parallel: a test message, a heartbeat as for a success, no metrics. Never
 * throws; the heartbeat has one line for its start and end.
 */
export async function tellTest(
  notifiers: Notifiers,
  begin: Pick<BeginLine, "job" | "host" | "tool">,
): Promise<readonly ToldLine[]> {
  const { heartbeat, listeners, textfile, pushgateway } = notifiers;
  using time = wholeTime(notifiers.times, notifiers.signal);
  const context = { ...notifiers, signal: time.signal };
  const message = testMessage(begin, isoOf(notifiers.clock()));
  const tell = async (notifier: Notifier) => await tellOne(notifier, context);
  const told: Promise<ToldLine>[] = [];
  if (heartbeat !== null) {
    told.push(
      tell(heartbeatNotifier(heartbeat, "start")).then(async (started) =>
        started.result === "failed" ? started : await tell(heartbeatNotifier(heartbeat, "done")),
      ),
    );
  }
  for (const { notifier } of listeners) told.push(tell(notifier(message)));
  if (textfile !== null) told.push(tell(textfileTest(textfile)));
  // without metrics the Pushgateway keeps the ones that it has
  if (pushgateway !== null) told.push(tell(pushgatewayNotifier(pushgateway, "")));
  return await Promise.all(told);
}
