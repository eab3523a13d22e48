import { randomUUID } from "node:crypto";
import { type ErrorPlace, RunvaultError } from "../../model/error.ts";
import type { RouteTraits } from "../../model/route-traits.ts";
import type { RunRef } from "../../model/source.ts";
import type { RestRequest } from "../profile/profile.ts";
import { neighbourProbes } from "./neighbour-ids.ts";

/** A request, its name, and its names for ids. */
type ProbedRequest = Pick<RestRequest, "path" | "parameters">;

/** A run that cannot have rows, and the parameter that a gateway ignores if it has some. */
export interface ImpossibleRun extends RunRef {
  readonly parameter: string;
  /** False if such a run may exist after all: then rows prove nothing. */
  readonly isImpossible: boolean;
  /** Whether it is requested because another listed run has a similar name. */
  readonly isNear: boolean;
}

/** A gateway's lists: its instances, and the runs of one. */
export interface ListedIds {
  readonly instances: readonly string[];
  readonly runs: readonly string[];
}

/**
 * Runs to request from a route whose rows do not name their run: another name, the real name with a prefix or suffix,
 * and each half of it, for gateways that compare parts; and, if a coarser comparison would confuse another listed run
 * with this one, a name that only such a comparison finds. Lists that fail are undefined. Throws `not_filtered` if the
 * request does not name its run at all.
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
    throw notFiltered("neither its rows nor its requests name the run", request, place);
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

/** How a request names the run or instance; undefined if it does not. */
function parameterOf({ path, parameters }: ProbedRequest, what: "run" | "instance"): string | undefined {
  return path.includes(`{${what}}`) ? `{${what}}` : parameters[what];
}

/** The error for a route that returns rows of a run that cannot exist. */
export function ignoresParameter(
  { parameter, runId, instanceId }: ImpossibleRun,
  request: ProbedRequest,
  place: ErrorPlace,
): RunvaultError {
  const asked = `${JSON.stringify(instanceId)}, ${JSON.stringify(runId)}`;
  return notFiltered(
    `it returns rows for a run that does not exist (asked for ${asked}), so it ignores ${parameter}`,
    request,
    place,
  );
}

function notFiltered(what: string, { path }: ProbedRequest, place: ErrorPlace): RunvaultError {
  return new RunvaultError("not_filtered", `the route ${path} does not tell runs apart: ${what}`, {
    place,
    hint: "Correct the names of the parameters in the profile: its rows do not name their run, so rows of others would be taken for this run's.",
  });
}
