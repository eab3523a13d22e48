import type { MetricsOptions } from "../section/metrics-options.ts";
import { ratesText } from "../section/read-rates.ts";

/** How the return series is sampled, in the words of a heading. */
export function seriesConventions({ session, fill, base, rates }: MetricsOptions): string {
  const sampled =
    session === "bars"
      ? "one return per equity row"
      : `daily returns (${session === "utc" ? "UTC days" : `sessions ${session}`})`;
  return [
    sampled,
    ...(fill ? ["days without rows filled"] : []),
    base === "deposit" ? "on the first deposit" : "on the equity of the first session",
    ...(rates === null ? [] : [ratesText(rates)]),
  ].join(", ");
}

/** How figures of a year come from it. */
export function yearConventions({ session, fill, periods, rf, log }: MetricsOptions): string {
  const year =
    periods === "data"
      ? "periods a year from the data"
      : periods !== null
        ? `${periods} periods a year`
        : session === "bars"
          ? "periods a year from the interval"
          : `${fill ? 365 : 252} days a year`;
  return `${log ? "log" : "simple"} returns, ${year}, risk-free rate ${rf}`;
}
