import type { Manifest } from "../archive/manifest.ts";
import type { SetAside } from "../archive/set-aside.ts";
import type { RunOutcome } from "../extract/archive-run.ts";
import { errorCodes, exit, type RunvaultError, worstExit } from "../model/error.ts";
import type { RunRef } from "../model/source.ts";
import type { ArchiveValues } from "./archive-values.ts";

/** What one run came to: its manifest, or the error that ended it. */
export interface RunReport extends RunRef {
  readonly outcome: RunOutcome | null;
  readonly seconds: number;
  /** Requests repeated for this run, by the job and by the gateway's client. */
  readonly retries: number;
  readonly error: RunvaultError | null;
  readonly exit: number;
  /** By table, one of the rows set aside, with the reason. */
  readonly setAside: Readonly<Partial<Record<string, SetAside>>>;
  /** Where all of them are. */
  readonly quarantineDir: string | null;
}

/** The exit status a committed run leads to: its tables' errors, and 4 where anything is not proven. */
export function exitOf(manifest: Manifest, values: Pick<ArchiveValues, "tables">): number {
  const tables = Object.entries(manifest.tables).filter(
    ([name]) => values.tables === undefined || (values.tables as readonly string[]).includes(name),
  );
  const statuses = tables.flatMap(([, table]) => {
    if (table.attempt.outcome === "ok") return [exit.done];
    const code = table.attempt.error?.code;
    const own =
      code !== undefined && code in errorCodes
        ? errorCodes[code as keyof typeof errorCodes].exit
        : exit.incomplete;
    return [exit.incomplete, own];
  });
  if (tables.every(([, { state }]) => state === "ABSENT")) statuses.push(exit.incomplete);
  return worstExit(statuses);
}
