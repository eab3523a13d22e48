import { RunvaultError } from "../model/error.ts";
import { openWindow } from "./survey.ts";
import { probe, type TableAsks } from "./table-asks.ts";

/** Whether a source says that it keeps no such table, by one question; false where it gives rows, none, or fails. */
export async function isAbsent(asks: TableAsks): Promise<boolean> {
  try {
    await probe(asks, openWindow(undefined));
    return false;
  } catch (thrown) {
    asks.signal.throwIfAborted();
    if (isUnavailable(thrown)) return true;
    // the job finds out what it is, table by table
    if (RunvaultError.from(thrown).scope === "table") return false;
    throw thrown;
  }
}

/** True for what a gateway answers of a table that it does not keep. */
export function isUnavailable(error: unknown): boolean {
  return error instanceof RunvaultError && error.code === "history_unavailable";
}
