import { join } from "node:path";
import { z } from "zod";
import { RunvaultError } from "../model/error.ts";
import { parseJson } from "../model/outside-json.ts";
import type { RunRef } from "../model/source.ts";
import { openArchiveFile, readArchiveFile } from "./archive-file.ts";
import { lineLimitBytes } from "./careful.ts";
import { shorten } from "./convert-line.ts";
import { isMissing } from "./durable.ts";
import type { Layout } from "./layout.ts";
import type { QuarantineFile } from "./manifest.ts";

/** One of the rows set aside from a table, for a report. */
export interface SetAside {
  /** What is wrong with it. */
  readonly reason: string;
  /** The row as it came, in quotes, cut where it is long. */
  readonly row: string;
  /** The file that has all of it, with others. */
  readonly file: string;
}

const recordSchema = z.looseObject({ reason: z.string(), raw: z.string() });

/** The first row in a table's quarantine; null where there is none, or none that can be read: `verify` tells of damage. */
export async function exampleSetAside(
  layout: Layout,
  run: RunRef,
  quarantine: readonly QuarantineFile[],
): Promise<SetAside | null> {
  const [first] = quarantine;
  if (first === undefined) return null;
  const file = join(layout.quarantineDir(run), first.file);
  const parsed = recordSchema.safeParse(await firstRecord(layout, file, first));
  if (!parsed.success) return null;
  const { reason, raw } = parsed.data;
  return { reason, row: shorten(raw), file };
}

/** The rows that a quarantine file holds, as they came; none of one that cannot be read: `verify` tells of damage. */
export async function rowsSetAside(
  layout: Layout,
  file: string,
  { storedBytes }: QuarantineFile,
): Promise<string[]> {
  try {
    const text = (await readArchiveFile(layout, file, storedBytes)).toString("utf8");
    const records = text.split("\n").filter((record) => record !== "");
    return records.map((record) => recordSchema.parse(parseJson(record)).raw);
  } catch (error) {
    if (!(error instanceof z.ZodError) && !isUnreadable(error)) throw error;
    return [];
  }
}

async function firstRecord(layout: Layout, file: string, { storedBytes }: QuarantineFile): Promise<unknown> {
  let text = "";
  try {
    const { handle } = await openArchiveFile(layout, file, storedBytes);
    // closes the file, however it is left
    for await (const chunk of handle.createReadStream({ encoding: "utf8" })) {
      text += chunk as string;
      const end = text.indexOf("\n");
      if (end >= 0) return parseJson(text.slice(0, end));
      if (text.length > mostRecordLength) return null;
    }
  } catch (error) {
    if (!isUnreadable(error)) throw error;
  }
  return null;
}

/** A line that JSON escapes throughout, and what stands around it. */
const mostRecordLength = 6 * lineLimitBytes + 4096;

function isUnreadable(error: unknown): boolean {
  const isDamaged = error instanceof RunvaultError && error.code === "archive_damaged";
  return isMissing(error) || error instanceof SyntaxError || isDamaged;
}
