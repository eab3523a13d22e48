import { randomUUID } from "node:crypto";
import { type ErrorPlace, RunvaultError } from "../../model/error.ts";
import type { RouteTraits } from "../../model/route-traits.ts";
import type { RunRef } from "../../model/source.ts";
import type { RestRequest } from "../profile/profile.ts";

/** A request, by what it is named and how it names what it asks for. */
type ProbedRequest = Pick<RestRequest, "path" | "parameters">;

/** A run to ask for of which there can be no rows, and the parameter that a gateway ignores that has some. */
export interface ImpossibleRun extends RunRef {
  readonly parameter: string;
  /** False where such a run may be there after all: then rows say nothing. */
  readonly isImpossible: () => Promise<boolean>;
}

/**
 * Runs that a route is to be asked for, since its rows do not say whose they are: of another name, of the real name with
 * more behind it, and of its beginning alone, for gateways that compare beginnings. Throws `not_filtered` where nothing of
 * the request says which run is asked for.
 */
export function impossibleRuns(
  request: ProbedRequest,
  traits: Pick<RouteTraits, "namesRun" | "namesInstance">,
  run: RunRef,
  isListed: (run: RunRef) => Promise<boolean>,
  place: ErrorPlace,
): ImpossibleRun[] {
  const { instanceId, runId } = run;
  const always = async () => true;
  const runs: ImpossibleRun[] = [];
  const byRun = parameterOf(request, "run");
  const byInstance = parameterOf(request, "instance");
  if (!traits.namesRun && byRun === undefined) {
    throw notFiltered("its rows name no run, and neither does its request", request, place);
  }
  const none = `runvault-none-${randomUUID().slice(0, 8)}`;
  if (!traits.namesRun && byRun !== undefined) {
    runs.push({ instanceId, runId: none, parameter: byRun, isImpossible: always });
    runs.push({ instanceId, runId: `${runId}-${none}`, parameter: byRun, isImpossible: always });
    const half = runId.slice(0, Math.ceil(runId.length / 2));
    if (runId.length >= 4 && !/^\d+$/.test(half) && half.isWellFormed()) {
      const isImpossible = async () => !(await isListed({ instanceId, runId: half }));
      runs.push({ instanceId, runId: half, parameter: byRun, isImpossible });
    }
  }
  if (!traits.namesInstance && byInstance !== undefined) {
    runs.push({ instanceId: none, runId, parameter: byInstance, isImpossible: always });
    runs.push({ instanceId: `${instanceId}-${none}`, runId, parameter: byInstance, isImpossible: always });
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
