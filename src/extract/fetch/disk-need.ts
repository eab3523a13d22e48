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
// data that packs worse
const diskShare = 0.2;

/** An estimate of the text of so many rows, in bytes. */
export function textBytes(table: Table, rows: number): number {
  const line = table.columns.reduce((sum, { name, kind }) => sum + name.length + 5 + valueBytes[kind], 2);
  return Math.round(line * rows);
}

/** Bytes in the archive for so much text of rows, segments and Parquet together. */
export function diskBytes(text: number): number {
  return Math.round(text * diskShare);
}

/** Free bytes on the disk that a folder is on, or will be on once it is made. */
export async function freeBytes(folder: string): Promise<number> {
  return (await diskRoom(folder)).free;
}

/** Most space that jobs leave free on a disk, for their journals and manifests, and everything else on it. */
const mostReserve = 64 * 1024 * 1024;

/** Bytes of a disk: those that are free, and those of them that jobs leave free. */
export interface DiskRoom {
  readonly free: number;
  readonly reserve: number;
}

/** Whether so many bytes go onto a disk: a job goes by it, and so does its plan. */
export function hasRoom({ free, reserve }: DiskRoom, needed: number): boolean {
  return needed <= 0 || needed + reserve <= free;
}

/** The room on the disk that takes least. */
export function leastRoom(rooms: readonly DiskRoom[]): DiskRoom {
  return rooms.reduce((least, room) =>
    room.free - room.reserve < least.free - least.reserve ? room : least,
  );
}

/** `the disk has 1.0 GB free, of which 64 MB must stay free` */
export function roomText({ free, reserve }: DiskRoom): string {
  return `the disk has ${byteText(free)} free, of which ${byteText(reserve)} must stay free`;
}

/** The room on the disk that a folder is on, or will be on once it is made. */
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

/** Throws `storage_full` before anything is fetched when it will not fit. */
export async function refuseWhenFull(folder: string, needed: number): Promise<void> {
  const room = await diskRoom(folder);
  if (hasRoom(room, needed)) return;
  throw new RunvaultError("storage_full", `the rows need about ${byteText(needed)}, but ${roomText(room)}`, {
    place: { file: folder },
    hint: "Free some space or point --archive at a larger disk; nothing was fetched.",
  });
}

/**
 * Checks the disk before writing a file of about so many bytes: rows may take far more than estimated, and others write
 * there, too. Throws `storage_full` if less than the reserve would remain, so that everything here can still be kept.
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
