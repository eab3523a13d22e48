import { createHash } from "node:crypto";
import { join, relative, sep } from "node:path";
import type { TableName } from "../model/profile/table.ts";
import type { RunRef } from "../model/source.ts";

const longestName = 200;

/**
 * An id as one path component: bytes outside `[A-Za-z0-9._-]` as `%XX`, a leading `.` encoded, names over 200 bytes
 * shortened with a hash. Different ids may share a shortened name only by a hash collision; manifests hold the true id
 * and a commit onto another id's path is refused.
 */
export function pathName(id: string): string {
  let name = "";
  for (const byte of Buffer.from(id, "utf8")) {
    const char = String.fromCharCode(byte);
    const plain = /[A-Za-z0-9_-]/.test(char) || (char === "." && name !== "");
    name += plain ? char : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  if (name === "") return "%";
  if (name.length <= longestName) return name;
  const hash = createHash("sha256").update(id, "utf8").digest("hex").slice(0, 32);
  return `${name.slice(0, longestName - hash.length - 1)}~${hash}`;
}

/** The id from which `pathName` makes this name; null if that is unknown, for a shortened or foreign name. */
function idOf(name: string): string | null {
  const bytes = name.replace(/%([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  const id = name === "%" ? "" : Buffer.from(bytes, "latin1").toString("utf8");
  return pathName(id) === name ? id : null;
}

/** Whether `pathName` may have made the name; many names that people give folders pass, too. */
export function isPathName(name: string): boolean {
  return idOf(name) !== null || (name.length === longestName && /~[0-9a-f]{32}$/.test(name));
}

/** The name of a job, as job files give it; used unchanged as a folder's name. */
export const jobNamePattern = /^[a-z0-9](?:[a-z0-9-]{0,50}[a-z0-9])?$/;

export function isJobName(text: string): boolean {
  return jobNamePattern.test(text);
}

/** The start time and id of the execution whose record has this name; null for any other name. */
export function recordOfName(name: string): { readonly began: Date; readonly id: string } | null {
  const parts = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d\.\d{3})Z-([0-9a-z]{8})\.ndjson$/.exec(name);
  if (parts === null) return null;
  const [, year, month, day, hour, minute, second, id] = parts;
  const began = new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  return Number.isNaN(began.getTime()) ? null : { began, id: id! };
}

/** Where everything in an archive is. The only place that builds paths. */
export class Layout {
  readonly dir: string;
  /** The archive's own folder in an external scratch folder; null if work is in the archive. */
  readonly scratch: string | null;

  constructor(dir: string, scratch: string | null = null) {
    this.dir = dir;
    this.scratch = scratch;
  }

  /** The folders whose disks need space for rows. */
  get disks(): readonly string[] {
    return this.scratch === null ? [this.dir] : [this.dir, this.scratch];
  }

  /** Whether a path is in the external scratch folder. */
  isScratch(path: string): boolean {
    return this.scratch !== null && (path === this.scratch || path.startsWith(`${this.scratch}${sep}`));
  }

  /** The key of a path: relative to the archive's root, or for external work, to the archive's folder there. */
  keyOf(path: string): string {
    const root = this.scratch !== null && this.isScratch(path) ? this.scratch : this.dir;
    return relative(root, path).split(sep).join("/");
  }

  /** Format, identity and column types of the archive. */
  get archiveFile(): string {
    return join(this.dir, "archive.json");
  }

  /** What is known about the sources of the rows. */
  get sourcesFile(): string {
    return join(this.dir, "sources.json");
  }

  get runsDir(): string {
    return join(this.dir, "runs");
  }

  get stagingRoot(): string {
    return join(this.scratch ?? this.dir, "staging");
  }

  get tablesRoot(): string {
    return join(this.dir, "tables");
  }

  /** Name of the folder that holds the manifests of an instance. */
  instanceFolder(instanceId: string): string {
    return pathName(instanceId);
  }

  /** The id from which a name in a path was made; null for a long id, whose name is shortened. */
  idOf(name: string): string | null {
    return idOf(name);
  }

  /** The committed description of a run. */
  manifestFile(run: RunRef): string {
    return join(this.runsDir, pathName(run.instanceId), `${pathName(run.runId)}.json`);
  }

  /** Committed files of a run: segments, Parquet, documents. */
  dataDir(run: RunRef): string {
    return join(this.dir, "data", ...runPath(run));
  }

  /** The key of a committed file or of one set aside; without a file, the prefix of the run's folder. */
  committedKey(run: RunRef, folder: "data" | "quarantine", file = ""): string {
    return [folder, ...runPath(run), file].join("/");
  }

  get pendingRoot(): string {
    return join(this.scratch ?? this.dir, "pending");
  }

  /** Fetched, not yet committed. */
  pendingDir(run: RunRef): string {
    return this.runDir(this.pendingRoot, run);
  }

  /** The same archive with its work inside it, where jobs without a scratch folder leave it. */
  withoutScratch(): Layout {
    return this.scratch === null ? this : new Layout(this.dir);
  }

  journalFile(run: RunRef): string {
    return join(this.pendingDir(run), "journal.ndjson");
  }

  /** Half-written files of a run; never read. */
  stagingDir(run: RunRef): string {
    return join(this.stagingRoot, ...runPath(run));
  }

  /** A run's own folder below another. */
  runDir(folder: string, run: RunRef): string {
    return join(folder, ...runPath(run));
  }

  quarantineDir(run: RunRef): string {
    return join(this.dir, "quarantine", ...runPath(run));
  }

  lockFile(run: RunRef): string {
    return join(this.locksDir, pathName(run.instanceId), `${pathName(run.runId)}.duckdb`);
  }

  get locksDir(): string {
    return join(this.dir, "locks");
  }

  /** Held by a job that changes what concerns all runs. No instance's folder begins with a dot. */
  get archiveLockFile(): string {
    return join(this.locksDir, ".archive.duckdb");
  }

  /** Held by a reader that started at this time, in milliseconds since 1970. */
  readingFile(beganMs: number, name: string): string {
    return join(this.locksDir, `.reading-${beganMs}-${name}.duckdb`);
  }

  /** The start time of the reader whose file in `locks/` has this name; null for any other name. */
  readingSince(name: string): number | null {
    const [, beganMs] = /^\.reading-(\d{1,15})-\d+-\d+\.duckdb$/.exec(name) ?? [];
    return beganMs === undefined ? null : Number(beganMs);
  }

  /** What readers remember about a run's files; see `whole-files.ts`. */
  cacheFile(run: RunRef): string {
    return join(this.dir, "cache", pathName(run.instanceId), `${pathName(run.runId)}.json`);
  }

  /** What a job over several runs must remember after it ends. */
  jobFile(name: string): string {
    return join(this.jobsDir, `${name}.json`);
  }

  get jobsDir(): string {
    return join(this.dir, "jobs");
  }

  /** The records of a job's executions. */
  recordsDir(job: string): string {
    return join(this.jobsDir, job);
  }

  /** The record of an execution, under a name that sorts by its start time. `id` is unique within a job. */
  recordFile(job: string, began: Date, id: string): string {
    return join(this.recordsDir(job), `${began.toISOString().replace(/[-:]/g, "")}-${id}.ndjson`);
  }

  /** Held by the one execution of a job that is running. */
  jobLockFile(job: string): string {
    return join(this.locksDir, `.job-${job}.duckdb`);
  }

  /** The job whose lock has this name in `locks/`; null for any other name. */
  jobOfLock(name: string): string | null {
    const [, job = ""] = /^\.job-(.+)\.duckdb(?:\.wal)?$/.exec(name) ?? [];
    return isJobName(job) ? job : null;
  }

  /** The folder that users read with globs, for one table of all runs. */
  tablesDir(table: TableName): string {
    return join(this.tablesRoot, table);
  }

  /** Where that folder is rebuilt, on the same disk. No run's folder begins with a dot. */
  tablesAside(table: TableName): string {
    return join(this.dir, "staging", `.tables-${table}`);
  }

  /** The folder that users read with globs, for one table of a run. */
  tableDir(table: TableName, run: RunRef): string {
    return this.runDir(this.tablesDir(table), run);
  }
}

function runPath(run: RunRef): [string, string] {
  return [pathName(run.instanceId), pathName(run.runId)];
}
