import { join } from "node:path";
import type { TableName } from "../../model/profile/table.ts";
import { countText } from "../../model/text/plural.ts";
import type { Archive } from "../archive.ts";
import type { Holding, Manifest } from "../manifest/manifest.ts";
import { damageOf } from "../storage/damage-of.ts";
import { readSegment } from "../write/segment.ts";
import { faultOfSize, type IsRead, wholeText } from "./verify-files.ts";
import type { CheckList, Fault } from "./verify-report.ts";

const newline = 10;

/**
 * Reads a table's segments whole: size, SHA-256, frame with its checksum, and their lines. Returns the names of damaged
 * ones.
 */
export async function checkSegments(
  list: CheckList,
  archive: Archive,
  manifest: Manifest,
  name: TableName,
  table: Holding,
  isRead: IsRead,
  signal: AbortSignal | undefined,
): Promise<Set<string>> {
  const dir = archive.layout.dataDir(manifest);
  const damaged = new Set<string>();
  const files: Fault[] = [];
  const lines: Fault[] = [];
  let read = 0;
  let readRows = 0;
  for (const segment of table.segments) {
    signal?.throwIfAborted();
    const path = join(dir, segment.file);
    if (!isRead(path)) {
      const fault = await faultOfSize(archive, { path, storedBytes: segment.storedBytes });
      if (fault !== null) files.push(fault);
      if (fault !== null) damaged.add(segment.file);
      continue;
    }
    read++;
    readRows += segment.rows;
    let text: Buffer;
    try {
      text = await readSegment(archive.store, archive.layout.keyOf(path), segment);
    } catch (error) {
      damaged.add(segment.file);
      files.push({ detail: damageOf(error), files: [path] });
      continue;
    }
    const found = countLines(text);
    const wrong = (detail: string) => lines.push({ detail, files: [path] });
    if (found.rows !== segment.rows)
      wrong(`it has ${countText(found.rows, "line")}, but the manifest says ${segment.rows}`);
    if (!found.ended) wrong("its last line has no line end");
    if (found.empty > 0) wrong(`${found.empty} of its lines are empty`);
    if (found.longest > segment.longestLine) {
      wrong(`its longest line has ${found.longest} bytes, but the manifest says ${segment.longestLine}`);
    }
  }
  list.faults(name, "files", files, wholeText(table.segments.length, read, "segments"));
  list.faults(
    name,
    "segment-lines",
    lines,
    `${countText(readRows, "line")} in ${countText(read, "segment")}`,
  );
  return damaged;
}

/** Counts line ends in a text, and finds anything that would break a line. */
export function countLines(text: Buffer): { rows: number; longest: number; empty: number; ended: boolean } {
  let rows = 0;
  let longest = 0;
  let empty = 0;
  let start = 0;
  for (let end = text.indexOf(newline); end >= 0; end = text.indexOf(newline, start)) {
    const length = end - start;
    if (length > longest) longest = length;
    if (length === 0) empty++;
    rows++;
    start = end + 1;
  }
  return { rows, longest, empty, ended: start === text.byteLength };
}
