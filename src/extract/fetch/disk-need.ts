import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { RunvaultError } from "../../model/error.ts";
import type { ColumnKind, Table } from "../../model/profile/table.ts";
import { byteText } from "../../model/text/byte-text.ts";

/** Usual width of a column's value in text. */
const valueBytes: Record<ColumnKind, number> = {
  uint64: 7,
  int64: 14,
  timestamp: 19,
  uint32: 2,
  exact: 9,
  double: 18,
  string: 12,
};

// measured on simulated and recorded data: segments take 6 to 9 % of their text, Parquet half as much; the rest is for
// data that compresses worse
const diskShare = 0.2;

/** The estimated bytes of text for a number of rows. */
export function textBytes(table: Table, rows: number): number {
  const line = table.columns.reduce((sum, { name, kind }) => sum + name.length + 5 + valueBytes[kind], 2);
  return Math.round(line * rows);
}

/** Bytes in the archive for rows with this much text, segments and Parquet together. */
export function diskBytes(text: number): number {
  return Math.round(text * diskShare);
}

/** Free bytes on the disk of a folder, which need not exist yet. */
export async function freeBytes(folder: string): Promise<number> {
  return (await diskRoom(folder)).free;
}

/** The most space that jobs leave free on a disk, for journals, manifests and everything else there. */
const mostReserve = 64 * 1024 * 1024;

/** Bytes on a disk that are free, and how many of them jobs must leave free. */
export interface DiskRoom {
  readonly free: number;
  readonly reserve: number;
}

/** Whether this many bytes fit on a disk. Jobs and their plans use the same rule. */
export function hasRoom({ free, reserve }: DiskRoom, needed: number): boolean {
  return needed <= 0 || needed + reserve <= free;
}

/** The disk with the least room. */
export function leastRoom(rooms: readonly DiskRoom[]): DiskRoom {
  return rooms.reduce((least, room) =>
    room.free - room.reserve < least.free - least.reserve ? room : least,
  );
}

/** `the disk has 1.0 GB free, of which 64 MB must stay free` */
export function roomText({ free, reserve }: DiskRoom): string {
  return `the disk has ${byteText(free)} free, of which ${byteText(reserve)} must stay free`;
}

/** The room on the disk of a folder, which need not exist yet. */
export async function diskRoom(folder: string): Promise<DiskRoom> {
  try {
    const { bavail, bsize, blocks } = await statfs(folder);
    return { free: bavail * bsize, reserve: Math.min(mostReserve, Math.floor((blocks * bsize) / 100)) };
  } catch (error) {
    const parent = dirname(folder);
    if ((error as NodeJS.ErrnoException).code === "ENOENT" && parent !== folder)
      return await diskRoom(parent);
    throw RunvaultError.from(error, { place: { file: folder } });
  }
}

/** Throws `storage_full` if it will not fit, before anything is fetched. */
export async function refuseWhenFull(folder: string, needed: number): Promise<void> {
  const room = await diskRoom(folder);
  if (hasRoom(room, needed)) return;
  throw new RunvaultError("storage_full", `the rows need about ${byteText(needed)}, but ${roomText(room)}`, {
    place: { file: folder },
    hint: "Free some space, or point --archive at a larger disk. Nothing was fetched.",
  });
}

/**
 * Checks the disk before writing a file of about this size: rows may take far more than estimated, and others write
 * there, too. Throws `storage_full` if less than the reserve would remain, so what is fetched can still be saved.
 */
export async function requireRoom(folder: string, bytes: number): Promise<void> {
  const { free, reserve } = await diskRoom(folder);
  if (free - bytes >= reserve) return;
  throw new RunvaultError(
    "storage_full",
    `the disk has only ${byteText(free)} free, and ${byteText(reserve)} must stay free`,
    {
      place: { file: folder },
      hint: "Free some space and run the same command again: it continues from what is already here.",
    },
  );
}
