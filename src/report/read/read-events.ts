import { instantOf } from "../../analytics/performance/macro-rows.ts";
import type { MeasuredRun } from "../../analytics/performance/section.ts";
import type { Nanoseconds } from "../../model/time.ts";

export interface ToldEvent {
  readonly ts: Nanoseconds;
  readonly kind: string;
  readonly severity: string;
  readonly message: string;
  /** With its currency; empty where no money moved. */
  readonly amount: string;
}

export interface EventsRead {
  readonly count: number;
  /** The worst first, then the first; in the order of time. */
  readonly events: readonly ToldEvent[];
  /** By kind and severity. */
  readonly kinds: readonly { readonly kind: string; readonly severity: string; readonly count: number }[];
}

/** Events that are told one by one. */
const most = 400;

/** What happened to a run; of many events those of the gravest severity, and the first of their kinds. */
export async function readEvents({ connection }: MeasuredRun): Promise<EventsRead> {
  const counted = await connection.runAndReadAll(
    "SELECT kind, severity, count(*) FROM events GROUP BY ALL ORDER BY ALL",
  );
  const kinds = counted.getRows().map(([kind, severity, count]) => ({
    ...{ kind: String(kind), severity: String(severity), count: Number(count) },
  }));
  const result = await connection.runAndReadAll(`
    SELECT epoch_ns(ts_event), kind, severity, message, trim(concat(CAST(amount AS VARCHAR), ' ', currency)) FROM (
      SELECT *, row_number() OVER (PARTITION BY kind, severity ORDER BY ts_event, seq) AS nth FROM events
      ORDER BY list_position(['ERROR', 'CRITICAL'], severity) IS NULL, severity <> 'WARNING', nth, ts_event, seq LIMIT ${most})
    ORDER BY ts_event, seq`);
  const events = result.getRows().map(([ts, kind, severity, message, amount]) => ({
    ...{ ts: instantOf(ts), kind: String(kind), severity: String(severity), message: String(message) },
    amount: String(amount)
      .replace(/(\.\d*?)0+(?=\s|$)/, "$1")
      .replace(/\.(?=\s|$)/, ""),
  }));
  return { count: kinds.reduce((sum, { count }) => sum + count, 0), events, kinds };
}
