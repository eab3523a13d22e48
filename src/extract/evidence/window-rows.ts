import type { Segment } from "../../archive/manifest/manifest.ts";
import type { HeldTable } from "../../archive/write/held-tables.ts";
import type { Table } from "../../model/profile/table.ts";
import type { Nanoseconds } from "../../model/time.ts";
import { Turns } from "../../model/turns.ts";
import { lineHash } from "../../row/row-hash.ts";
import { comparableLine } from "../../row/same-line.ts";
import { type HeldWindow, heldWindows, type Window, windowKey } from "../plan/held-window.ts";
import { rowKey, withoutSeq } from "../plan/row-key.ts";
import { eachLine, timeOf } from "../plan/table-asks.ts";
import type { RowsHere } from "./evidence-record.ts";

/** The rows here, window by window. */
export interface LookedAt {
  within(window: Window, withEnds: boolean): Promise<RowsHere>;
  /** The row hash of the rows in a window, each counted once. */
  hashWithin(window: Window): Promise<string>;
  /** Whether the row with that time and key is among them; also true if rows of its window were set aside. */
  has(ts: Nanoseconds, key: string): Promise<boolean>;
}

/** The first and last time of all that is held, and the seq of those rows. */
export interface EndsHere extends Pick<RowsHere, "first" | "last"> {
  readonly firstSeq?: string | undefined;
  readonly lastSeq?: string | undefined;
}

/** Rows of some text. */
export interface TextRows extends RowsHere {
  /** How many they are if duplicates count once, and the row hash of those. */
  readonly distinct: number;
  readonly hash: string;
  readonly firstKey: string | undefined;
  readonly lastKey: string | undefined;
}

/** The rows that are here of one table, looked at by window. */
export class WindowRows {
  readonly #table: Table;
  readonly #held: Readonly<HeldTable>;
  readonly #read: (segment: Segment) => Promise<Buffer>;
  readonly #ends: () => EndsHere;
  readonly #isKeyed: boolean;
  /** Results of reading, kept because a segment's text never changes. */
  readonly #known = new Map<string, TextRows>();
  readonly #keys = new Map<string, ReadonlySet<string | undefined>>();

  /**
   * `isKeyed`: rows have a seq; without one, all other values identify them. `ends` returns the first and
   * last time of everything held, if known without reading it.
   */
  constructor(
    table: Table,
    held: Readonly<HeldTable>,
    read: (segment: Segment) => Promise<Buffer>,
    isKeyed: boolean,
    ends: () => EndsHere,
  ) {
    this.#isKeyed = isKeyed;
    this.#table = table;
    this.#held = held;
    this.#read = read;
    this.#ends = ends;
  }

  /** The current rows, without segments that are left out, for repeated use. */
  now(isLeftOut: (segment: Segment) => boolean): LookedAt {
    const { segments, quarantine } = this.#held;
    const all = heldWindows({ segments: segments.filter((segment) => !isLeftOut(segment)), quarantine });
    return {
      within: (window, withEnds) => this.#within(all, window, withEnds),
      hashWithin: async (window) => (await this.textRows(overlapping(all, window), window)).hash,
      has: (ts, key) => this.#has(all, ts, key),
    };
  }

  async #has(all: readonly HeldWindow[], ts: Nanoseconds, key: string): Promise<boolean> {
    const { first, firstSeq, last, lastSeq } = this.#ends();
    const isEnd = (ts === first && key === firstSeq) || (ts === last && key === lastSeq);
    if (this.#isKeyed && isEnd) return true;
    const windows = overlapping(all, { from: ts, to: ts + 1n });
    if (windows.some((held) => asideIn(held) > 0)) return true;
    for (const segment of windows.flatMap(({ segments }) => segments))
      if ((await this.#keysAt(segment, ts)).has(key)) return true;
    return false;
  }

  /** The keys of a segment's rows at one instant. Lines that do not name it are not parsed. */
  async #keysAt(segment: Segment, ts: Nanoseconds): Promise<ReadonlySet<string | undefined>> {
    const name = `${segment.file} ${ts}`;
    const known = this.#keys.get(name);
    if (known !== undefined || segment.rows === 0) return known ?? new Set();
    const text = await this.#read(segment);
    const keys = new Set<string | undefined>();
    for (let at = text.indexOf(`${ts}`); at >= 0; ) {
      const end = (text.indexOf(newline, at) + 1 || text.byteLength + 1) - 1;
      const line = text.toString("utf8", text.lastIndexOf(newline, at) + 1, end);
      if (timeOf(line) === `${ts}`) keys.add(rowKey(this.#table, this.#isKeyed, line));
      at = text.indexOf(`${ts}`, end);
    }
    this.#keys.set(name, keys);
    return keys;
  }

  /**
   * The rows in a window. Rows set aside count for their window wherever they are in it. The first and last time are
   * determined only with `withEnds`, and are unknown if rows are set aside.
   */
  async #within(all: readonly HeldWindow[], window: Window, withEnds: boolean): Promise<RowsHere> {
    const windows = overlapping(all, window);
    const isInside = ({ from, to }: HeldWindow) => from >= window.from && to <= window.to;
    let rows = 0;
    for (const held of windows) {
      if (isInside(held)) rows += held.rows;
      else rows += asideIn(held) + (await this.textRows([held], window)).rows;
    }
    const filled = windows.filter((held) => held.rows > 0);
    if (!withEnds || filled.length === 0 || windows.some((held) => asideIn(held) > 0))
      return { rows, first: undefined, last: undefined };
    if (windows.length === all.length && windows.every(isInside)) {
      const { first, last } = this.#ends();
      return { rows, first, last };
    }
    const { first } = await this.textRows([filled[0]!], window);
    const { last } = await this.textRows([filled.at(-1)!], window);
    return { rows, first, last };
  }

  /** The rows of held windows that lie in a window, from their text. */
  async textRows(held: readonly HeldWindow[], window: Window): Promise<TextRows> {
    const files = held.flatMap(({ segments }) => segments.map(({ file }) => file));
    const key = JSON.stringify([windowKey(window), files]);
    const known = this.#known.get(key) ?? (await this.#readRows(held, window));
    this.#known.set(key, known);
    return known;
  }

  async #readRows(held: readonly HeldWindow[], window: Window): Promise<TextRows> {
    const hashes = new Set<bigint>();
    let rows = 0;
    let first: Nanoseconds | undefined;
    let last: Nanoseconds | undefined;
    let firstLine = "";
    let lastLine = "";
    const turns = new Turns();
    for (const segment of held.flatMap(({ segments }) => segments)) {
      if (segment.rows === 0) continue;
      for (const bytes of eachLine(await this.#read(segment))) {
        if (turns.isDue(bytes.byteLength)) await turns.next();
        const line = bytes.toString("utf8");
        const time = timeOf(line);
        const ts = time === null ? undefined : BigInt(time);
        // a line without a time is not one of these rows
        if (ts === undefined || ts < window.from || ts >= window.to) continue;
        rows++;
        if (first === undefined || ts < first) [first, firstLine] = [ts, line];
        if (last === undefined || ts > last) [last, lastLine] = [ts, line];
        hashes.add(lineHash(comparableLine(this.#table, this.#isKeyed ? line : withoutSeq(line))));
      }
    }
    const sum = [...hashes].reduce((sum, hash) => sum + hash, 0n);
    const keyOf = (line: string) => (rows === 0 ? undefined : rowKey(this.#table, this.#isKeyed, line));
    const keys = { firstKey: keyOf(firstLine), lastKey: keyOf(lastLine) };
    return { rows, first, last, ...keys, distinct: hashes.size, hash: sum.toString() };
  }

  /** The rows of some segments, window by window. */
  async ofSegments(segments: readonly Segment[]): Promise<(Window & TextRows)[]> {
    const keys = new Set(segments.map(windowKey));
    const windows = heldWindows({ segments: [...segments], quarantine: [] }).filter(({ rows }) => rows > 0);
    const found: (Window & TextRows)[] = [];
    for (const held of windows) {
      if (keys.has(windowKey(held))) found.push({ ...held, ...(await this.textRows([held], held)) });
    }
    return found;
  }
}

const newline = 10;

function overlapping(all: readonly HeldWindow[], { from, to }: Window): HeldWindow[] {
  return all.filter((held) => held.from < to && held.to > from);
}

/** Rows of a held window that were set aside: they are in no segment. */
function asideIn({ rows, segments }: HeldWindow): number {
  return rows - segments.reduce((sum, segment) => sum + segment.rows, 0);
}
