import { readTokenFile } from "../../model/secret-file.ts";
import { hooks, type Job } from "../../pipeline/file/job-schema.ts";
import type { Session } from "../process/session.ts";

/** The variables that a job file names hold secrets; a webhook's address is one as a whole. */
export function addSecrets({ gateway, notify }: Job, { terminal, scrubber }: Session): void {
  const names = [
    gateway.token?.kind === "env" ? gateway.token.name : undefined,
    notify.heartbeat?.url_env,
    ...hooks.map((hook) => notify[hook]?.url_env),
  ];
  for (const name of names) scrubber.add((name === undefined ? "" : (terminal.env[name] ?? "")).trim());
}

/** Adds a token from a file, if nobody has read it yet. An unreadable file is reported when it is used. */
export async function addFileToken({ gateway }: Job, { scrubber, signal }: Session): Promise<void> {
  if (gateway.token?.kind !== "file") return;
  try {
    scrubber.add(await readTokenFile("gateway.token.file", gateway.token.file, { signal, warn: () => {} }));
  } catch {
    // an unread token cannot be printed
  }
}
