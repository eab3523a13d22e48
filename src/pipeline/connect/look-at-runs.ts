import type { Archive } from "../../archive/archive.ts";
import { concernsAll } from "../../extract/choose/named-runs.ts";
import type { RunLists } from "../../extract/choose/run-lists.ts";
import type { Gateway } from "../../gateway/gateway.ts";
import { RunvaultError } from "../../model/error.ts";
import { formatRun, parseInstance } from "../../model/run-argument.ts";
import { idFault } from "../../model/text/id-fault.ts";
import { nearestName } from "../../model/text/nearest-name.ts";
import type { KeyPath } from "../../model/yaml/tree.ts";
import { chooseNow } from "../execute/choose-now.ts";
import { type JobGatewayMeans, openJobGateway } from "../execute/job-gateway.ts";
import type { JobMeans } from "../execute/job-means.ts";
import { countPlans, type JobRuns, wantedTables } from "../execute/job-runs.ts";
import { neededFor } from "../execute/plan-job.ts";
import type { JobFile } from "../file/job-files.ts";
import type { Job } from "../file/job-schema.ts";
import type { RunPlan } from "../record/job-record.ts";
import { doubtful, type Finding, failed, wrong } from "./finding.ts";

/** A job's gateway, and what it has of the job's runs. */
export interface RunsLook {
  /** Null if the gateway did not answer. */
  readonly found: {
    /** All instances of the gateway, also those that the job leaves out. */
    readonly instances: number;
    readonly runs: number;
    readonly plans: Readonly<Partial<Record<RunPlan, number>>>;
    /** The run that INSTANCE/latest of the job file is now; null where the file has no such words. */
    readonly latest: string | null;
    /** What the runs with work take of the disk, by the gateway's facts; null where it does not say. */
    readonly neededBytes: number | null;
  } | null;
  readonly findings: readonly Finding[];
}

export type LookMeans = Pick<JobMeans, "clock"> & JobGatewayMeans;

/** Asks a job's gateway for the lists with which an execution starts, and chooses the job's runs from them. */
export async function lookAtRuns(
  file: JobFile,
  archive: Archive | null,
  means: LookMeans,
): Promise<RunsLook> {
  const { job } = file;
  try {
    await using gateway = await openJobGateway(file, means);
    const { runs, lists, skew } = await chooseNow(job, gateway, archive, means);
    const names = await namesOf(lists, means.signal);
    const findings = [...findingsOf(file, runs, names), ...unmatched(file, runs, names)];
    if (skew !== null)
      findings.push(doubtful(file, ["gateway", "url"], skew, "Set the clocks by a time server."));
    return {
      found: {
        ...{
          instances: names.length,
          runs: runs.all.length,
          plans: countPlans(runs),
          latest: runs.latest && formatRun(runs.latest),
        },
        neededBytes: await neededBytes(runs, gateway, job, means.signal),
      },
      findings,
    };
  } catch (thrown) {
    means.signal.throwIfAborted();
    return { found: null, findings: [failure(file, RunvaultError.from(thrown))] };
  }
}

/** Number of runs whose facts are requested; the others count as their average. */
const mostAsked = 100;

async function neededBytes(
  { work }: JobRuns,
  gateway: Gateway,
  job: Job,
  signal: AbortSignal,
): Promise<number | null> {
  const pending = work.filter(({ listed }) => listed !== null);
  let bytes = 0;
  let known = 0;
  for (const run of pending.slice(0, mostAsked)) {
    const { diskBytes } = await neededFor(run, gateway, wantedTables(job), signal);
    if (diskBytes === null) continue;
    bytes += diskBytes;
    known += 1;
  }
  if (pending.length === 0) return 0;
  return known === 0 ? null : Math.round((bytes / known) * pending.length);
}

/** All instances of the gateway's lists. */
async function namesOf(lists: RunLists, signal: AbortSignal): Promise<readonly string[]> {
  const names = new Set<string>();
  for (const listing of await lists.listings(signal)) {
    try {
      for (const { instanceId } of await lists.instances(listing, signal)) names.add(instanceId);
    } catch (thrown) {
      // an unsupported list is reported where the lists are compared, if it matters
      if (concernsAll(thrown)) throw thrown;
    }
  }
  return [...names].filter((name) => idFault(name) === null);
}

/** Problems with the lists, each at the pattern that it is about. */
function findingsOf(file: JobFile, { findings }: JobRuns, names: readonly string[]): Finding[] {
  const patterns = file.job.runs?.instances ?? [];
  return findings.flatMap(({ instanceId, error }) => {
    if (error === null) return [];
    const index = patterns.findIndex(
      ({ isExact, pattern }) => isExact && parseInstance(pattern) === instanceId,
    );
    const path: KeyPath = index < 0 ? ["runs"] : ["runs", "instances", index];
    if (error.code !== "instance_not_found" || instanceId === null)
      return [failed(file, path, error, error.hint ?? usualHint)];
    const isHidden = file.isFromEnvironment(...path);
    const message = isHidden
      ? "the gateway has no instance of this name"
      : `the gateway has no instance ${JSON.stringify(instanceId)}`;
    const near = isHidden ? null : nearestName(instanceId, names);
    const hint =
      near === null
        ? "Correct the name, or remove it: a name without * and ? must exist."
        : `Did you mean ${near}?`;
    return [wrong(file, path, message, hint, error.exit)];
  });
}

/** Patterns without any match now: most are misspelt. */
function unmatched(file: JobFile, { all }: JobRuns, names: readonly string[]): readonly Finding[] {
  const { runs, keep } = file.job;
  if (runs === undefined) return [];
  const idle = runs.instances.flatMap((one, index) =>
    one.isExact || names.some((name) => one.matches(name))
      ? []
      : [
          doubtful(
            file,
            ["runs", "instances", index],
            "no instance of the gateway matches it",
            "`runvault runs --gateway URL` lists all; instances that come later will be included.",
          ),
        ],
  );
  if (idle.length > 0 || all.length > 0) return idle;
  return [
    doubtful(
      file,
      ["runs"],
      "no run of the gateway matches now",
      `Check instances, status, ended_within${keep.runs === undefined ? " and exclude" : ", exclude and keep.runs"}; runs that come later will be included.`,
    ),
  ];
}

const usualHint = "`runvault runs --gateway URL` lists what the gateway has.";

/** Why the gateway could not be asked, at the most relevant key. */
function failure(file: JobFile, error: RunvaultError): Finding {
  const { gateway } = file.job;
  const { code, place } = error;
  const files: readonly (readonly [KeyPath, string | undefined])[] = [
    [["gateway", "token", "file"], gateway.token?.kind === "file" ? gateway.token.file : undefined],
    [["gateway", "tls", "ca"], gateway.tls?.ca],
    [["gateway", "tls", "cert"], gateway.tls?.cert],
    [["gateway", "tls", "key"], gateway.tls?.key],
    [["gateway", "profile"], gateway.profile],
  ];
  const [ofFile] = files.find(([, path]) => path !== undefined && path === place.file) ?? [];
  if (ofFile !== undefined) {
    const why = (error.cause as NodeJS.ErrnoException | undefined)?.code;
    const message = why === undefined ? error.message : `the file cannot be read (${why})`;
    return wrong(file, ofFile, message, "The job's user must be able to read it.", error.exit);
  }
  switch (code) {
    case "unauthenticated":
      return gateway.token === undefined
        ? wrong(
            file,
            ["gateway"],
            "the gateway requires a token",
            "Say where it is: `token: { file: PATH }` or `token: { env: NAME }`.",
            error.exit,
          )
        : wrong(
            file,
            ["gateway", "token"],
            "the gateway refuses the token",
            "Replace it with a valid one, or check whether token_header is needed.",
            error.exit,
          );
    case "permission_denied":
      return failed(
        file,
        ["gateway", "token"],
        error,
        "Ask the gateway's operator what the token may access.",
      );
    case "run_not_found":
    case "instance_not_found":
      return file.isFromEnvironment("run")
        ? wrong(file, ["run"], "the gateway has no such run", usualHint, error.exit)
        : failed(file, ["run"], error, error.hint ?? usualHint);
    case "history_identity_conflict":
      return failed(file, ["archive"], error, error.hint ?? usualHint);
    case "archive_damaged":
    case "not_an_archive":
      return failed(file, ["archive"], error, error.hint ?? "Name another archive.");
    default: {
      const isTls = error.message.includes("certificate");
      return failed(
        file,
        ["gateway", isTls ? "tls" : "url"],
        error,
        isTls
          ? "Set gateway.tls: ca for the authority that signed the gateway's certificate, cert and key for one of your own."
          : "Check the address, which often ends in /api/v1, the network, and that the gateway is running.",
      );
    }
  }
}
