import { type ErrorCode, type ErrorPlace, RunvaultError } from "../model/error.ts";
import { checkedRows } from "../model/profile/row-request.ts";
import type { RowRequest, RunRef } from "../model/source.ts";
import { idFault, shownId } from "../model/text/id-fault.ts";
import { int64Max, int64Min, type Nanoseconds, type TimeBounds } from "../model/time.ts";

/** Throws `invalid_argument` for an empty or odd id and the word current, before anything is sent. */
export function requireExactRun(run: RunRef): void {
  requireInstance(run.instanceId);
  refuseOdd("run", run.runId);
  if (run.runId !== "" && run.runId !== "current") return;
  throw new RunvaultError(
    "invalid_argument",
    run.runId === "" ? "the run id is empty" : "current is a reserved word, not a run id",
    { place: { instance: run.instanceId }, hint: "Name a run id; `runvault runs --gateway URL` lists them." },
  );
}

/** Throws `invalid_argument` for an id that is empty or that cannot be requested. */
export function requireInstance(instanceId: string): void {
  if (instanceId === "") throw new RunvaultError("invalid_argument", "the instance id is empty");
  refuseOdd("instance", instanceId);
}

function refuseOdd(what: "run" | "instance", id: string): void {
  const fault = idFault(id);
  if (fault !== null) throw new RunvaultError("invalid_argument", `the ${what} id ${shownId(id)} ${fault}`);
}

/**
 * Checks a request like `checkedRows`. Also throws `invalid_argument` for an empty filter, which a gateway takes for
 * none.
 */
export function requireRows(request: RowRequest) {
  const checked = checkedRows(request);
  for (const [filter, value] of checked.filters) {
    if (value !== "") continue;
    throw new RunvaultError("invalid_argument", `the filter ${filter} is empty`, {
      hint: "Give the filter a value, or leave it out.",
    });
  }
  return checked;
}

/** Codes by which a gateway says that it lacks something optional. */
export const absentCodes: readonly ErrorCode[] = ["route_not_found", "history_unavailable"];

/** A run as a place of errors. */
export function placeOfRun({ instanceId, runId }: RunRef): ErrorPlace {
  return { instance: instanceId, run: runId };
}

/** The time, if 64 bits hold it; else throws `invalid_argument`. */
function checkedTime(value: Nanoseconds): Nanoseconds {
  if (value >= int64Min && value <= int64Max) return value;
  throw new RunvaultError("invalid_argument", `time outside the range of 64-bit nanoseconds: ${value}`);
}

/** The bounds of a request, if 64 bits hold them; else throws `invalid_argument`. */
export function checkedBounds({ from, to }: TimeBounds): TimeBounds {
  return {
    ...(from === undefined ? {} : { from: checkedTime(from) }),
    ...(to === undefined ? {} : { to: checkedTime(to) }),
  };
}
