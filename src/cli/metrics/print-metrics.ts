import { measureRuns } from "../../analytics/metrics/measure-runs.ts";
import { exit, type RunvaultError } from "../../model/error.ts";
import type { RunRef } from "../../model/source.ts";
import type { MetricsValues } from "../options/metrics-values.ts";
import type { Session } from "../process/session.ts";
import { askedFigures } from "./asked-figures.ts";
import { metricsText } from "./metrics-text.ts";

/** Computes and prints the figures of the named runs. */
export async function printMetrics(
  runs: readonly RunRef[],
  values: MetricsValues,
  session: Session,
): Promise<number> {
  const { archive, manifests, options } = await askedFigures(runs, values, session);
  let refused: RunvaultError | null = null;
  const document = await measureRuns(archive, manifests, {
    ...options,
    onRefused: (error) => {
      refused = error;
    },
  });
  const { columns } = session.terminal;
  await session.print(
    session.json ? `${JSON.stringify(document, null, 2)}\n` : metricsText(document, columns ?? widest),
  );
  // after the output: a missing section must not pass unnoticed
  if (refused !== null) throw refused;
  return exit.done;
}

/** Width without a terminal. */
const widest = 120;
