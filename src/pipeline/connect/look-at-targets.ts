import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { readInstruments } from "../../analytics/instruments/read-instruments.ts";
import { exit, RunvaultError } from "../../model/error.ts";
import { type KeyPath, keyText } from "../../model/yaml/tree.ts";
import type { JobFile } from "../file/job-files.ts";
import { hooks, type JobExport } from "../file/job-schema.ts";
import { type Finding, wrong } from "./finding.ts";
import { lookAtFolder } from "./look-at-folder.ts";
import { reachAddress } from "./reach-address.ts";

/** Something that a job writes to, notifies, or reads besides its gateway and archive. */
export interface Target {
  /** Such as `after.exports.0.out`. */
  readonly key: string;
  /** Its state, in words. */
  readonly words: string;
  readonly finding: Finding | null;
}

export interface TargetMeans {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

/** Checks that everything a job writes to, notifies or reads exists and can be used. Writes and sends nothing. */
export async function lookAtTargets(file: JobFile, means: TargetMeans): Promise<readonly Target[]> {
  const { after, notify, metrics } = file.job;
  const { heartbeat, command } = notify;
  const looks: Promise<Target>[] = after.exports.map((one, index) =>
    lookAtExport(file, one, ["after", "exports", index, "out"]),
  );
  const { reports } = after;
  if (reports !== undefined) looks.push(lookAtReports(file, reports.out));
  const address = (path: KeyPath, written: string | undefined) => {
    if (written !== undefined) looks.push(lookAtAddress(file, path, written, means));
  };
  const { env } = means;
  address(["notify", "heartbeat", "url_env"], heartbeat && env[heartbeat.url_env]);
  for (const hook of hooks) {
    const variable = notify[hook]?.url_env;
    if (variable !== undefined) address(["notify", hook, "url_env"], env[variable]);
  }
  if (command !== undefined) looks.push(lookAtCommand(file, command[0] ?? "", means));
  const instruments: readonly (readonly [string | undefined, ...KeyPath])[] = [
    [after.reconcile?.instruments, "after", "reconcile", "instruments"],
    [reports?.instruments, "after", "reports", "instruments"],
    ...after.exports.map(
      (one, index) => [one.instruments, "after", "exports", index, "instruments"] as const,
    ),
  ];
  for (const [named, ...path] of instruments) {
    if (named !== undefined) looks.push(lookAtInstruments(file, named, path));
  }
  if (metrics?.textfile !== undefined) looks.push(lookAtTextfile(file, metrics.textfile));
  address(["metrics", "pushgateway"], metrics?.pushgateway);
  return await Promise.all(looks);
}

function target(path: KeyPath, words: string, finding: Finding | null = null): Target {
  return { key: keyText(path), words, finding };
}

const accessHint = "Give the job's user access to it, or name another place.";

async function lookAtExport(file: JobFile, one: JobExport, path: KeyPath): Promise<Target> {
  const isFile =
    one.format === "duckdb" ||
    (one.partition === undefined && one.tables !== "all" && one.tables.length === 1);
  return await lookAtOut(file, one.out, isFile ? "file" : "folder", path);
}

async function lookAtReports(file: JobFile, out: string): Promise<Target> {
  return await lookAtOut(file, out, "folder", ["after", "reports", "out"]);
}

async function lookAtOut(
  file: JobFile,
  out: string,
  wanted: "file" | "folder",
  path: KeyPath,
): Promise<Target> {
  const isFile = wanted === "file";
  const there = await kindOf(out);
  if (there !== null && there !== wanted) {
    const finding = wrong(
      file,
      path,
      `a ${wanted} is needed, but a ${there} has this name`,
      "Choose another name, or move it away.",
    );
    return target(path, `a ${there} is in its place`, finding);
  }
  const folder = isFile ? dirname(out) : out;
  const look = await lookAtFolder(folder);
  if (look.fault === null) {
    const made = look.isThere ? "is writable" : "its folder will be created";
    return target(path, there === "file" ? "exists and can be replaced" : made);
  }
  const fault = `${isFile ? "its folder" : "the folder"} ${look.fault}`;
  return target(path, fault, wrong(file, path, fault, accessHint, look.exit));
}

async function kindOf(path: string): Promise<"file" | "folder" | "pipe or device" | null> {
  try {
    const found = await stat(path);
    return found.isDirectory() ? "folder" : found.isFile() ? "file" : "pipe or device";
  } catch {
    // its folder reports any other problem
    return null;
  }
}

/** It is read, because an error in it would fail every night that commits a run. */
async function lookAtInstruments(file: JobFile, instruments: string, path: KeyPath): Promise<Target> {
  try {
    const { entries } = await readInstruments(instruments);
    return target(path, `exists, with ${entries.length === 1 ? "1 entry" : `${entries.length} entries`}`);
  } catch (thrown) {
    const error = RunvaultError.from(thrown);
    const { line } = error.place;
    const fault = `${line === undefined ? "" : `line ${line}: `}${error.message}`;
    return target(path, fault, wrong(file, path, fault, error.hint ?? accessHint, error.exit));
  }
}

async function lookAtTextfile(file: JobFile, textfile: string): Promise<Target> {
  const path: KeyPath = ["metrics", "textfile"];
  if ((await kindOf(textfile)) === "folder") {
    const finding = wrong(file, path, "a folder has this name", "Name a file.");
    return target(path, "a folder is in its place", finding);
  }
  const look = await lookAtFolder(dirname(textfile));
  if (look.fault === null && look.isThere) return target(path, "is writable");
  const fault = look.isThere ? `its folder ${look.fault}` : "its folder does not exist";
  const hint = look.isThere
    ? accessHint
    : "Make the folder, or name the one that node_exporter reads (--collector.textfile.directory).";
  return target(path, fault, wrong(file, path, fault, hint, look.isThere ? look.exit : exit.usage));
}

async function lookAtCommand(file: JobFile, program: string, { env }: TargetMeans): Promise<Target> {
  const path: KeyPath = ["notify", "command", 0];
  const places = program.includes("/")
    ? [program]
    : (env.PATH ?? "").split(delimiter).map((folder) => join(folder === "" ? "." : folder, program));
  let isThere = false;
  for (const place of places) {
    if ((await kindOf(place)) !== "file") continue;
    isThere = true;
    try {
      await access(place, constants.X_OK);
      return target(path, "exists and may be run");
    } catch (error) {
      if (RunvaultError.from(error).code === "internal") throw error;
    }
  }
  const fault = isThere ? "may not be run" : "was not found";
  const hint = isThere
    ? "Make it executable, with chmod +x, for the user that runs the job."
    : "A program with a / in its name is relative to the job file's folder; others are looked up in PATH.";
  return target(path, fault, wrong(file, path, `the program ${fault}`, hint));
}

async function lookAtAddress(
  file: JobFile,
  path: KeyPath,
  written: string,
  { env, signal }: TargetMeans,
): Promise<Target> {
  const url = URL.parse(written);
  const why = url === null ? "no address" : await reachAddress(url, env, signal);
  signal.throwIfAborted();
  if (why === null) return target(path, "takes connections; nothing was sent");
  const fault = `the address does not take connections (${why})`;
  const hint =
    "Check the address and the network; `runvault check FILE --test-notify` then sends a test message.";
  return target(path, `no connection (${why})`, wrong(file, path, fault, hint, exit.gateway));
}
