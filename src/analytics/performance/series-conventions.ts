import type { MetricsOptions } from "../section/metrics-options.ts";
import { ratesText } from "../section/read-rates.ts";

/** How the return series is sampled, in the words of a heading. */
export function seriesConventions({ session, fill, base, rates }: MetricsOptions): string {
  const sampled = session === "bars" ? "a period for each equity row" : `sessions ${session}`;
  return [
    sampled,
    ...(fill ? ["days without rows filled"] : []),
    `base ${base}`,
    ...(rates === null ? [] : [ratesText(rates)]),
  ].join(", ");
}

/** How figures of a year come from it. */
export function yearConventions({ session, fill, periods, rf, log }: MetricsOptions): string {
  const year =
    periods === "data"
      ? "P from the data"
      : periods !== null
        ? `P ${periods}`
        : session === "bars"
          ? "P by the interval"
          : `P ${fill ? 365 : 252}`;
  return `${log ? "log" : "simple"} returns, ${year}, rf ${rf}`;
}
