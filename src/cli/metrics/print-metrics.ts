import { measureRuns } from "../../analytics/performance/measure-runs.ts";
import { exit } from "../../model/error.ts";
import type { RunRef } from "../../model/source.ts";
import type { MetricsValues } from "../options/metrics-values.ts";
import type { Session } from "../process/session.ts";
import { askedFigures } from "./asked-figures.ts";
import { metricsText } from "./metrics-text.ts";

/** Computes and prints the figures of the runs named. */
export async function printMetrics(
  runs: readonly RunRef[],
  values: MetricsValues,
  session: Session,
): Promise<number> {
  const { archive, manifests, options } = await askedFigures(runs, values, session);
  const document = await measureRuns(archive, manifests, options);
  const { columns } = session.terminal;
  await session.print(
    session.json ? `${JSON.stringify(document, null, 2)}\n` : metricsText(document, columns ?? widest),
  );
  return exit.done;
}

/** Where there is no terminal. */
const widest = 120;
