import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { RunRef } from "../model/source.ts";
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
  const parsed = recordSchema.safeParse(await firstRecord(file));
  if (!parsed.success) return null;
  const { reason, raw } = parsed.data;
  return { reason, row: shorten(raw), file };
}

/** The rows that a quarantine file holds, as they came; none of one that cannot be read: `verify` tells of damage. */
export async function rowsSetAside(file: string): Promise<string[]> {
  try {
    const records = (await readFile(file, "utf8")).split("\n").filter((record) => record !== "");
    return records.map((record) => recordSchema.parse(JSON.parse(record)).raw);
  } catch (error) {
    if (!isMissing(error) && !(error instanceof SyntaxError) && !(error instanceof z.ZodError)) throw error;
    return [];
  }
}

async function firstRecord(file: string): Promise<unknown> {
  let text = "";
  try {
    for await (const chunk of createReadStream(file, { encoding: "utf8" })) {
      text += chunk as string;
      const end = text.indexOf("\n");
      if (end >= 0) return JSON.parse(text.slice(0, end));
    }
  } catch (error) {
    if (!isMissing(error) && !(error instanceof SyntaxError)) throw error;
  }
  return null;
}
