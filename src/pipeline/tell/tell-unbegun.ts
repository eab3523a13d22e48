import { hostname } from "node:os";
import type { Trouble } from "../record/job-record.ts";
import { heartbeatNotifier, type Notifiers } from "./open-notifiers.ts";
import { tellChanges } from "./tell-changes.ts";
import { tellOne, wholeTime } from "./tell-one.ts";

/** A change of a job outside of executions: it cannot begin, or can again. */
export interface UnbegunJob {
  readonly job: string;
  /** Stays the same for as long as it lasts. */
  readonly key: string;
  readonly tool: string;
  readonly at: string;
  /** The resulting exit status; 0: it is over. */
  readonly exit: number;
  readonly text: string;
  readonly hint: string | null;
}

/** Notifies webhook and command of it; no record says later that this was done. Never throws. */
export async function tellUnbegun(notifiers: Notifiers, unbegun: UnbegunJob): Promise<void> {
  const { job, key, tool, at, exit, text, hint } = unbegun;
  const isOver = exit === 0;
  const trouble: Trouble = {
    ...{ key, kind: "job", instance: null, run: null, table: null },
    ...{ level: String(exit), text, hint, since: at, told: null, mended: isOver ? at : null },
  };
  await tellChanges(notifiers, {
    begin: { job, host: hostname(), tool, id: null },
    result: { at, exit },
    changes: {
      ...{ worse: isOver ? [] : [trouble], mended: isOver ? [trouble] : [], reminded: [] },
      troubles: isOver ? [] : [trouble],
    },
  });
}

/** Sends a failed heartbeat for an execution without a record. Never throws. */
export async function tellFailedBeat(notifiers: Notifiers): Promise<void> {
  if (notifiers.heartbeat === null) return;
  using time = wholeTime(notifiers.times, notifiers.signal);
  await tellOne(heartbeatNotifier(notifiers.heartbeat, "fail"), { ...notifiers, signal: time.signal });
}
