import { literal } from "../../duckdb/sql.ts";
import { unlessUnclear } from "../section/macro-rows.ts";
import type { MeasuredRun } from "../section/section.ts";

/**
 * Makes the macros sample a run's equity only once for everything that is read meanwhile. Dispose it before reading
 * with other options, another run, or other views than the run's own. Throws `NothingToSay` if the rows leave open what
 * the series is.
 */
export async function samplePoints({ connection, run, options }: MeasuredRun): Promise<AsyncDisposable> {
  const { base, session, fill } = options;
  const args = [
    ...[literal(run.instanceId), literal(run.runId), `base := ${literal(base)}`],
    ...[`session := ${literal(session)}`, `fill := ${fill}`],
  ];
  await unlessUnclear(() =>
    connection.run(`CREATE OR REPLACE TEMP TABLE sampled_points AS FROM session_points(${args.join(", ")})`),
  );
  await connection.run(`
    CREATE OR REPLACE TEMP MACRO session_points(instance, run, base := NULL, session := NULL, fill := NULL) AS TABLE
    FROM sampled_points`);
  return {
    [Symbol.asyncDispose]: async () => {
      await connection.run("DROP MACRO TABLE temp.session_points");
      await connection.run("DROP TABLE temp.sampled_points");
    },
  };
}
