import { literal } from "../../duckdb/sql.ts";
import type { MeasuredRun } from "../section/section.ts";

/** Macros shared by the macros of factors, whose only argument is the run. */
const shared = ["factor_names", "factor_closes", "factor_at_bars"] as const;

/**
 * Makes the macros of factors place a run's values on its bars only once for everything that is read meanwhile. Dispose
 * it before reading anything of another run.
 */
export async function sampleFactors({ connection, run }: MeasuredRun): Promise<AsyncDisposable> {
  const args = `${literal(run.instanceId)}, ${literal(run.runId)}`;
  for (const name of shared) {
    await connection.run(`CREATE OR REPLACE TEMP TABLE sampled_${name} AS FROM ${name}(${args})`);
    await connection.run(`CREATE OR REPLACE TEMP MACRO ${name}(instance, run) AS TABLE FROM sampled_${name}`);
  }
  return {
    [Symbol.asyncDispose]: async () => {
      for (const name of shared) {
        await connection.run(`DROP MACRO TABLE temp.${name}`);
        await connection.run(`DROP TABLE temp.sampled_${name}`);
      }
    },
  };
}
