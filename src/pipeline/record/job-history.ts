import type { Layout } from "../../archive/layout.ts";
import { exit, type RunvaultError } from "../../model/error.ts";
import type { ResultLine } from "./job-record.ts";
import { type FoundRecord, readRecords } from "./read-records.ts";

/** An execution that ended. */
export type EndedRecord = FoundRecord & { readonly result: ResultLine };

/** What came of a job's executions, by their records. */
export interface JobHistory {
  readonly job: string;
  /** Of any state; null where the job never ran, or its records cannot be read. */
  readonly newest: FoundRecord | null;
  readonly running: FoundRecord | null;
  readonly lastEnded: EndedRecord | null;
  readonly lastSuccess: EndedRecord | null;
  /** Bytes by which the last executions that ended made the archive grow, newest first. */
  readonly grownBytes: readonly number[];
}

/** How many executions say by how much the archive grows: a week has its quiet nights, and what was is not what is. */
const telling = 7;

/** Reads no more records than it has to. `onDamage` as `readRecords` has it. */
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

/** Records of a clock that was ahead by more than this say nothing of what is new. */
const mostAheadMs = 3_600_000;

/** Whether a record is of a time that is still to come: its clock was wrong, and it would hide what came after it. */
export function isAhead({ begin, result }: Pick<FoundRecord, "begin" | "result">, nowMs: number): boolean {
  return Math.max(Date.parse(begin.at), Date.parse(result?.at ?? begin.at)) > nowMs + mostAheadMs;
}

/** For how long a disk has room. */
export interface DiskOutlook {
  readonly freeBytes: number;
  /** By how much an archive grows in a night in which each of its jobs is executed once; null where no record says. */
  readonly grownPerNight: number | null;
  /** How many such nights there is room for; null where that is not known, or the archive does not grow. */
  readonly nights: number | null;
}

/** What the last executions of an archive's jobs say of the nights to come. */
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
