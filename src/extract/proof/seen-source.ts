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

/** A cap is ruled out after this many answers that were at least as large and had nothing around them. */
const timesEnough = 3;

/** The most answers to remember of a table, of those that no other exceeded in every measure. */
const mostAnswers = 32;

/** The factor by which one row may exceed the largest seen. */
const room = 1.25;

/**
 * What is known about one source: seen by a command over all its runs, and remembered by the archive. An empty answer
 * proves something only if the same kind of request has returned rows before, and an answer is known not to have been
 * cut short only if larger ones were seen. So one object serves all jobs of a command on one source.
 */
export class SeenSource {
  readonly #routes: Set<TableName>;
  readonly #saidEmpty: ReadonlySet<TableName>;
  #keptEmpty: KnownSource["empty"];
  /** The largest answer that the archive remembers. */
  #before: KnownSource["largest"] = { rows: 0, bytes: 0 };
  /** By kind of rung, the longest window known to be answered from beginning to end. */
  readonly #reach = new Map<RungKind, Nanoseconds>();
  #spanned: Nanoseconds = 0n;
  /** The largest answers, by table, after whose ends nothing was found. */
  readonly #whole = new Map<TableName, KnownSource["largest"]>();
  /** Several such answers, those with the most rows. */
  readonly #everWhole = new Map<TableName, KnownSource["largest"][]>();
  #keepsToBounds: Promise<boolean> | undefined;
  /** False once bounds from 1970 to 2100 were refused, or returned nothing although there are rows. */
  takesWideBounds = true;
  /** Tables whose answers have stopped short of later rows, with the fewest milliseconds that such an answer took. */
  readonly #capped = new Map<TableName, number>();
  /** The most rows and the most bytes of answers of this command, by table. */
  readonly #own = new Map<TableName, KnownSource["largest"]>();
  /** Answers of this command, by table, that no other exceeded in every measure. */
  readonly #answers = new Map<TableName, readonly AnswerSize[]>();
  readonly #longestLine = new Map<TableName, number>();

  /** `empty` are the tables that the operator now says have no rows, in each run of the command. */
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

  /** Records a complete answer; `spanNs` is the time between its first row and its last. */
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

  /** Records the longest line of some of a table's rows. */
  sawLine(table: TableName, bytes: number): void {
    this.#longestLine.set(table, Math.max(bytes, this.longestLineOf(table)));
  }

  longestLineOf(table: TableName): number {
    return this.#longestLine.get(table) ?? 0;
  }

  /** What was seen of a table's answers, for a command that continues this one's work. */
  answersOf(table: TableName): Pick<ScanRecord, "answers" | "longestLine" | "cutMs"> {
    return {
      answers: [...(this.#answers.get(table) ?? [])],
      longestLine: this.longestLineOf(table),
      cutMs: this.#capped.get(table) ?? null,
    };
  }

  /** Adds what an interrupted command has seen. */
  resume(table: TableName, { answers, longestLine, cutMs }: ReturnType<SeenSource["answersOf"]>): void {
    for (const size of answers) this.answered(table, size);
    this.sawLine(table, longestLine);
    if (cutMs !== null) this.foundCap(table, cutMs);
  }

  /** The longest time between two rows of one answer: windows of this length are answered from beginning to end. */
  get spanned(): Nanoseconds {
    return this.#spanned;
  }

  /** True if the table's route has returned rows of some run, in this command or before. */
  gaveRows(table: TableName): boolean {
    return this.#routes.has(table);
  }

  /**
   * True if answers larger by a quarter, in rows and in bytes, were seen in this command: then no cap ends the table's
   * answers at this size. A route that stops short may have its own cap, so only its own answers count.
   */
  gaveMoreThan(table: TableName, rows: number, bytes: number): boolean {
    return isMore(this.#capped.has(table) ? this.#largestOf(table) : this.#largestOwn, rows, bytes);
  }

  /**
   * True if one answer of the table was larger by a quarter in everything that a cap may count, and by more than the
   * row that a cap on bytes would have cut off. Such a row has at most `longestLine` bytes, and compresses like that
   * answer.
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

  /** The same for answers before this command, unless its own have stopped short: the cap may be newer than those. */
  onceGaveMoreThan(rows: number, bytes: number): boolean {
    return !this.isCapped && isMore(this.#before, rows, bytes);
  }

  /** Records the size of an answer that had nothing around it. */
  shownWhole(table: TableName, rows: number, bytes: number): void {
    const shown = [...(this.#everWhole.get(table) ?? []), { rows, bytes }];
    this.#everWhole.set(table, shown.sort((a, b) => b.rows - a.rows).slice(0, 4 * timesEnough));
    this.#whole.set(table, larger(this.#whole.get(table) ?? { rows: 0, bytes: 0 }, { rows, bytes }));
  }

  /** How an answer compares, in rows and in bytes, with the table's answers that had nothing around them. */
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

  /** Whether the source's facts respect bounds: asked until it has been shown once. */
  async keepsToBounds(ask: () => Promise<boolean>): Promise<boolean> {
    for (let asked = this.#keepsToBounds; asked !== undefined; asked = this.#keepsToBounds) {
      if (await asked.catch(() => false)) return true;
      if (this.#keepsToBounds === asked) this.#keepsToBounds = undefined;
    }
    this.#keepsToBounds = ask();
    return await this.#keepsToBounds;
  }

  /** Records an answer that stopped short of later rows, and its duration if known. */
  foundCap(table: TableName, ms = 0): void {
    this.#capped.set(table, Math.min(ms, this.#capped.get(table) ?? ms));
  }

  /** The fewest milliseconds of an answer of the table that stopped short; 0 if none is known. */
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

  /** Records a rung that returned the known rows, the first of them at the end of a window of this length. */
  countRung(kind: RungKind, reachNs: Nanoseconds): void {
    const before = this.#reach.get(kind) ?? 0n;
    this.#reach.set(kind, reachNs > before ? reachNs : before);
  }

  /** The longest window known to be answered completely on rungs of a kind; undefined if none has counted. */
  reachOf(kind: RungKind): Nanoseconds | undefined {
    return this.#reach.get(kind);
  }

  /**
   * The longest window to request on a rung; undefined if everything may be requested at once. Near the run, windows
   * are no longer than those known to be answered to their end: before a known row, and between two rows of one answer,
   * because a gateway may silently move a bound and still return the known row.
   */
  longestOn({ kind, stepNs }: Rung): Nanoseconds | undefined {
    const reach = this.#reach.get(kind);
    if (kind !== "run" || reach === undefined) return stepNs;
    const spanned = this.#spanned > day ? this.#spanned : day;
    return reach < spanned ? reach : spanned;
  }

  /** True if the operator said that the instance keeps no rows in the table. */
  isSaidEmpty(instanceId: string, table: TableName): boolean {
    return this.#saidEmpty.has(table) || (this.#keptEmpty[instanceId]?.includes(table) ?? false);
  }

  /**
   * What to remember about the source once a run is committed: the routes that returned rows, the largest answer, and
   * the operator's statement about the run's tables, which holds until rows come.
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
