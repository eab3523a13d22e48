import type { BigIntStats } from "node:fs";
import { lstat } from "node:fs/promises";
import type { Nanoseconds } from "../../model/time.ts";
import { isMissing } from "../storage/fsync-files.ts";

/** What is collected, in the order in which it is told. */
export const garbageKinds = [
  /** Committed files of generations before the last. */
  "replaced",
  /** Files beside committed ones that no manifest names, or ever named. */
  "unnamed",
  /** What was fetched or converted of runs that are committed since, and what no job would take up. */
  "work",
  /** In `tables/`, of no committed bucket. */
  "links",
  /** What readers remembered of runs that are not archived any more. */
  "cache",
  /** Of runs that are not archived, of readers that are gone, and of jobs without a record. */
  "locks",
  /** What killed writers left of files that were to replace others. */
  "halfWritten",
] as const;
export type GarbageKind = (typeof garbageKinds)[number];

/** Why garbage, or what may be some, stays. */
export const keepReasons = [
  /** Younger than the grace period. */
  "young",
  /** A job is working on its run. */
  "running",
  /** A reader may have it open, or on its list. */
  "reading",
  /** Work that the next job on its run goes on with. */
  "unfinished",
  /** A change of column types is under way, or was stopped, and `rebuild` ends it. */
  "widening",
  /** Of a run with so long an id that its folder does not tell it; `rm` with the id removes it. */
  "longId",
  /** There is not one manifest in the archive: they are lost, rather than all these files garbage. */
  "noManifests",
] as const;
export type KeepReason = (typeof keepReasons)[number];

/** A file that is garbage, or may be; a reason where it stays. */
export interface Garbage {
  readonly path: string;
  readonly kind: GarbageKind;
  readonly stays: KeepReason | null;
}

/** Files, and the bytes that the disk has back, or would have, without them. */
export interface Tally {
  files: number;
  bytes: number;
}

/** The last time that a file was written, put under its name, or lost another name; null where there is no regular file. */
export async function changedAt(path: string): Promise<Nanoseconds | null> {
  const found = await statOf(path);
  if (!found?.isFile()) return null;
  return found.mtimeNs > found.ctimeNs ? found.mtimeNs : found.ctimeNs;
}

/** Null where there is nothing. */
export async function statOf(path: string): Promise<BigIntStats | null> {
  try {
    return await lstat(path, { bigint: true });
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}
