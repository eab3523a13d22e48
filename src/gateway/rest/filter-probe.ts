import { randomUUID } from "node:crypto";
import { type ErrorPlace, RunvaultError } from "../../model/error.ts";
import type { RouteTraits } from "../../model/route-traits.ts";
import type { RunRef } from "../../model/source.ts";
import type { RestRequest } from "../profile/profile.ts";
import { neighbourProbes } from "./neighbour-ids.ts";

/** A request, by what it is named and how it names what it asks for. */
type ProbedRequest = Pick<RestRequest, "path" | "parameters">;

/** A run to ask for of which there can be no rows, and the parameter that a gateway ignores that has some. */
export interface ImpossibleRun extends RunRef {
  readonly parameter: string;
  /** False where such a run may be there after all: then rows say nothing. */
  readonly isImpossible: boolean;
  /** Whether it is asked for because another run that is listed has a like name. */
  readonly isNear: boolean;
}

/** What a gateway lists: its instances, and the runs of one. */
export interface ListedIds {
  readonly instances: readonly string[];
  readonly runs: readonly string[];
}

/**
 * Runs that a route is to be asked for, since its rows do not say whose they are: of another name, of the real name with
 * more ahead of it or behind it, and of its halves alone, for gateways that compare parts; and, where another run that is
 * listed would be taken for this one by a coarser comparison, of a name that only such a comparison finds. Lists that
 * fail are undefined. Throws `not_filtered` where nothing of the request says which run is asked for.
 */
export function impossibleRuns(
  request: ProbedRequest,
  traits: Pick<RouteTraits, "namesRun" | "namesInstance">,
  run: RunRef,
  listed: ListedIds | undefined,
  place: ErrorPlace,
): ImpossibleRun[] {
  const { instanceId, runId } = run;
  const runs: ImpossibleRun[] = [];
  const byRun = parameterOf(request, "run");
  const byInstance = parameterOf(request, "instance");
  if (!traits.namesRun && byRun === undefined) {
    throw notFiltered("its rows name no run, and neither does its request", request, place);
  }
  const none = `runvault-none-${randomUUID().slice(0, 8)}`;
  if (!traits.namesRun && byRun !== undefined) {
    const ask = (other: string, isImpossible: boolean, isNear = false) =>
      runs.push({ instanceId, runId: other, parameter: byRun, isImpossible, isNear });
    for (const other of [none, `${runId}-${none}`, `${none}-${runId}`]) ask(other, true);
    const middle = Math.ceil(runId.length / 2);
    for (const half of runId.length >= 4 ? [runId.slice(0, middle), runId.slice(middle)] : []) {
      if (/^\d+$/.test(half) || !half.isWellFormed()) continue;
      ask(half, listed !== undefined && !listed.runs.includes(half));
    }
    for (const other of neighbourProbes(runId, listed?.runs ?? [])) ask(other, true, true);
  }
  if (!traits.namesInstance && byInstance !== undefined) {
    const ask = (other: string, isNear: boolean) =>
      runs.push({ instanceId: other, runId, parameter: byInstance, isImpossible: true, isNear });
    for (const other of [none, `${instanceId}-${none}`, `${none}-${instanceId}`]) ask(other, false);
    for (const other of neighbourProbes(instanceId, listed?.instances ?? [])) ask(other, true);
  }
  return runs;
}

/** How a request names the run or instance; undefined where it does not. */
function parameterOf({ path, parameters }: ProbedRequest, what: "run" | "instance"): string | undefined {
  return path.includes(`{${what}}`) ? `{${what}}` : parameters[what];
}

/** The error of a route that gives rows of a run that cannot exist. */
export function ignoresParameter(
  { parameter, runId, instanceId }: ImpossibleRun,
  request: ProbedRequest,
  place: ErrorPlace,
): RunvaultError {
  const asked = `${JSON.stringify(instanceId)}, ${JSON.stringify(runId)}`;
  return notFiltered(
    `it gives rows of a run that is not there (asked for ${asked}), so it ignores ${parameter}`,
    request,
    place,
  );
}

function notFiltered(what: string, { path }: ProbedRequest, place: ErrorPlace): RunvaultError {
  return new RunvaultError("not_filtered", `the route ${path} does not tell runs apart: ${what}`, {
    place,
    hint: "Correct the names of the parameters in the profile: its rows do not say whose they are, and would be taken for this run's.",
  });
}
