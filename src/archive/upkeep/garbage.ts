import type { BigIntStats } from "node:fs";
import { lstat } from "node:fs/promises";
import type { Nanoseconds } from "../../model/time.ts";
import { isMissing } from "../storage/fsync-files.ts";

/** What is collected, in the order of reports. */
export const garbageKinds = [
  /** Committed files of earlier generations. */
  "replaced",
  /** Files beside committed ones that no manifest names, or ever named. */
  "unnamed",
  /** Fetched or converted work on runs that are committed since, and work that no job would continue. */
  "work",
  /** Links in `tables/` without a committed bucket. */
  "links",
  /** Readers' caches of runs that are no longer archived. */
  "cache",
  /** Locks of runs that are not archived, of readers that are gone, and of jobs without a record. */
  "locks",
  /** Leftovers of killed writers that were replacing files. */
  "halfWritten",
] as const;
export type GarbageKind = (typeof garbageKinds)[number];

/** Why possible garbage is kept. */
export const keepReasons = [
  /** Younger than the grace period. */
  "young",
  /** A job is working on its run. */
  "running",
  /** A reader may have it open, or listed. */
  "reading",
  /** Work that the next job on its run continues. */
  "unfinished",
  /** A change of column types is in progress or was stopped; `rebuild` finishes it. */
  "widening",
  /** The run's id is too long to read from its folder; `rm` with the id removes it. */
  "longId",
  /** The archive has no manifest at all: they were probably lost, so these files are not garbage. */
  "noManifests",
] as const;
export type KeepReason = (typeof keepReasons)[number];

/** A file that is, or may be, garbage; with a reason if it stays. */
export interface Garbage {
  readonly path: string;
  readonly kind: GarbageKind;
  readonly stays: KeepReason | null;
}

/** Files, and the bytes freed by removing them. */
export interface Tally {
  files: number;
  bytes: number;
}

/** When a file was last written, or got or lost a name; null if it is not a regular file. */
export async function changedAt(path: string): Promise<Nanoseconds | null> {
  const found = await statOf(path);
  if (!found?.isFile()) return null;
  return found.mtimeNs > found.ctimeNs ? found.mtimeNs : found.ctimeNs;
}

/** Null if there is nothing. */
export async function statOf(path: string): Promise<BigIntStats | null> {
  try {
    return await lstat(path, { bigint: true });
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}
