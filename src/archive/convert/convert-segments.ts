import { rm } from "node:fs/promises";
import { type ErrorPlace, RunvaultError } from "../../model/error.ts";
import type { RowHash } from "../../row/row-hash.ts";
import { checkLine, type LineRules, type Member, shorten, withoutOddZeros } from "../../row/strict-line.ts";
import { type HashedFile, hashFile } from "../storage/file-hash.ts";
import { startsWithByteOrderMark } from "./byte-order-mark.ts";
import { rowError } from "./convert-row-error.ts";
import { driftOf } from "./drift.ts";
import type { ParquetLook, RowKey } from "./parquet-look.ts";

/** A segment as conversion needs to know it. */
export interface SegmentInput {
  /** An `.ndjson.zst` file. */
  readonly file: string;
  readonly rows: number;
  /** Size of the text, line ends included. */
  readonly bytes: number;
  /** Bytes of its longest line. */
  readonly longestLine: number;
  /** False when a row was seen that stands before its predecessor in key order. */
  readonly sorted: boolean;
  /** True when the line-by-line path wrote the segment: the form of each line is known to be good. */
  readonly checked?: boolean;
}

/** One Parquet file to be made of segments, under the rules for their lines. */
export interface Conversion extends LineRules {
  /** In the order in which their rows belong. */
  readonly segments: readonly SegmentInput[];
  /** Row hash of the lines, where whoever asks knows it. */
  readonly rowHash?: RowHash;
  /** The Parquet file to write; replaced if it exists, removed if conversion fails. */
  readonly out: string;
}

/** A Parquet file that holds what its segments hold. */
export interface Converted extends HashedFile {
  readonly rows: number;
  /** Keys of the first and the last row; undefined where there are no rows. */
  readonly first: RowKey | undefined;
  readonly last: RowKey | undefined;
  /** Names of fields that the contract does not know. They stay in the segments. */
  readonly drift: readonly string[];
  /** True when the rows had to be sorted: their order in the file is not that of the segments. */
  readonly resorted: boolean;
}

/** Makes Parquet of segments: what whoever has segments needs to know of conversion. Throws as `convertSegments` does. */
export type SegmentConverter = (conversion: Conversion) => Promise<Converted>;

/** The keys of a line in the order in which they stand, as a line that is proper but not canonical taught them. */
export type Shape = readonly Member[];

/** What became of an attempt to write a file: all of it, or the first line that the form does not take, and why. */
export type FormAnswer =
  | { readonly kind: "written" }
  | { readonly kind: "refused"; readonly line: string; readonly file: string };

/**
 * A way to write Parquet: DuckDB's, or another's. It takes a line only if it writes every value of it exactly, and it
 * takes canonical lines at least.
 */
export interface ConversionForm {
  /**
   * Writes the lines of the segments, one behind the other, or in key order, lines of one key as they came. Lines of
   * `shapes` are proper though not canonical; a form need not take them. Throws `malformed_row` for what is no line at
   * all and `storage_…` for the disk.
   */
  write(conversion: Conversion, inKeyOrder: boolean, shapes: readonly Shape[]): Promise<FormAnswer>;
}

/** Lines of more shapes than this are read by the line-by-line path. */
const shapeLimit = 8;
/** Lines with more fields than this that the contract does not know are read there, too: a guard names each of them. */
const mostUnknownFields = 200;

/**
 * Writes the segments of one bucket into one Parquet file: exactly, in order, rows out = lines in. Whatever the form,
 * what it refuses is read by the one strict reader, and what it wrote is looked into: rows, order, keys, row hash.
 *
 * Throws `malformed_row` when a line is no proper row, or too odd for this path; the line-by-line path tells which.
 * Throws `value_out_of_range` for a proper value that its column cannot hold, `history_identity_conflict` for a row
 * of another run or instance, `duplicate_row` for two rows of one key among rows that had to be sorted, `incomplete`
 * when rows out ≠ lines in, `internal` where they are other rows, and `storage_…` for the disk.
 */
export async function convertSegments(
  form: ConversionForm,
  look: ParquetLook,
  conversion: Conversion,
): Promise<Converted> {
  try {
    return await convert(form, look, conversion);
  } catch (thrown) {
    // half a file is no file; if it cannot be removed either, the first error says more
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
  // rows that came in order were held against each other as they came
  if (resorted && fault !== undefined) {
    throw new RunvaultError("duplicate_row", `two rows share ts_event ${fault.ts} and seq ${fault.seq}`, {
      hint: "Report it to the gateway's operator: it sends a row twice, or gives two rows the same seq. Nothing is de-duplicated here.",
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

/** Has the form write, and again after each line whose shape is new but proper. */
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

/** The shape of a line that was refused. Throws what is wrong with the line, and where it has no shape to learn. */
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
    throw new RunvaultError("malformed_row", `this row has to be read line by line: ${shorten(line)}`, {
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
