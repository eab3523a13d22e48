import { createHash } from "node:crypto";
import { open, realpath } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { RunvaultError } from "../../model/error.ts";
import { uniqueFaults } from "./across-files.ts";
import { issueFaults, plainText } from "./issue-faults.ts";
import { type Job, jobSchema } from "./job-schema.ts";
import type { JobPlace } from "./job-values.ts";
import { literalSecrets } from "./literal-secrets.ts";
import { secretWarnings } from "./secret-warnings.ts";
import { applySet, readSet, type SetOption } from "./set-option.ts";
import { type KeyPath, nodeAt, plainOf, type TreeFault, type TreeNode } from "./tree.ts";
import { withVariables } from "./variables.ts";
import { readYamlTree } from "./yaml-tree.ts";

/** Something that is wrong with a job file, or worth a word. */
export interface JobFault {
  readonly level: "error" | "warning";
  /** The file as it was named; null for a `--set` that cannot be read. */
  readonly file: string | null;
  /** From 1; both null where a `--set` or the whole file is at fault. */
  readonly line: number | null;
  readonly column: number | null;
  /** The `--set` whose value it is about, such as `--set recheck`; null for one of the file. */
  readonly set: string | null;
  /** The key with dots, such as `gateway.budget.rps`; null where it is about no key. */
  readonly key: string | null;
  /** What was written there; null where it is a secret, came from the environment, or is no single value. */
  readonly text: string | null;
  readonly message: string;
  /** What to do, one sentence or two. */
  readonly hint: string;
}

/** A job file that can be run. */
export interface JobFile {
  /** As it was named. */
  readonly file: string;
  readonly path: string;
  /** Of the file's bytes, in hex. */
  readonly sha256: string;
  readonly job: Job;
  /**
   * A value of the file in words for people: as it was written, so that what comes from the environment stays unseen.
   * Null where the file has no such single value.
   */
  written(...path: KeyPath): string | null;
}

/** A job file as it was read: the job is null where the file has errors. */
export interface ReadJobFile {
  readonly file: string;
  readonly job: JobFile | null;
  readonly faults: readonly JobFault[];
}

export interface ReadJobFiles {
  /** In the order in which they were named, each once. */
  readonly files: readonly ReadJobFile[];
  /** What is wrong with `--set` itself. */
  readonly faults: readonly JobFault[];
}

export interface JobFilesOptions {
  readonly env: JobPlace["env"];
  /** Values over those of the files, each `KEY=VALUE`. */
  readonly set?: readonly string[];
}

/** A fault as an error that ends a command: wrong usage, in that place. */
export function faultError({ file, line, column, set, message, hint }: JobFault): RunvaultError {
  const place = {
    ...(file === null ? {} : { file }),
    ...(line === null ? {} : { line }),
    ...(column === null ? {} : { column }),
  };
  return new RunvaultError("invalid_argument", set === null ? message : `${set}: ${message}`, {
    place,
    hint,
  });
}

/** Larger than any job file that a person writes. */
const mostBytes = 64 * 1024;

/**
 * Reads job files and checks them, each by itself and all together: never throws for what is in a file, and tells all
 * that is wrong at once. Asks no network; of files that they name it looks at secrets alone, and at who can read them.
 */
export async function readJobFiles(
  names: readonly string[],
  options: JobFilesOptions,
): Promise<ReadJobFiles> {
  const sets: SetOption[] = [];
  const faults: JobFault[] = [];
  for (const text of options.set ?? []) {
    const { set, faults: found } = readSet(text);
    if (set !== null) sets.push(set);
    faults.push(...found.map((fault) => faultOf(fault, null)));
  }
  const read = new Map<string, Reading>();
  for (const file of names) {
    // the same file by another name is the same job; its paths begin where it was named, for Kubernetes mounts files
    // as links into folders that it replaces
    const same = await realpath(file).catch(() => resolve(file));
    if (!read.has(same)) read.set(same, await readJobFile(file, resolve(file), sets, options));
  }
  const readings = [...read.values()];
  for (const { file, fault } of uniqueFaults(readings)) {
    readings.find((reading) => reading.file === file)?.faults.push(faultOf(fault, file));
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
  readonly faults: JobFault[];
}

async function readJobFile(
  file: string,
  path: string,
  sets: readonly SetOption[],
  { env }: JobFilesOptions,
): Promise<Reading> {
  const folder = dirname(path);
  const failed = (...found: readonly TreeFault[]): Reading => ({
    file,
    folder,
    tree: null,
    job: null,
    faults: found.map((fault) => faultOf(fault, file)),
  });
  const bytes = await readBytes(path);
  if (typeof bytes === "string") return failed(wholeFile(bytes, "Name a job file that this user can read."));
  if (bytes.length > mostBytes) {
    return failed(
      wholeFile(`is larger than ${mostBytes / 1024} KiB`, "Name a job file: no job needs as many lines."),
    );
  }
  const text = decoded(bytes);
  if (typeof text !== "string") return failed(text);
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
  const { tree, faults: ofVariables } = withVariables(asWritten, env);
  found.push(...ofVariables);
  const parsed = jobSchema({ folder, env }).safeParse(plainOf(tree));
  if (!parsed.success) found.push(...issueFaults(parsed.error.issues, tree));
  found.push(...literalSecrets(tree));
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
      }
    : null;
  const warnings = parsed.success ? await secretWarnings(parsed.data, tree) : [];
  return {
    file,
    folder,
    tree,
    job,
    faults: [
      ...found.map((fault) => faultOf(fault, file)),
      ...warnings.map((fault) => faultOf(fault, file, "warning")),
    ],
  };
}

/** The bytes of a file, one more than are read at most; why it cannot be read, in words. */
async function readBytes(path: string): Promise<Buffer | string> {
  try {
    await using handle = await open(path, "r");
    if (!(await handle.stat()).isFile()) return "is not a file";
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(mostBytes + 1), 0, mostBytes + 1, 0);
    return buffer.subarray(0, bytesRead);
  } catch (error) {
    const { code = "unknown error" } = error as NodeJS.ErrnoException;
    return code === "ENOENT" ? "does not exist" : `cannot be read: ${code}`;
  }
}

/** The text of a file; what is wrong where it is not UTF-8. */
function decoded(bytes: Buffer): string | TreeFault {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    const before = validPart(bytes);
    const lines = before.split("\n");
    const place = { kind: "file", line: lines.length, column: lines.at(-1)!.length + 1 } as const;
    return { place, key: null, text: null, message: "this is not UTF-8", hint: "Save the file as UTF-8." };
  }
}

/** What comes before the first byte that is not UTF-8. */
function validPart(bytes: Buffer): string {
  const replaced = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  for (let at = replaced.indexOf("\ufffd"); at >= 0; at = replaced.indexOf("\ufffd", at + 1)) {
    const before = replaced.slice(0, at);
    const length = Buffer.byteLength(before);
    if (!bytes.subarray(length, length + 3).equals(Buffer.from("\ufffd"))) return before;
  }
  return "";
}

function wholeFile(message: string, hint: string): TreeFault {
  return {
    place: { kind: "file", line: 0, column: 0 },
    key: null,
    text: null,
    message: `the file ${message}`,
    hint,
  };
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

function faultOf(fault: TreeFault, file: string | null, level: JobFault["level"] = "error"): JobFault {
  const { place, key, text, message, hint } = fault;
  const isPlaced = place.kind === "file" && place.line > 0;
  return {
    level,
    file,
    line: isPlaced ? place.line : null,
    column: isPlaced ? place.column : null,
    set: place.kind === "set" ? place.flag : null,
    key: key === "" ? null : key,
    text,
    message,
    hint,
  };
}

function byPlace(a: JobFault, b: JobFault): number {
  return (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0);
}
