import { RunvaultError } from "../../model/error.ts";
import { shownId } from "../../model/text/id-fault.ts";

/** A finding about a source's lists of runs. */
export interface ListFinding {
  /** Null if it concerns all instances. */
  readonly instanceId: string | null;
  /** The runs it is about; none if it is about the list as a whole. */
  readonly runIds: readonly string[];
  readonly text: string;
  /** Why runs may be missing, or which list failed; null for a mere note. */
  readonly error: RunvaultError | null;
  /** A normal, lasting state: nightly jobs need not report it again. */
  readonly lasts?: true;
  /** How many entries it stands for. Default: 1. */
  readonly count?: number;
}

/** A remark: no run is missing because of it. */
export function listNote(instanceId: string | null, runIds: readonly string[], text: string): ListFinding {
  return { instanceId, runIds, text, error: null };
}

/** A finding that runs may be missing from the archive. */
export function listDoubt(
  instanceId: string | null,
  runIds: readonly string[],
  text: string,
  hint: string,
): ListFinding {
  const [run] = runIds;
  const place = {
    ...(instanceId === null ? {} : { instance: shownId(instanceId) }),
    ...(runIds.length === 1 && run !== undefined ? { run: shownId(run) } : {}),
  };
  return { instanceId, runIds, text, error: new RunvaultError("unverified", text, { place, hint }) };
}

/** A list, or a run's description, that could not be fetched. */
export function listFailure(
  thrown: unknown,
  instanceId: string | null,
  runIds: readonly string[],
): ListFinding {
  const [run] = runIds;
  const error = RunvaultError.from(thrown).at({
    ...(instanceId === null ? {} : { instance: shownId(instanceId) }),
    ...(run === undefined ? {} : { run: shownId(run) }),
  });
  return { instanceId, runIds, text: `${error.code}: ${error.message}`, error };
}

/** Ids as text; of many, the first three. */
export function idsText(ids: readonly string[]): string {
  const shown = ids.slice(0, 3).map(shownId).join(", ");
  return ids.length <= 3 ? shown : `${shown} and ${ids.length - 3} more`;
}
