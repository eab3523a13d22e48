import type { ControlPlane } from "../model/control.ts";
import { RunvaultError } from "../model/error.ts";
import type { HistorySource } from "../model/source.ts";

export interface Check {
  readonly name: "control_plane" | "history";
  readonly ok: boolean;
  /** What is wrong, for the operator; empty when nothing is. */
  readonly message: string;
}

/** What the service depends on, checked. A failed check is an answer, not an error. */
export async function doctorChecks(control: ControlPlane, source: HistorySource): Promise<Check[]> {
  const { reachable, message } = await control.daemon();
  const trouble = await source.instances().then(
    () => "",
    (thrown: unknown) => {
      const error = RunvaultError.from(thrown);
      // what a bug says of itself is for the owner of the server
      return error.code === "internal" ? "the history failed" : error.message;
    },
  );
  return [
    { name: "control_plane", ok: reachable, message },
    { name: "history", ok: trouble === "", message: trouble },
  ];
}
