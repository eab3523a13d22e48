import type { BigIntStats } from "node:fs";
import { lstat } from "node:fs/promises";
import { RunvaultError } from "../../model/error.ts";
import { isMissing } from "../durable.ts";

/** What tells a file from the one that replaces it, and from itself after a write; null where there is none. */
export async function markOf(file: string): Promise<string | null> {
  try {
    return fileMark(await lstat(file, { bigint: true }));
  } catch (error) {
    if (isMissing(error)) return null;
    throw RunvaultError.from(error, { place: { file } });
  }
}

/** The same of a file that was looked at. */
export function fileMark({ ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `${ino} ${size} ${mtimeNs} ${ctimeNs}`;
}
