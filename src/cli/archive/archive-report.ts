import type { ArchivedRun } from "../../extract/run/archive-runs.ts";

/** What one run came to, with the exit status that it leads to. */
export interface RunReport extends ArchivedRun {
  readonly exit: number;
}
