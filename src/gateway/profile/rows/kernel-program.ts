import type { TimeUnit } from "../../../model/profile/row-map.ts";
import type { FieldColumn, PathNode, RowPlan } from "./row-plan.ts";

// The layout that wasm/normalise-rows.ts reads. Addresses are offsets in its memory; all structures are of 32-bit words.

/** Where the program begins; the compiler uses the memory before it. */
export const programStart = 4096;

const headerBytes = 64;
const entryBytes = 40;
const placeBytes = 16;
const columnBytes = 40;
const wordBytes = 20;
const recordsBytes = 256 * 28;
const keysBytes = 4096 * 8;
const seenBytes = 1024 * 8;
const scratchBytes = 64;
/** The most bytes that a value grows when made canonical, by writing out an exponent. */
const numberGrowth = 512;

const operations = { text: 0, exact: 1, integer: 2, time: 3, double: 4, words: 5, instant: 6 } as const;
const flags = { optional: 1, null: 2, bare: 4, signed: 8 } as const;
const entryKinds = { leaf: 0, node: 1, dropped: 2 } as const;
const wordTypes = { string: 1, number: 3, true: 5, false: 6 } as const;
const shifts: Readonly<Record<TimeUnit, number>> = { ns: 0, us: 3, ms: 6, s: 9, rfc3339: 0 };

/** A plan as the kernel reads it. */
export interface KernelProgram {
  /** Loaded at `programStart`; its header comes first. */
  readonly bytes: Buffer;
  /** A line of `n` bytes becomes at most `fixedBytes + n * uses`. */
  readonly fixedBytes: number;
  readonly uses: number;
}

export function kernelProgram(plan: RowPlan): KernelProgram {
  const program = new Program();
  const header = program.room(headerBytes);
  const leaves = plan.leaves.map(() => program.room(placeBytes));
  const root = program.room(placeBytes);
  writeNode(program, root, plan.root, leaves);

  const fields = plan.columns.filter((column) => column.kind === "field");
  const columns = program.room(fields.length * columnBytes);
  let lead = "{";
  let fixedBytes = 256;
  let at = columns;
  plan.columns.forEach((column, index) => {
    lead += `${index === 0 ? "" : ","}${JSON.stringify(column.column.name)}:`;
    if (column.kind === "fixed") {
      lead += column.text;
      return;
    }
    const quote = isQuoted(column) ? '"' : "";
    fixedBytes += writeColumn(program, at, column, lead + quote, leaves[column.leaf]!);
    at += columnBytes;
    lead = quote;
  });
  const tail = program.text(lead);
  const extraLead = program.text(',"extra":{');
  fixedBytes += tail.length + extraLead.length;
  const uses = 2 + Math.max(0, ...plan.leaves.map((leaf) => leaf.columns.length));
  program.words(header, [
    ...[root, columns, at, tail.at, tail.length, extraLead.at, extraLead.length],
    ...[fixedBytes, uses, plan.freezes ? 1 : 0],
    ...[recordsBytes, keysBytes, seenBytes, scratchBytes].map((bytes) => program.room(bytes)),
  ]);
  return { bytes: program.bytes(), fixedBytes, uses };
}

function isQuoted({ column }: FieldColumn): boolean {
  return column.kind !== "uint32" && column.kind !== "double";
}

function writeNode(program: Program, at: number, node: PathNode, leaves: readonly number[]): void {
  const entries = program.room(node.entries.size * entryBytes);
  program.words(at, [0, entries, entries, entries + node.entries.size * entryBytes]);
  let place = entries;
  const count = node.entries.size;
  for (const [index, [name, entry]] of [...node.entries].entries()) {
    // with the closing quote, so that no key is a prefix of another
    const key = Buffer.from(JSON.stringify(name).slice(1));
    const first = Buffer.alloc(8);
    key.copy(first, 0, 0, 8);
    program.put(place, first);
    program.put(place + 8, Buffer.alloc(8).fill(0xff, 0, Math.min(8, key.byteLength)));
    const to = entry.kind === "leaf" ? leaves[entry.leaf]! : program.room(placeBytes);
    const next = index + 1 === count ? 0 : place + entryBytes;
    program.words(place + 16, [program.blob(key), key.byteLength, entryKinds[entry.kind], to, next]);
    if (entry.kind === "node") writeNode(program, to, entry.node, leaves);
    place += entryBytes;
  }
}

/** Writes one column; returns the most bytes that it adds to a line, besides its value. */
function writeColumn(
  program: Program,
  at: number,
  column: FieldColumn,
  leadText: string,
  leaf: number,
): number {
  const inside = (text: string) => (isQuoted(column) ? text.slice(1, -1) : text);
  const lead = program.text(leadText);
  const empty = program.text(inside(column.empty));
  const words = column.words?.map(({ wire, text }) => ({
    key: program.text(typeof wire === "string" ? JSON.stringify(wire).slice(1, -1) : String(wire)),
    type: typeof wire === "boolean" ? wordTypes[`${wire}`] : wordTypes[typeof wire as "string" | "number"],
    text: program.text(inside(text)),
  }));
  const firstWord = program.room((words?.length ?? 0) * wordBytes);
  for (const [index, { key, type, text }] of (words ?? []).entries()) {
    program.words(firstWord + index * wordBytes, [key.at, key.length, type, text.at, text.length]);
  }
  program.words(at, [
    ...[lead.at, lead.length, operations[operationOf(column)], leaf, flagsOf(column), shifts[column.unit]],
    ...[empty.at, empty.length, firstWord, firstWord + (words?.length ?? 0) * wordBytes],
  ]);
  return (
    lead.length + empty.length + numberGrowth + Math.max(0, ...(words ?? []).map(({ text }) => text.length))
  );
}

function operationOf({ column, words, unit }: FieldColumn): keyof typeof operations {
  if (words !== undefined) return "words";
  switch (column.kind) {
    case "string":
      return "text";
    case "exact":
      return "exact";
    case "double":
      return "double";
    case "timestamp":
      return unit === "rfc3339" ? "instant" : "time";
    default:
      return "integer";
  }
}

function flagsOf({ column, optional, takesNull, bareNumbers }: FieldColumn): number {
  return (
    (optional ? flags.optional : 0) |
    (takesNull ? flags.null : 0) |
    (bareNumbers ? flags.bare : 0) |
    (column.kind === "int64" ? flags.signed : 0)
  );
}

/** A buffer that grows as the program is written. */
class Program {
  #buffer = Buffer.alloc(64 * 1024);
  #end = programStart;

  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#end - programStart);
  }

  /** Reserves bytes, and sixteen more that may be read beyond them; returns the address. */
  room(bytes: number): number {
    const at = this.#end;
    this.#end = (at + bytes + 16 + 15) & ~15;
    while (this.#end - programStart > this.#buffer.byteLength) {
      this.#buffer = Buffer.concat([this.#buffer, Buffer.alloc(this.#buffer.byteLength)]);
    }
    return at;
  }

  blob(bytes: Uint8Array): number {
    const at = this.room(bytes.byteLength);
    this.put(at, bytes);
    return at;
  }

  text(text: string): { readonly at: number; readonly length: number } {
    const bytes = Buffer.from(text);
    return { at: this.blob(bytes), length: bytes.byteLength };
  }

  put(at: number, bytes: Uint8Array): void {
    this.#buffer.set(bytes, at - programStart);
  }

  words(at: number, words: readonly number[]): void {
    for (const [index, word] of words.entries()) {
      this.#buffer.writeInt32LE(word, at - programStart + index * 4);
    }
  }
}
