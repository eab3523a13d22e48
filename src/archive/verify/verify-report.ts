import { relative } from "node:path";
import { exit } from "../../model/error.ts";
import type { TableName } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";

/** All checks, in the order of reports. */
export const checkNames = [
  "places",
  "foreign",
  "manifest",
  "documents",
  "files",
  "unreferenced",
  "state",
  "certificate",
  "segment-windows",
  "segment-lines",
  "parquet-buckets",
  "parquet-rows",
  "parquet-types",
  "quarantine",
  "links",
  "order",
  "bounds",
  "identity",
  "lines",
  "row-hash",
  "seq-unique",
  "fills-have-orders",
  "facts",
] as const;
export type CheckName = (typeof checkNames)[number];

/**
 * The result of a check. `notice`: odd but harmless. `unproven`: the archive has what came, but that is not proven
 * whole or sound. `damaged`: the archive differs from what was committed.
 */
export type CheckLevel = "ok" | "notice" | "unproven" | "damaged";

export interface VerifyCheck {
  readonly run: RunRef;
  /** Null if the check concerns the run as a whole. */
  readonly table: TableName | null;
  readonly check: CheckName;
  readonly level: CheckLevel;
  /** True for the levels `ok` and `notice`. */
  readonly ok: boolean;
  /** What was checked, or what is wrong, with values. */
  readonly detail: string;
  /** Affected files, relative to the archive folder. */
  readonly files: readonly string[];
}

export interface VerifyReport {
  readonly run: RunRef;
  /** Generation of the manifest that was checked; null if it cannot be read. */
  readonly generation: number | null;
  readonly checks: readonly VerifyCheck[];
  readonly damaged: boolean;
  readonly unproven: boolean;
  /** What to do if the run could not be read; null if it was. */
  readonly remedy: string | null;
  /** Exit status: damaged before incomplete before done. */
  readonly exit: number;
}

/** Collects the checks of one run. */
export class CheckList {
  readonly checks: VerifyCheck[] = [];
  readonly run: RunRef;
  /** See `VerifyReport`. */
  remedy: string | null = null;
  readonly #dir: string;
  readonly #accepted = new Set<TableName>();

  constructor(run: RunRef, archiveDir: string) {
    this.run = { instanceId: run.instanceId, runId: run.runId };
    this.#dir = archiveDir;
  }

  /** From here on, unproven parts of a table that the operator accepted are notices; damage stays damage. */
  accept(table: TableName): void {
    this.#accepted.add(table);
  }

  add(
    table: TableName | null,
    check: CheckName,
    found: CheckLevel,
    detail: string,
    files: readonly string[] = [],
  ): void {
    const isAccepted = found === "unproven" && table !== null && this.#accepted.has(table);
    const level = isAccepted ? "notice" : found;
    const shown = files.map((file) => relative(this.#dir, file));
    const ok = level === "ok" || level === "notice";
    this.checks.push({ run: this.run, table, check, level, ok, detail, files: shown });
  }

  /** One check with several possible faults: an entry per fault, or one `ok` entry. */
  faults(
    table: TableName | null,
    check: CheckName,
    found: readonly Fault[],
    detailWhenOk: string,
    level: CheckLevel = "damaged",
  ): void {
    if (found.length === 0) this.add(table, check, "ok", detailWhenOk);
    for (const { detail, files } of found) this.add(table, check, level, detail, files);
  }

  report(generation: number | null): VerifyReport {
    const { checks, run, remedy } = this;
    const damaged = checks.some(({ level }) => level === "damaged");
    const unproven = checks.some(({ level }) => level === "unproven");
    const status = damaged ? exit.damaged : unproven ? exit.incomplete : exit.done;
    return { run, generation, checks, damaged, unproven, remedy, exit: status };
  }
}

export interface Fault {
  readonly detail: string;
  readonly files?: readonly string[];
}
