import type { KnownSource } from "../../archive/sources.ts";
import type { ScanRecord } from "../../archive/write/journal.ts";
import type { TableName } from "../../model/profile/table.ts";
import type { Nanoseconds } from "../../model/time.ts";
import type { AnswerSize } from "../plan/answer-size.ts";
import { day, type Rung, type RungKind } from "./rungs.ts";

/** The archive's memory of a source, as needed for proofs. */
interface SourceMemory {
  readonly routes: readonly TableName[];
  readonly empty: KnownSource["empty"];
  readonly largest?: KnownSource["largest"];
}

/** Of runs that have equally many rows each, these are asked about. */
const timesEnough = 3;

/** Answers that are kept of a table, of those that none was larger than in all that is measured. */
const mostAnswers = 32;

/** The most by which one row may exceed the largest seen. */
const room = 1.25;

/**
 * What was seen of one source: by a command over all of its runs, and what the archive remembers. An answer of nothing
 * proves something only where the same kind of question was seen to bring rows, and an answer is known not to have been
 * cut short only where larger ones were seen. So one object goes through all jobs of a command on one source.
 */
export class SeenSource {
  readonly #routes: Set<TableName>;
  readonly #saidEmpty: ReadonlySet<TableName>;
  #keptEmpty: KnownSource["empty"];
  /** The largest answer that the archive remembers. */
  #before: KnownSource["largest"] = { rows: 0, bytes: 0 };
  /** By kind of rung, the longest window that was seen to be answered from its beginning to its end. */
  readonly #reach = new Map<RungKind, Nanoseconds>();
  #spanned: Nanoseconds = 0n;
  /** The largest answers, by table, whose ends were asked about and had nothing behind them. */
  readonly #whole = new Map<TableName, KnownSource["largest"]>();
  /** Some of such answers, those with the most rows. */
  readonly #everWhole = new Map<TableName, KnownSource["largest"][]>();
  #keepsToBounds: Promise<boolean> | undefined;
  /** False once bounds from 1970 to 2100 were refused, or brought nothing where rows were. */
  takesWideBounds = true;
  /** Tables whose route was seen to stop short of rows behind an answer: the fewest milliseconds that such a one took. */
  readonly #capped = new Map<TableName, number>();
  /** The most rows and the most bytes of answers of this command, by table. */
  readonly #own = new Map<TableName, KnownSource["largest"]>();
  /** Answers of this command, by table, that none was larger than. */
  readonly #answers = new Map<TableName, readonly AnswerSize[]>();
  readonly #longestLine = new Map<TableName, number>();

  /** `empty` are the tables of which the operator says now that they hold no rows, in each run of the command. */
  constructor(known: SourceMemory = { routes: [], empty: {} }, empty: readonly TableName[] = []) {
    this.#routes = new Set(known.routes);
    this.#keptEmpty = known.empty;
    this.#before = known.largest ?? this.#before;
    this.#saidEmpty = new Set(empty);
  }

  /** Adds what the archive remembers, for a source that was not recognised at first. */
  learn({ routes, empty, largest }: KnownSource): void {
    for (const table of routes) this.#routes.add(table);
    this.#keptEmpty = { ...this.#keptEmpty, ...empty };
    this.#before = larger(this.#before, largest);
  }

  /** Takes note of an answer that ended whole; `spanNs` lies between its first row and its last. */
  answered(table: TableName, size: AnswerSize, spanNs = 0n): void {
    const { rows, bytes } = size;
    if (rows > 0) this.#routes.add(table);
    if (spanNs > this.#spanned) this.#spanned = spanNs;
    this.#own.set(table, larger(this.#largestOf(table), { rows, bytes }));
    const answers = this.#answers.get(table) ?? [];
    if (answers.some((one) => isWithinSize(size, one))) return;
    const others = answers.filter((one) => !isWithinSize(one, size));
    this.#answers.set(table, [...others, size].slice(-mostAnswers));
  }

  /** Takes note of the longest line of some of a table's rows. */
  sawLine(table: TableName, bytes: number): void {
    this.#longestLine.set(table, Math.max(bytes, this.longestLineOf(table)));
  }

  longestLineOf(table: TableName): number {
    return this.#longestLine.get(table) ?? 0;
  }

  /** What was seen of a table's answers, for a command that goes on with this one's work. */
  answersOf(table: TableName): Pick<ScanRecord, "answers" | "longestLine" | "cutMs"> {
    return {
      answers: [...(this.#answers.get(table) ?? [])],
      longestLine: this.longestLineOf(table),
      cutMs: this.#capped.get(table) ?? null,
    };
  }

  /** Takes note of what an interrupted command saw. */
  resume(table: TableName, { answers, longestLine, cutMs }: ReturnType<SeenSource["answersOf"]>): void {
    for (const size of answers) this.answered(table, size);
    this.sawLine(table, longestLine);
    if (cutMs !== null) this.foundCap(table, cutMs);
  }

  /** The longest time between two rows of one answer: windows so long are answered from their beginning to their end. */
  get spanned(): Nanoseconds {
    return this.#spanned;
  }

  /** True when the table's route has given rows of some run, in this command or before. */
  gaveRows(table: TableName): boolean {
    return this.#routes.has(table);
  }

  /**
   * True when answers larger by a quarter were seen in this command, in rows and in bytes: no cap ends answers of the table
   * as small as this. A route that stops short may have a cap of its own, so that only its own answers count.
   */
  gaveMoreThan(table: TableName, rows: number, bytes: number): boolean {
    return isMore(this.#capped.has(table) ? this.#largestOf(table) : this.#largestOwn, rows, bytes);
  }

  /**
   * True when one answer of the table was larger by a quarter in all that a cap may count, and by more than the row that
   * a cap on bytes would have had no room for. Such a row is as long as `longestLine` at most, and compresses as that answer does.
   */
  hadRoomFor(table: TableName, { rows, bytes, wireBytes }: AnswerSize, longestLine: number): boolean {
    return (this.#answers.get(table) ?? []).some(
      (one) =>
        one.rows >= rows * room &&
        one.bytes >= Math.max(bytes * room, bytes + longestLine * room) &&
        one.wireBytes >=
          Math.max(wireBytes * room, wireBytes + (longestLine * room * one.wireBytes) / one.bytes),
    );
  }

  /** The same of answers before this command, where none of its own stopped short: a cap may be newer than those. */
  onceGaveMoreThan(rows: number, bytes: number): boolean {
    return !this.isCapped && isMore(this.#before, rows, bytes);
  }

  /** Takes note of an answer of so many rows and bytes that had nothing around it. */
  shownWhole(table: TableName, rows: number, bytes: number): void {
    const shown = [...(this.#everWhole.get(table) ?? []), { rows, bytes }];
    this.#everWhole.set(table, shown.sort((a, b) => b.rows - a.rows).slice(0, 4 * timesEnough));
    this.#whole.set(table, larger(this.#whole.get(table) ?? { rows: 0, bytes: 0 }, { rows, bytes }));
  }

  /** How an answer compares with those of the table that had nothing around them, in rows and in bytes. */
  besideWhole(table: TableName, rows: number, bytes: number): "smaller" | "as large" | "larger" {
    const whole = this.#whole.get(table) ?? { rows: 0, bytes: 0 };
    if (rows < whole.rows && bytes < whole.bytes) return "smaller";
    return rows <= whole.rows && bytes <= whole.bytes ? "as large" : "larger";
  }

  /** True once several answers at least as large had nothing around them: a cap at just that size would have shown. */
  isOftenWhole(table: TableName, rows: number, bytes: number): boolean {
    const shown = this.#everWhole.get(table) ?? [];
    return shown.filter((size) => size.rows >= rows && size.bytes >= bytes).length >= timesEnough;
  }

  refusedWideBounds(): void {
    this.takesWideBounds = false;
  }

  /** Whether the source's facts keep to bounds: asked until it was shown once. */
  async keepsToBounds(ask: () => Promise<boolean>): Promise<boolean> {
    for (let asked = this.#keepsToBounds; asked !== undefined; asked = this.#keepsToBounds) {
      if (await asked.catch(() => false)) return true;
      if (this.#keepsToBounds === asked) this.#keepsToBounds = undefined;
    }
    this.#keepsToBounds = ask();
    return await this.#keepsToBounds;
  }

  /** Notes an answer that stopped short of later rows, and its duration if known. */
  foundCap(table: TableName, ms = 0): void {
    this.#capped.set(table, Math.min(ms, this.#capped.get(table) ?? ms));
  }

  /** The fewest milliseconds of an answer of the table that stopped short; 0 where none is known. */
  cutMsOf(table: TableName): number {
    return this.#capped.get(table) ?? 0;
  }

  get isCapped(): boolean {
    return this.#capped.size > 0;
  }

  isRouteCapped(table: TableName): boolean {
    return this.#capped.has(table);
  }

  /** The most rows and the most bytes of one answer of the table, in this command. */
  #largestOf(table: TableName): KnownSource["largest"] {
    return this.#own.get(table) ?? { rows: 0, bytes: 0 };
  }

  get #largestOwn(): KnownSource["largest"] {
    return [...this.#own.values()].reduce(larger, { rows: 0, bytes: 0 });
  }

  /** Takes note of a rung that brought the rows known, the first of them at the end of a window so long. */
  countRung(kind: RungKind, reachNs: Nanoseconds): void {
    const before = this.#reach.get(kind) ?? 0n;
    this.#reach.set(kind, reachNs > before ? reachNs : before);
  }

  /** The longest window seen to be answered whole on rungs of a kind; undefined where none has counted. */
  reachOf(kind: RungKind): Nanoseconds | undefined {
    return this.#reach.get(kind);
  }

  /**
   * The longest window to ask for on a rung; undefined where all may be asked for at once. Bounds near the run are asked
   * for no longer than was seen to be answered to its end: from a known row ahead, and between two rows of one answer, for
   * a gateway may move a bound without a word and still show the known row.
   */
  longestOn({ kind, stepNs }: Rung): Nanoseconds | undefined {
    const reach = this.#reach.get(kind);
    if (kind !== "run" || reach === undefined) return stepNs;
    const spanned = this.#spanned > day ? this.#spanned : day;
    return reach < spanned ? reach : spanned;
  }

  /** True when the operator said that the instance keeps no rows in the table. */
  isSaidEmpty(instanceId: string, table: TableName): boolean {
    return this.#saidEmpty.has(table) || (this.#keptEmpty[instanceId]?.includes(table) ?? false);
  }

  /**
   * What is to be remembered of the source once a run is committed: the routes that gave rows, the largest answer, and the
   * operator's word for the run's tables, which holds until rows come.
   */
  toRemember(
    known: KnownSource,
    instanceId: string,
    { filled, empty }: { readonly filled: readonly TableName[]; readonly empty: readonly TableName[] },
  ): KnownSource {
    const routes = [...new Set([...known.routes, ...this.#routes])].sort();
    const before = known.empty[instanceId] ?? [];
    const said = empty.filter((table) => this.#saidEmpty.has(table));
    const words = [...new Set([...before, ...said])].filter((table) => !filled.includes(table)).sort();
    const { [instanceId]: _, ...others } = known.empty;
    const largest = this.isCapped ? this.#largestOwn : larger(known.largest, this.#largestOwn);
    const kept = words.length === 0 ? others : { ...others, [instanceId]: words };
    return { ...known, routes, empty: kept, largest };
  }
}

function isMore(most: KnownSource["largest"], rows: number, bytes: number): boolean {
  return most.rows >= rows * 1.25 && most.bytes >= bytes * 1.25;
}

function isWithinSize(one: AnswerSize, other: AnswerSize): boolean {
  return one.rows <= other.rows && one.bytes <= other.bytes && one.wireBytes <= other.wireBytes;
}

function larger(one: KnownSource["largest"], other: KnownSource["largest"]): KnownSource["largest"] {
  return { rows: Math.max(one.rows, other.rows), bytes: Math.max(one.bytes, other.bytes) };
}
