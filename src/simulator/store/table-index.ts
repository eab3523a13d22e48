import { readFile } from "node:fs/promises";
import { endianness } from "node:os";
import { RunvaultError } from "../../model/error.ts";

/** 64-bit integers in an entry: offset, row, first and last ts_event, smallest and largest ts_init. */
export const indexFields = 6;

/** A block of whole lines of a table's file, about 64 KiB. Offsets are bytes, rows start at 0, `end*` is exclusive. */
export interface Block {
  readonly offset: number;
  readonly endOffset: number;
  readonly row: number;
  readonly endRow: number;
  readonly firstEvent: bigint;
  readonly lastEvent: bigint;
  readonly firstInit: bigint;
  readonly lastInit: bigint;
}

/** The sparse index of a table's file. */
export interface TableIndex {
  readonly length: number;
  /** The block at a position below `length`. */
  block(position: number): Block;
  /** The position of the first block for which `holds` is true, by bisection; `length` if none. */
  firstWhere(holds: (block: Block) => boolean): number;
}

/** Reads an index; `bytes` and `rows` are the data file's. */
export async function readTableIndex(file: string, bytes: number, rows: number): Promise<TableIndex> {
  if (endianness() !== "LE")
    throw new RunvaultError("internal", "the simulator's index needs a little-endian machine");
  const buffer = await readFile(file);
  const entries = new BigInt64Array(
    buffer.buffer.slice(buffer.byteOffset, buffer.byteOffset + buffer.length),
  );
  const length = entries.length / indexFields;
  const block = (position: number): Block => {
    const at = position * indexFields;
    const last = position === length - 1;
    return {
      offset: Number(entries[at]),
      endOffset: last ? bytes : Number(entries[at + indexFields]),
      row: Number(entries[at + 1]),
      endRow: last ? rows : Number(entries[at + indexFields + 1]),
      firstEvent: entries[at + 2]!,
      lastEvent: entries[at + 3]!,
      firstInit: entries[at + 4]!,
      lastInit: entries[at + 5]!,
    };
  };
  return {
    length,
    block,
    firstWhere(holds) {
      let low = 0;
      let high = length;
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (holds(block(middle))) high = middle;
        else low = middle + 1;
      }
      return low;
    },
  };
}
