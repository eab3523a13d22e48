import { isoOf } from "../../model/time.ts";
import type { BeginLine, ToldLine } from "../record/job-record.ts";
import { testMessage } from "./message.ts";
import { heartbeatTeller, pushgatewayTeller, type Tellers } from "./open-tellers.ts";
import { type Teller, tellOne, wholeTime } from "./tell-one.ts";
import { textfileTest } from "./write-textfile.ts";

/**
 * Tests every notifier of a job file in parallel: a test message, a heartbeat as for a success, no metrics. Never
 * throws; the heartbeat has one line for its start and end.
 */
export async function tellTest(
  tellers: Tellers,
  begin: Pick<BeginLine, "job" | "host" | "tool">,
): Promise<readonly ToldLine[]> {
  const { heartbeat, listeners, textfile, pushgateway } = tellers;
  using time = wholeTime(tellers.times, tellers.signal);
  const context = { ...tellers, signal: time.signal };
  const message = testMessage(begin, isoOf(tellers.clock()));
  const tell = async (teller: Teller) => await tellOne(teller, context);
  const told: Promise<ToldLine>[] = [];
  if (heartbeat !== null) {
    told.push(
      tell(heartbeatTeller(heartbeat, "start")).then(async (started) =>
        started.result === "failed" ? started : await tell(heartbeatTeller(heartbeat, "done")),
      ),
    );
  }
  for (const { teller } of listeners) told.push(tell(teller(message)));
  if (textfile !== null) told.push(tell(textfileTest(textfile)));
  // without metrics the Pushgateway keeps the ones that it has
  if (pushgateway !== null) told.push(tell(pushgatewayTeller(pushgateway, "")));
  return await Promise.all(told);
}
