import { RunvaultError } from "../model/error.ts";

/** Why the system does not let a server listen, and what to do about it, by the system's code. */
const troubles: Readonly<Record<string, readonly [why: string, hint: string]>> = {
  EADDRINUSE: ["another program has it", "Choose another --port, or 0 for any free one."],
  EACCES: ["this user may not", "Choose a --port from 1024 on, or 0 for any free one."],
  EADDRNOTAVAIL: ["this machine has no such address", "Choose as --host an address of this machine."],
  ENOTFOUND: ["there is no such host", "Choose as --host an address of this machine."],
};

/** The `invalid_argument` for an address that cannot be listened on, by what listening there failed with. */
export function cannotListen(host: string, port: number, cause: unknown): RunvaultError {
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  const [why, hint] = troubles[code] ?? [code || String(cause), "Choose another --host or --port."];
  return new RunvaultError("invalid_argument", `cannot listen on ${host}:${port}: ${why}`, { cause, hint });
}
