import { RunvaultError } from "../../model/error.ts";

/** Explanations and hints for errors of listening, by the system's code. */
const troubles: Readonly<Record<string, readonly [why: string, hint: string]>> = {
  EADDRINUSE: ["another program is using that port", "Set --port to another port, or to 0 for any free one."],
  EACCES: ["this user is not allowed to", "Set --port to 1024 or above, or to 0 for any free one."],
  EADDRNOTAVAIL: ["this machine has no such address", "Set --host to an address of this machine."],
  ENOTFOUND: ["the host name cannot be resolved", "Set --host to an address of this machine."],
};

/** The `invalid_argument` for an address that cannot be listened on, from the error. */
export function cannotListen(host: string, port: number, cause: unknown): RunvaultError {
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  const [why, hint] = troubles[code] ?? [code || String(cause), "Set another --host or --port."];
  return new RunvaultError("invalid_argument", `cannot listen on ${host}:${port}: ${why}`, { cause, hint });
}
