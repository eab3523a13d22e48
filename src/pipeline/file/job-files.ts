import { createHash } from "node:crypto";
import { realpath } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { type FileFault, fileFault } from "../../model/yaml/file-fault.ts";
import { issueFaults, plainText, shownText } from "../../model/yaml/issue-faults.ts";
import { readText } from "../../model/yaml/read-text.ts";
import {
  type KeyPath,
  keyText,
  nodeAt,
  placeAt,
  plainOf,
  type TreeFault,
  type TreeNode,
} from "../../model/yaml/tree.ts";
import { readYamlTree } from "../../model/yaml/yaml-tree.ts";
import { uniqueFaults } from "./across-files.ts";
import { jobFileKind } from "./job-file-kind.ts";
import { noProfile, readJobProfile } from "./job-profile.ts";
import { hooks, type Job, jobSchema } from "./job-schema.ts";
import type { JobPlace } from "./job-values.ts";
import { literalSecrets } from "./literal-secrets.ts";
import { secretWarnings } from "./secret-warnings.ts";
import { applySet, readSet, type SetOption } from "./set-option.ts";
import { type JobVariable, uniqueVariables, variablesIn, withVariables } from "./variables.ts";
import { withoutUnset } from "./without-unset.ts";

/** A valid job file. */
export interface JobFile {
  /** As named on the command line. */
  readonly file: string;
  readonly path: string;
  /** Of the file's bytes, in hex. */
  readonly sha256: string;
  readonly job: Job;
  /**
   * A value as written in the file, so that values from the environment stay hidden. Null if the file has no such
   * single value.
   */
  written(...path: KeyPath): string | null;
  /** Whether the value at a path contains one from the environment. */
  isFromEnvironment(...path: KeyPath): boolean;
  /** An error or warning about a path, with its place in the file, or that of the nearest parent. */
  fault(level: FileFault["level"], path: KeyPath, message: string, hint: string): FileFault;
  /** The environment variables that it uses in values or names as such. */
  readonly variables: readonly JobVariable[];
}

/** A job file after reading: the job is null if the file has errors. */
export interface ReadJobFile {
  readonly file: string;
  readonly job: JobFile | null;
  readonly faults: readonly FileFault[];
}

export interface ReadJobFiles {
  /** In order, each once. */
  readonly files: readonly ReadJobFile[];
  /** What is wrong with `--set` itself. */
  readonly faults: readonly FileFault[];
}

export interface JobFilesOptions {
  readonly env: JobPlace["env"];
  /** Values that replace the files', each `KEY=VALUE`. */
  readonly set?: readonly string[];
  /** Where relative paths start, for files that will be elsewhere. Default: the folder of each. */
  readonly folder?: string;
  /**
   * What the job is read for. Only an execution needs its secrets; `reading` works without any variable that is not
   * needed to look at the archive. Default: execution.
   */
  readonly purpose?: "execution" | "units" | "reading";
}

/**
 * Reads job files and checks each of them and all together. Never throws for a file's contents, and reports all errors
 * at once. Uses no network; looks only at secret files that they name, and at who can read those.
 */
export async function readJobFiles(
  names: readonly string[],
  options: JobFilesOptions,
): Promise<ReadJobFiles> {
  const sets: SetOption[] = [];
  const faults: FileFault[] = [];
  for (const text of options.set ?? []) {
    const { set, faults: found } = readSet(text);
    if (set !== null) sets.push(set);
    faults.push(...found.map((fault) => fileFault(fault, null)));
  }
  const read = new Map<string, Reading>();
  for (const file of names) {
    // the same file by another name is the same job; paths start where it was named, because Kubernetes mounts files as
    // links into changing folders
    const same = await realpath(file).catch(() => resolve(file));
    if (!read.has(same)) read.set(same, await readJobFile(file, resolve(file), sets, options));
  }
  const readings = [...read.values()];
  for (const { file, fault } of uniqueFaults(readings)) {
    readings.find((reading) => reading.file === file)?.faults.push(fileFault(fault, file));
  }
  return {
    faults,
    files: readings.map(({ file, job, faults: found }) => ({
      file,
      job: found.some(({ level }) => level === "error") ? null : job,
      faults: found.sort(byPlace),
    })),
  };
}

interface Reading {
  readonly file: string;
  readonly folder: string;
  readonly tree: TreeNode | null;
  readonly job: JobFile | null;
  readonly faults: FileFault[];
}

/** The same for the text of a file that is about to be written. */
export async function readJobText(
  file: string,
  text: string,
  options: Pick<JobFilesOptions, "env" | "folder">,
): Promise<ReadJobFile> {
  const content = { text, bytes: Buffer.from(text) };
  const { job, faults } = await readContent(file, resolve(file), content, [], options);
  return { file, job: faults.some(({ level }) => level === "error") ? null : job, faults };
}

async function readJobFile(
  file: string,
  path: string,
  sets: readonly SetOption[],
  options: JobFilesOptions,
): Promise<Reading> {
  return await readContent(file, path, await readText(path, "a job file"), sets, options);
}

async function readContent(
  file: string,
  path: string,
  content: Awaited<ReturnType<typeof readText>>,
  sets: readonly SetOption[],
  { env, folder = dirname(path), purpose = "execution" }: JobFilesOptions,
): Promise<Reading> {
  const failed = (...found: readonly TreeFault[]): Reading => ({
    file,
    folder,
    tree: null,
    job: null,
    faults: found.map((fault) => fileFault(fault, file)),
  });
  if ("fault" in content) return failed(content.fault);
  const { text, bytes } = content;
  const hasMark = text.startsWith("\ufeff");
  const { tree: asWritten, faults } = readYamlTree(hasMark ? text.slice(1) : text);
  const found: TreeFault[] = [...faults];
  if (hasMark) {
    found.unshift(
      firstLine("begins with a byte order mark", "Save the file as UTF-8 without a byte order mark."),
    );
  }
  if (asWritten === null) {
    if (faults.length > 0) return failed(...found);
    return failed(
      ...found,
      firstLine("is empty", "`runvault schema pipeline` prints what a job file may have."),
    );
  }
  if (asWritten.kind === "map") {
    for (const set of sets) {
      const fault = applySet(asWritten, set);
      if (fault !== null) found.push(fault);
    }
  }
  const replaced = withVariables(asWritten, env);
  const { tree, faults: ofVariables } =
    purpose === "reading" ? withoutUnset(replaced.tree, replaced.faults) : replaced;
  found.push(...ofVariables);
  const place = { folder, env, withoutSecrets: purpose !== "execution" };
  const parsed = jobSchema(place).safeParse(plainOf(tree));
  if (!parsed.success) found.push(...issueFaults(parsed.error.issues, tree, jobFileKind()));
  found.push(...literalSecrets(tree));
  const isDescribed = parsed.success && purpose !== "reading";
  const described = isDescribed ? await readJobProfile(parsed.data, tree) : noProfile;
  const job: JobFile | null = parsed.success
    ? {
        file,
        path,
        sha256: createHash("sha256").update(bytes).digest("hex"),
        job: parsed.data,
        written: (...key) => {
          const node = nodeAt(tree, key);
          return node?.kind === "scalar" ? plainText(node.written) : null;
        },
        isFromEnvironment: (...key) => {
          const node = nodeAt(tree, key);
          return node !== undefined && hasVariables(node);
        },
        fault: (level, key, message, hint) => {
          const node = nodeAt(tree, key);
          const isShown = node?.kind === "scalar" && node.variables.length === 0;
          const text = isShown ? shownText(node.written) : null;
          const place = placeAt(tree, key);
          return fileFault({ place, key: keyText(key), text, message, hint }, file, level);
        },
        variables: uniqueVariables([
          ...variablesIn(asWritten),
          ...namedVariables(parsed.data),
          ...described.variables,
        ]),
      }
    : null;
  const warnings = parsed.success ? await secretWarnings(parsed.data, tree) : [];
  return {
    file,
    folder,
    tree,
    job,
    faults: [
      ...[...found, ...described.faults].map((fault) => fileFault(fault, file)),
      ...warnings.map((fault) => fileFault(fault, file, "warning")),
    ],
  };
}

function namedVariables({ gateway, notify }: Job): JobVariable[] {
  const names = [
    gateway.token?.kind === "env" ? gateway.token.name : undefined,
    notify.heartbeat?.url_env,
    ...hooks.map((hook) => notify[hook]?.url_env),
  ];
  return names.filter((name) => name !== undefined).map((name) => ({ name, isNeeded: true }));
}

function hasVariables(node: TreeNode): boolean {
  if (node.kind === "scalar") return node.variables.length > 0;
  const parts = node.kind === "list" ? node.items : [...node.entries.values()].map(({ value }) => value);
  return parts.some(hasVariables);
}

function firstLine(message: string, hint: string): TreeFault {
  return {
    place: { kind: "file", line: 1, column: 1 },
    key: null,
    text: null,
    message: `the file ${message}`,
    hint,
  };
}

function byPlace(a: FileFault, b: FileFault): number {
  return (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0);
}
