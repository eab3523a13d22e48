import { instantOf } from "../../analytics/section/macro-rows.ts";
import type { MeasuredRun } from "../../analytics/section/section.ts";
import type { Nanoseconds } from "../../model/time.ts";

export interface ToldEvent {
  readonly ts: Nanoseconds;
  readonly kind: string;
  readonly severity: string;
  readonly message: string;
  /** With its currency; empty if no money moved. */
  readonly amount: string;
}

export interface EventsRead {
  readonly count: number;
  /** The first of each kind and severity in each stretch of time; in the order of time. */
  readonly drawn: readonly ToldEvent[];
  /** A few of each kind, chosen by severity; in the order of time. */
  readonly listed: readonly ToldEvent[];
  /** By kind and severity. */
  readonly kinds: readonly { readonly kind: string; readonly severity: string; readonly count: number }[];
}

/** Number of time intervals from which a chart shows one event per kind; also the most that are listed. */
const stretches = 300;
const mostDrawn = 2_000;
const mostListed = 50;

/** The most severe first. */
const gravity = "coalesce(list_position(['CRITICAL', 'ERROR', 'WARNING', 'INFO', 'DEBUG'], severity), 0)";

/** What happened to a run. */
export async function readEvents({ connection }: MeasuredRun): Promise<EventsRead> {
  const counted = await connection.runAndReadAll(
    "SELECT kind, severity, count(*) FROM events GROUP BY ALL ORDER BY ALL",
  );
  const kinds = counted.getRows().map(([kind, severity, count]) => ({
    ...{ kind: String(kind), severity: String(severity), count: Number(count) },
  }));
  const chosen = async (nth: string, order: string, most: number): Promise<readonly ToldEvent[]> => {
    const result = await connection.runAndReadAll(`
      SELECT epoch_ns(ts_event), kind, severity, message, trim(concat(CAST(amount AS VARCHAR), ' ', currency)) FROM (
        SELECT *, row_number() OVER (PARTITION BY ${nth} ORDER BY ts_event, seq) AS nth FROM (
          SELECT *, epoch_ns(ts_event) - min(epoch_ns(ts_event)) OVER () AS since,
            max(epoch_ns(ts_event)) OVER () - min(epoch_ns(ts_event)) OVER () AS span
          FROM events)
        ORDER BY ${order}, ts_event, seq LIMIT ${most})
      ORDER BY ts_event, seq`);
    return result.getRows().map(([ts, kind, severity, message, amount]) => ({
      ...{ ts: instantOf(ts), kind: String(kind), severity: String(severity), message: String(message) },
      amount: String(amount).replace(/^(-?\d+)\.?0*(?=\s|$)|(\.\d*?)0+(?=\s|$)/, "$1$2"),
    }));
  };
  const stretch = `kind, severity, since // greatest(span // ${stretches}, 1)`;
  return {
    count: kinds.reduce((sum, { count }) => sum + count, 0),
    drawn: await chosen(stretch, `nth > 1, ${gravity}`, mostDrawn),
    listed: await chosen("kind, severity", `nth, ${gravity}`, mostListed),
    kinds,
  };
}
