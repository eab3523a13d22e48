import { rm } from "node:fs/promises";
import { type ErrorPlace, RunvaultError } from "../../model/error.ts";
import type { RowHash } from "../../row/row-hash.ts";
import { checkLine, type LineRules, type Member, shorten, withoutOddZeros } from "../../row/strict-line.ts";
import { type HashedFile, hashFile } from "../storage/file-hash.ts";
import { startsWithByteOrderMark } from "./byte-order-mark.ts";
import { rowError } from "./convert-row-error.ts";
import { driftOf } from "./drift.ts";
import type { ParquetLook, RowKey } from "./parquet-look.ts";

/** What conversion needs to know about a segment. */
export interface SegmentInput {
  /** An `.ndjson.zst` file. */
  readonly file: string;
  readonly rows: number;
  /** Size of the text, line ends included. */
  readonly bytes: number;
  /** Bytes of its longest line. */
  readonly longestLine: number;
  /** False if a row comes before its predecessor in key order. */
  readonly sorted: boolean;
  /** True if the line-by-line path wrote the segment, so the form of each line is known to be good. */
  readonly checked?: boolean;
}

/** One Parquet file to make from segments, and the rules for their lines. */
export interface Conversion extends LineRules {
  /** In the order of their rows. */
  readonly segments: readonly SegmentInput[];
  /** Row hash of the lines, if the caller knows it. */
  readonly rowHash?: RowHash;
  /** The Parquet file to write; replaced if it exists, removed if conversion fails. */
  readonly out: string;
}

/** A Parquet file with the same rows as its segments. */
export interface Converted extends HashedFile {
  readonly rows: number;
  /** Keys of the first and the last row; undefined if there are no rows. */
  readonly first: RowKey | undefined;
  readonly last: RowKey | undefined;
  /** Names of fields that are not in the contract. They stay in the segments. */
  readonly drift: readonly string[];
  /** True if the rows had to be sorted, so their order in the file differs from the segments. */
  readonly resorted: boolean;
}

/**
 * Converts segments to Parquet: the only interface to conversion that owners of segments need. Throws as
 * `convertSegments` does.
 */
export type SegmentConverter = (conversion: Conversion) => Promise<Converted>;

/** The keys of a line in their order, learnt from a line that is proper but not canonical. */
export type Shape = readonly Member[];

/**
 * The outcome of an attempt to write a file: everything was written, or the first line that the form refused, and why.
 */
export type FormAnswer =
  | { readonly kind: "written" }
  | { readonly kind: "refused"; readonly line: string; readonly file: string };

/**
 * A way to write Parquet, with DuckDB or otherwise. It accepts a line only if it can write every value exactly, and it
 * accepts at least canonical lines.
 */
export interface ConversionForm {
  /**
   * Writes the lines of the segments one after another, or in key order; lines with the same key keep their order.
   * Lines of `shapes` are proper though not canonical; a form need not accept them. Throws `malformed_row` for what is
   * not a line at all, and `storage_…` for the disk.
   */
  write(conversion: Conversion, inKeyOrder: boolean, shapes: readonly Shape[]): Promise<FormAnswer>;
}

/** Lines of more shapes than this are read by the line-by-line path. */
const shapeLimit = 8;
/** So are lines with more fields outside the contract than this, because a guard names each of them. */
const mostUnknownFields = 200;

/**
 * Writes the segments of one bucket into one Parquet file: exactly, in order, rows out = lines in. With every form, the
 * one strict reader reads what the form refuses, and what it wrote is checked: rows, order, keys, row hash.
 *
 * Throws `malformed_row` if a line is not a proper row or is too odd for this path; the line-by-line path finds out
 * which. Throws `value_out_of_range` for a proper value that its column cannot hold, `history_identity_conflict` for a
 * row of another run or instance, `duplicate_row` for two rows of one key among rows that had to be sorted,
 * `incomplete` when rows out ≠ lines in, `internal` if they are different rows, and `storage_…` for the disk.
 */
export async function convertSegments(
  form: ConversionForm,
  look: ParquetLook,
  conversion: Conversion,
): Promise<Converted> {
  try {
    return await convert(form, look, conversion);
  } catch (thrown) {
    // half a file is worthless; if it cannot be removed either, the first error says more
    await rm(conversion.out, { force: true }).catch(() => undefined);
    const error = thrown instanceof RunvaultError ? thrown : RunvaultError.from(thrown);
    throw error.at(placeOf(conversion));
  }
}

async function convert(form: ConversionForm, look: ParquetLook, conversion: Conversion): Promise<Converted> {
  const { segments, table, out } = conversion;
  await refuseByteOrderMarks(segments);
  const sorted = segments.every((segment) => segment.sorted);
  const shapes: Shape[] = [];
  await writeLearning(form, conversion, shapes, !sorted);
  let resorted = !sorted;
  let fault = await look.orderFault(table, out);
  if (!resorted && fault?.kind === "disorder") {
    // the fetcher watches each stream; a fault between two segments shows only here
    await writeLearning(form, conversion, shapes, true);
    resorted = true;
    fault = await look.orderFault(table, out);
  }
  if (fault?.kind === "disorder") {
    throw conversionFault("internal", `rows were not sorted at ts_event ${fault.ts} and seq ${fault.seq}`);
  }
  // rows that arrived in order were compared with each other on arrival
  if (resorted && fault !== undefined) {
    throw new RunvaultError("duplicate_row", `two rows share ts_event ${fault.ts} and seq ${fault.seq}`, {
      hint: "Report it to the gateway's operator: it sends a row twice, or gives two rows the same seq. runvault does not remove duplicates.",
    });
  }
  const lines = segments.reduce((sum, segment) => sum + segment.rows, 0);
  const { rows, ...ends } = await look.extent(out, lines);
  if (rows !== lines) throw conversionFault("incomplete", `${lines} lines became ${rows} rows`);
  await requireHash(look, conversion);
  return {
    rows,
    ...(await hashFile(out)),
    ...ends,
    drift: driftOf(
      shapes.map((shape) => shape.flatMap(({ column, name }) => (column === undefined ? [name] : []))),
    ),
    resorted,
  };
}

async function requireHash(look: ParquetLook, { table, rowHash, out }: Conversion): Promise<void> {
  if (rowHash === undefined) return;
  const { hash } = await look.rowHash(table, out);
  if (hash !== rowHash.hash) {
    throw conversionFault(
      "internal",
      `the row hash of the lines is ${rowHash.hash}, that of the rows ${hash}`,
    );
  }
}

function conversionFault(code: "incomplete" | "internal", message: string): RunvaultError {
  return new RunvaultError(code, message, {
    hint: "Run the same command again; if it happens again, keep the archive and report it as a bug of runvault.",
  });
}

async function refuseByteOrderMarks(segments: readonly SegmentInput[]): Promise<void> {
  const unread = segments.filter(({ checked }) => !checked);
  // a few at a time: a bucket may have more segments than the system lets a process open files
  for (let at = 0; at < unread.length; at += 8) {
    await Promise.all(
      unread.slice(at, at + 8).map(async ({ file }) => {
        if (!(await startsWithByteOrderMark(file))) return;
        const message = "the segment begins with a byte order mark";
        throw new RunvaultError("malformed_row", message, { place: { file } });
      }),
    );
  }
}

/** Lets the form write, and again after each line whose shape is new but proper. */
async function writeLearning(
  form: ConversionForm,
  conversion: Conversion,
  shapes: Shape[],
  inKeyOrder: boolean,
): Promise<void> {
  for (;;) {
    const answer = await form.write(conversion, inKeyOrder, shapes);
    if (answer.kind === "written") return;
    shapes.push(shapeOf(answer, conversion, shapes));
  }
}

/** The shape of a line that was refused. Throws if the line is wrong, or has no shape to learn. */
function shapeOf(
  { line, file }: { readonly line: string; readonly file: string },
  rules: Conversion,
  shapes: readonly Shape[],
): Shape {
  const { table, oddZeros = false } = rules;
  const checked = checkLine(line, rules);
  if (checked.kind !== "row") throw rowError(checked, rules, { file });
  const { members } = checked;
  const odd = !oddZeros && withoutOddZeros(line, table) !== line;
  const known = shapes.some((shape) => shapeText(shape) === shapeText(members));
  const tooMany = members.length > table.columns.length + mostUnknownFields;
  if (odd || known || tooMany || shapes.length === shapeLimit || members.some(({ nested }) => nested)) {
    throw new RunvaultError("malformed_row", `this row must be read line by line: ${shorten(line)}`, {
      place: { file },
    });
  }
  return members;
}

function shapeText(shape: Shape): string {
  return shape.map(({ rawKey }) => rawKey).join(" ");
}

function placeOf({ table, instanceId, runId }: Conversion): ErrorPlace {
  return { instance: instanceId, run: runId, table: table.name };
}
