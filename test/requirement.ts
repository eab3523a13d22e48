import { spawnSync } from "node:child_process";
import { appendFileSync, existsSync } from "node:fs";
import { join } from "node:path";

/**
 * What some tests need of the machine beside Node:
 * `python`: python3 runs.
 * `tmpfs`: a file system of a chosen size can be mounted, in a mount namespace of one's own (see `mountNamespace`).
 * `unprivileged`: a program can run as a user without privileges (see `unprivilegedUser`).
 * `notebook`: python3 has the modules duckdb, pandas, polars and pyarrow, as a notebook does.
 * `http-client`: what `notebook` is, and the modules requests, with zstd, and prometheus_client.
 * `rpc-client`: python3 has the module connectrpc and, beside itself, the plug-ins that make clients from proto files.
 * `recordings`: the recorded bars lie beside the project.
 * `full-device`: /dev/full, a file that is always on a full disk.
 * `curl`, `zstd`, `openssl`: the command-line programs.
 */
export const requirements = [
  "python",
  "notebook",
  "recordings",
  "tmpfs",
  "unprivileged",
  "full-device",
  "curl",
  "zstd",
  "openssl",
  "http-client",
  "rpc-client",
] as const;
export type Requirement = (typeof requirements)[number];

/** Folder of the recorded bars. */
export const recordings = join(import.meta.dirname, "..", "..", "shared", "data");

/** The environment variable with the file in which missing requirements are noted for the count at the end. */
export const missingFileVariable = "RUNVAULT_MISSING_FILE";

const root = process.getuid?.() === 0;
const nobody = 65_534;

/** Program and arguments to put before a command so that it may mount what nobody else sees. */
export const mountNamespace: readonly string[] = root
  ? ["unshare", "--mount"]
  : ["unshare", "--map-root-user", "--mount"];

/** Options for `spawn` that make a child run without privileges; empty when this process has none. */
export const unprivilegedUser: { readonly uid?: number; readonly gid?: number } = root
  ? { uid: nobody, gid: nobody }
  : {};

const probes: Record<Requirement, () => boolean> = {
  python: () => runs(["python3", "--version"]),
  notebook: () => runs(["python3", "-c", "import duckdb, pandas, polars, pyarrow"]),
  recordings: () => existsSync(recordings),
  tmpfs: () => runs([...mountNamespace, "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", "/mnt"]),
  unprivileged: () => runs([process.execPath, "--version"], unprivilegedUser),
  "full-device": () => existsSync("/dev/full"),
  curl: () => runs(["curl", "--version"]),
  zstd: () => runs(["zstd", "--version"]),
  openssl: () => runs(["openssl", "version"]),
  "http-client": () => runs(["python3", "-c", httpClientProbe]),
  "rpc-client": () => runs(["python3", "-c", rpcClientProbe]),
};

const httpClientProbe = `
import duckdb, pandas, polars, prometheus_client, pyarrow, requests
assert "zstd" in requests.utils.default_headers()["Accept-Encoding"]
`;

const rpcClientProbe = `
import os, sysconfig
import connectrpc.client, protobuf
scripts = sysconfig.get_path("scripts")
assert all(os.access(os.path.join(scripts, name), os.X_OK) for name in ("protoc-gen-py", "protoc-gen-connectrpc"))
`;

const found = new Map<Requirement, boolean>();

/**
 * Whether the machine has it; for `test.skipIf(!requires("python"))`. Where it is missing, says so on stderr and notes
 * it for the count at the end of the run; where RUNVAULT_REQUIRE (names with commas) lists it, throws instead, so that
 * the test file fails. A name in RUNVAULT_REQUIRE that does not exist throws as well.
 */
export function requires(requirement: Requirement): boolean {
  const demanded = demandedRequirements(process.env.RUNVAULT_REQUIRE ?? "");
  const present = found.get(requirement) ?? probes[requirement]();
  found.set(requirement, present);
  if (present) return true;
  if (demanded.has(requirement)) {
    throw new Error(`RUNVAULT_REQUIRE names ${requirement}, and this machine does not have it`);
  }
  process.stderr.write(`skipped for want of ${requirement}\n`);
  const file = process.env[missingFileVariable];
  if (file !== undefined) appendFileSync(file, `${requirement}\n`);
  return false;
}

/** The names in RUNVAULT_REQUIRE. Throws on one that is none. */
export function demandedRequirements(text: string): ReadonlySet<Requirement> {
  const names = text
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
  for (const name of names) {
    if (!requirements.some((known) => known === name)) {
      throw new Error(`RUNVAULT_REQUIRE names ${name}; there are ${requirements.join(", ")}`);
    }
  }
  return new Set(names as Requirement[]);
}

function runs([program = "", ...args]: readonly string[], user: typeof unprivilegedUser = {}): boolean {
  // / as the folder: another user may not be able to enter this one
  const { status, error } = spawnSync(program, args, { ...user, cwd: "/", stdio: "ignore" });
  return error === undefined && status === 0;
}
