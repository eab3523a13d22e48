import { countText } from "../../model/text/plural.ts";
import { formatTime } from "../../model/time.ts";
import { instantOf, macroRows } from "../section/macro-rows.ts";
import type { MeasuredRun } from "../section/section.ts";

/** Most flows that are listed one by one. */
const most = 5;

/**
 * Notes about deposits and withdrawals left out of the returns, or that they are unknown because there are no events.
 */
export async function flowNotes(run: MeasuredRun): Promise<readonly string[]> {
  const state = run.manifest.tables.events?.state;
  if (state === undefined) {
    return ["events were never archived: deposits and withdrawals are unknown and count as returns"];
  }
  const flows = await macroRows(run, {
    macro: "session_returns",
    select: "flow, epoch_ns(ts) AS ts",
    rest: "WHERE flow <> 0",
  });
  if (flows.length === 0) return [];
  const listed = flows
    .slice(0, most)
    .map(
      ({ flow, currency, ts }) =>
        `${Number(flow) > 0 ? "+" : ""}${Number(flow)} ${currency} by ${formatTime(instantOf(ts))}`,
    );
  const more = flows.length > most ? ` and ${flows.length - most} more` : "";
  return [
    `deposits and withdrawals in ${countText(flows.length, "period")} are not returns: ${listed.join(", ")}${more}`,
  ];
}
