import { wallClock } from "../../model/time.ts";
import { type ConnectedJob, connectJob } from "../../pipeline/connect/connect-job.ts";
import type { JobFile, ReadJobFiles } from "../../pipeline/file/job-files.ts";
import { retryPolicyFor } from "../options/gateway-options.ts";
import type { Session } from "../process/session.ts";

/** Someone waits at a terminal; a job retries more patiently. */
const retries = 1;

/** Checks what sound job files name, one file after another; by file. */
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
      // the check itself warns of secrets that others can read, and its report shows notices
      warn: () => {},
      onNotice: () => {},
      retry: retryPolicyFor({ retries }, session),
    });
    found.set(file, withoutValues(connected, job, env));
  }
  return found;
}

/** Hides values from the environment, even in answers that repeat them. */
function withoutValues(
  connected: ConnectedJob,
  { variables }: JobFile,
  env: Readonly<Record<string, string | undefined>>,
): ConnectedJob {
  const values = variables
    .map(({ name }) => [name, env[name] ?? ""] as const)
    // shorter ones occur inside words
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
