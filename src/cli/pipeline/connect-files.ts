import { wallClock } from "../../model/time.ts";
import { type ConnectedJob, connectJob } from "../../pipeline/connect/connect-job.ts";
import type { JobFile, ReadJobFiles } from "../../pipeline/file/job-files.ts";
import { retryPolicyFor } from "../options/gateway-options.ts";
import type { Session } from "../process/session.ts";

/** Somebody waits at a terminal; whoever runs the job has all of its patience. */
const retries = 1;

/** Looks at what sound job files name, one file after another; by file. */
export async function connectFiles(
  { files }: ReadJobFiles,
  session: Session,
): Promise<ReadonlyMap<string, ConnectedJob>> {
  const { env } = session.terminal;
  const found = new Map<string, ConnectedJob>();
  for (const { file, job } of files) {
    if (job === null) continue;
    const connected = await connectJob(job, {
      ...{ env, clock: wallClock, scrubber: session.scrubber, signal: session.signal },
      // the check tells of secrets that others can read, and its report what there is to notice
      warn: () => {},
      onNotice: () => {},
      retry: retryPolicyFor({ retries }, session),
    });
    found.set(file, withoutValues(connected, job, env));
  }
  return found;
}

/** What the environment gives is never shown, not even in an answer that repeats it. */
function withoutValues(
  connected: ConnectedJob,
  { variables }: JobFile,
  env: Readonly<Record<string, string | undefined>>,
): ConnectedJob {
  const values = variables
    .map(({ name }) => [name, env[name] ?? ""] as const)
    // shorter ones are parts of words
    .filter(([, value]) => value.length >= 4)
    .sort(([, a], [, b]) => b.length - a.length);
  const hidden = (text: string) =>
    values.reduce((rest, [name, value]) => rest.replaceAll(value, () => `\${${name}}`), text);
  const { gateway } = connected;
  return {
    ...connected,
    gateway: gateway && { ...gateway, latest: gateway.latest && hidden(gateway.latest) },
    faults: connected.faults.map((fault) => ({
      ...fault,
      message: hidden(fault.message),
      hint: hidden(fault.hint),
    })),
  };
}
