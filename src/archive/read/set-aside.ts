import { z } from "zod";
import { RunvaultError } from "../../model/error.ts";
import { parseJson } from "../../model/outside-json.ts";
import type { RunRef } from "../../model/source.ts";
import { shorten } from "../../row/strict-line.ts";
import type { Archive } from "../archive.ts";
import { lineLimitBytes } from "../convert/line-by-line-conversion.ts";
import type { QuarantineFile } from "../manifest/manifest.ts";
import type { Store } from "../storage/store.ts";

/** One of the rows set aside from a table, for a report. */
export interface SetAside {
  /** What is wrong with it. */
  readonly reason: string;
  /** The row as it came, quoted, shortened if long. */
  readonly row: string;
  /** The file with the complete row, among others. */
  readonly file: string;
}

const recordSchema = z.looseObject({
  reason: z.string(),
  raw: z.string(),
  encoding: z.enum(["utf8", "base64"]).default("utf8"),
  foreign: z.boolean().default(false),
});
/** A row in quarantine. */
export type AsideRecord = Pick<z.output<typeof recordSchema>, "reason" | "raw" | "encoding" | "foreign">;

/** The first row in a table's quarantine; null if there is none, or it cannot be read: `verify` reports damage. */
export async function exampleSetAside(
  { layout, store }: Pick<Archive, "layout" | "store">,
  run: RunRef,
  quarantine: readonly QuarantineFile[],
): Promise<SetAside | null> {
  const [first] = quarantine;
  if (first === undefined) return null;
  const key = layout.committedKey(run, "quarantine", first.file);
  const parsed = recordSchema.safeParse(await firstRecord(store, key, first));
  if (!parsed.success) return null;
  const { reason, raw } = parsed.data;
  return { reason, row: shorten(raw), file: store.nameOf(key) };
}

/** The records of a quarantine file. Throws `archive_damaged` if they cannot be read. */
export async function recordsAside(
  store: Store,
  key: string,
  { storedBytes, rows }: QuarantineFile,
): Promise<AsideRecord[]> {
  try {
    const text = (await store.get(key, storedBytes))?.toString("utf8") ?? "";
    const records = text.split("\n").filter((record) => record !== "");
    if (records.length !== rows) throw new SyntaxError(`it has ${records.length} of ${rows} records`);
    return records.map((record) => recordSchema.parse(parseJson(record)));
  } catch (cause) {
    if (!(cause instanceof z.ZodError) && !isUnreadable(cause)) throw cause;
    throw new RunvaultError("archive_damaged", "a file of rows set aside cannot be read", {
      cause,
      place: { file: store.nameOf(key) },
      hint: "Restore it from a backup, or fetch the table again.",
    });
  }
}

/** The rows in a quarantine file, as they came; none if it cannot be read: `verify` reports damage. */
export async function rowsSetAside(
  store: Store,
  key: string,
  { storedBytes }: QuarantineFile,
): Promise<string[]> {
  try {
    const text = (await store.get(key, storedBytes))?.toString("utf8") ?? "";
    const records = text.split("\n").filter((record) => record !== "");
    return records.map((record) => recordSchema.parse(parseJson(record)).raw);
  } catch (error) {
    if (!(error instanceof z.ZodError) && !isUnreadable(error)) throw error;
    return [];
  }
}

async function firstRecord(store: Store, key: string, { storedBytes }: QuarantineFile): Promise<unknown> {
  try {
    const bytes = await store.get(key, storedBytes, { start: 0, end: mostRecordLength });
    const end = bytes?.indexOf("\n") ?? -1;
    return end < 0 ? null : parseJson(bytes!.toString("utf8", 0, end));
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    return null;
  }
}

/** The longest line with every character escaped in JSON, and what surrounds it. */
const mostRecordLength = 6 * lineLimitBytes + 4096;

function isUnreadable(error: unknown): boolean {
  const isDamaged = error instanceof RunvaultError && error.code === "archive_damaged";
  return error instanceof SyntaxError || isDamaged;
}
