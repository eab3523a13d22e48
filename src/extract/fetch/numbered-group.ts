import type { RowKeyReader } from "../../row/row-key-reader.ts";
import type { SeqNumbers } from "../plan/route.ts";

const newline = 10;
const zero = 48;

/**
 * The lines of a complete group, numbered 0, 1, 2 … within each timestamp in place of the empty seq. In byte order
 * numbers depend only on the rows; equal rows are all kept. Lines that are not rows come after the rows of the time
 * before them, or first. `isOneInstant`: there are no such lines and only one timestamp.
 */
export function numberedGroup(
  key: RowKeyReader,
  buffer: Buffer,
  { start, end }: { readonly start: number; readonly end: number },
  numbers: Exclude<SeqNumbers, "given">,
  isOneInstant: boolean,
): { readonly text: Buffer; readonly longestLine: number } {
  const lines = linesIn(isOneInstant ? undefined : key, buffer, start, end);
  const text = Buffer.allocUnsafe(end - start + lines.rows * digitsOf(lines.rows));
  let longestLine = 0;
  let filled = 0;
  const put = (from: number, to: number) => {
    filled += buffer.copy(text, filled, from, to);
  };
  for (const { rows, others } of lines.stretches) {
    if (numbers === "bytes") sort(rows, buffer, key.seqAt);
    for (let i = 0; i < rows.length; i += 2) {
      const begin = filled;
      const seqAt = rows[i]! + key.seqAt;
      put(rows[i]!, seqAt);
      // most numbers have one digit, which is faster this way
      if (i < 20) text[filled++] = zero + i / 2;
      else filled += text.write(String(i / 2), filled, "latin1");
      put(seqAt, rows[i + 1]! + 1);
      longestLine = Math.max(longestLine, filled - begin - 1);
    }
    sort(others, buffer, 0);
    for (let i = 0; i < others.length; i += 2) {
      put(others[i]!, others[i + 1]! + 1);
      longestLine = Math.max(longestLine, others[i + 1]! - others[i]!);
    }
  }
  return { text: text.subarray(0, filled), longestLine };
}

/** Start and end of each row with one timestamp, and of each line after them that is not a row. */
interface Stretch {
  rows: number[];
  others: number[];
}

function linesIn(key: RowKeyReader | undefined, buffer: Buffer, start: number, end: number) {
  const stretches: Stretch[] = [];
  let rows = 0;
  let stretch: Stretch | undefined;
  let high = 0;
  let low = 0;
  for (let at = start; at < end; ) {
    const lineEnd = buffer.indexOf(newline, at);
    const isRow = key === undefined || key.read(at, lineEnd);
    const isOther = key !== undefined && isRow && rows > 0 && (key.tsHigh !== high || key.tsLow !== low);
    if (stretch === undefined || isOther || (isRow && rows === 0)) {
      stretch = { rows: [], others: [] };
      stretches.push(stretch);
    }
    if (isRow) {
      rows++;
      high = key?.tsHigh ?? 0;
      low = key?.tsLow ?? 0;
      stretch.rows.push(at, lineEnd);
    } else {
      stretch.others.push(at, lineEnd);
    }
    at = lineEnd + 1;
  }
  return { stretches, rows };
}

/** Sorts lines by their bytes from an offset on; before it they are equal. */
function sort(lines: number[], buffer: Buffer, offset: number): void {
  const compare = (a: number, b: number) =>
    buffer.compare(buffer, lines[b]! + offset, lines[b + 1]!, lines[a]! + offset, lines[a + 1]!);
  const order: number[] = [];
  let isSorted = true;
  for (let i = 0; i < lines.length; i += 2) {
    if (i > 0 && isSorted) isSorted = compare(i - 2, i) <= 0;
    order.push(i);
  }
  if (isSorted) return;
  const before = [...lines];
  order.sort(compare);
  for (const [at, from] of order.entries()) {
    lines[2 * at] = before[from]!;
    lines[2 * at + 1] = before[from + 1]!;
  }
}

function digitsOf(count: number): number {
  return String(count).length;
}
