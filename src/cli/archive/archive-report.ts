import type { ArchivedRun } from "../../extract/run/archive-runs.ts";

/** The result of one run, with its exit status. */
export interface RunReport extends ArchivedRun {
  readonly exit: number;
}
