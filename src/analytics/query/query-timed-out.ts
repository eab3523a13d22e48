import { RunvaultError } from "../../model/error.ts";

/** A query that was stopped when its time was up. */
export function queryTimedOut(timeoutMs: number): RunvaultError {
  return new RunvaultError("query_invalid", `the query took longer than ${timeoutMs / 1000} s`, {
    hint: "Narrow the query, or raise --timeout (RUNVAULT_TIMEOUT).",
  });
}
