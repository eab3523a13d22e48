import type { Layout } from "../../archive/layout.ts";
import { exit, type RunvaultError } from "../../model/error.ts";
import type { ResultLine } from "./job-record.ts";
import { type FoundRecord, readRecords } from "./read-records.ts";

/** An execution that ended. */
export type EndedRecord = FoundRecord & { readonly result: ResultLine };

/** A job's past, by its records. */
export interface JobHistory {
  readonly job: string;
  /** Of any state; null if the job never ran, or its records cannot be read. */
  readonly newest: FoundRecord | null;
  readonly running: FoundRecord | null;
  readonly lastEnded: EndedRecord | null;
  readonly lastSuccess: EndedRecord | null;
  /** Archive growth in bytes of the last executions that ended, newest first. */
  readonly grownBytes: readonly number[];
}

/** Number of executions that predict growth: a week has quiet nights, and old growth says little. */
const telling = 7;

/** Reads no more records than needed. `onDamage` as in `readRecords`. */
export async function jobHistory(
  layout: Layout,
  job: string,
  onDamage: (error: RunvaultError) => void,
  nowMs = Date.now(),
): Promise<JobHistory> {
  let newest: FoundRecord | null = null;
  let running: FoundRecord | null = null;
  let lastEnded: EndedRecord | null = null;
  let lastSuccess: EndedRecord | null = null;
  const grownBytes: number[] = [];
  for await (const record of readRecords(layout, { job, onDamage })) {
    if (isAhead(record, nowMs)) continue;
    newest ??= record;
    if (record.state === "running") running = record;
    const { result } = record;
    if (result === null) continue;
    const ended: EndedRecord = { ...record, result };
    lastEnded ??= ended;
    if (result.exit === exit.done) lastSuccess ??= ended;
    if (grownBytes.length < telling) grownBytes.push(result.grownBytes);
    if (lastSuccess !== null && grownBytes.length === telling) break;
  }
  return { job, newest, running, lastEnded, lastSuccess, grownBytes };
}

/** Records from a clock that was ahead by more than this do not count as newest. */
const mostAheadMs = 3_600_000;

/** Whether a record lies in the future: its clock was wrong, and it would hide later ones. */
export function isAhead({ begin, result }: Pick<FoundRecord, "begin" | "result">, nowMs: number): boolean {
  return Math.max(Date.parse(begin.at), Date.parse(result?.at ?? begin.at)) > nowMs + mostAheadMs;
}

/** How long a disk will last. */
export interface DiskOutlook {
  readonly freeBytes: number;
  /** Growth of the archive in a night in which each of its jobs runs once; null if no record says. */
  readonly grownPerNight: number | null;
  /** Number of such nights that fit; null if unknown, or if the archive does not grow. */
  readonly nights: number | null;
}

/** Predicts how long the disk lasts from the last executions of an archive's jobs. */
export function diskOutlook(freeBytes: number, jobs: readonly Pick<JobHistory, "grownBytes">[]): DiskOutlook {
  const means = jobs
    .filter(({ grownBytes }) => grownBytes.length > 0)
    .map(({ grownBytes }) => grownBytes.reduce((sum, bytes) => sum + bytes, 0) / grownBytes.length);
  if (means.length === 0) return { freeBytes, grownPerNight: null, nights: null };
  const grownPerNight = Math.round(means.reduce((sum, mean) => sum + mean, 0));
  return {
    freeBytes,
    grownPerNight,
    nights: grownPerNight > 0 ? Math.floor(freeBytes / grownPerNight) : null,
  };
}
