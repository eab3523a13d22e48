import { RunvaultError } from "../../model/error.ts";
import { piecesWithRetries } from "../../model/retry/retry.ts";
import { int64Max, int64Min, type Nanoseconds } from "../../model/time.ts";
import { AnswerEar } from "../plan/answer-size.ts";
import { asked, type Route, routeOf } from "../plan/route.ts";
import { isRefusal } from "../plan/table-asks.ts";
import { type Cut, OutOfOrder, type SegmentBuilder } from "./segment-builder.ts";
import type { Slice, SliceWork } from "./slice.ts";

/** Requests rows, and retries transient failures. */
export class AnswerReader {
  readonly #slice: Slice;
  readonly #work: SliceWork;
  /** The largest limit that the source accepted, and the smallest that it refused. */
  #taken: number | undefined;
  #refused = Number.POSITIVE_INFINITY;
  readonly #mostRows: number;
  readonly #route: Route;
  /** Bytes of the current answer so far. */
  #received = 0;
  #announced: bigint | undefined;
  #ear = new AnswerEar();

  constructor(slice: Slice, work: SliceWork) {
    this.#slice = slice;
    const { expected, isFinal = false } = slice;
    this.#mostRows = isFinal && expected !== undefined ? 10 * expected + 100_000 : Number.POSITIVE_INFINITY;
    this.#work = work;
    this.#route = routeOf(work.source, slice.table);
  }

  /** Bytes of the last answer requested. */
  get received(): number {
    return this.#received;
  }

  /** Rows of the whole slice according to totals in its answers; undefined if no total exceeds the rows received. */
  get announced(): bigint | undefined {
    return this.#announced;
  }

  /** How long that answer took to arrive; undefined if it did not come over a network. */
  get ms(): number | undefined {
    return this.#ear.ms;
  }

  /** The result of a complete answer, and of the truncated ones before it. */
  async *ask<T>(
    attempt: (number: number) => AsyncGenerator<T, void>,
    progressed: () => boolean,
  ): AsyncGenerator<T, void> {
    const { retry, signal } = this.#work;
    // before the first byte of an answer, the source itself retries
    let doubled = 0;
    const again = (error: RunvaultError) => {
      // a gateway that merges duplicates only later may briefly return one twice
      if (error.code === "duplicate_row" && doubled < 3) {
        doubled++;
        return true;
      }
      return error.retry === "again" && (this.#received > 0 || error.code === "stream_cut");
    };
    yield* piecesWithRetries(attempt, retry, signal, { again, progressed });
  }

  /**
   * Reads one answer's rows into the text. If the source refuses the limit, requests again with the largest that it
   * accepted, or without one.
   */
  async *answer(
    text: SegmentBuilder,
    from: Nanoseconds,
    wanted: number | undefined,
  ): AsyncGenerator<Cut, void> {
    const { source, signal, onRows, seen, countRows } = this.#work;
    const { run, table, expected } = this.#slice;
    const { to } = this.#slice.around ?? this.#slice;
    let missing: bigint | undefined;
    const { takesLimit, order, pages } = this.#route;
    // caps may show only in the size of answers
    const mayStop = order !== "none" && (countRows !== undefined || pages !== "none");
    const taken = wanted !== undefined && wanted >= this.#refused ? this.#taken : wanted;
    const limit = takesLimit ? taken : undefined;
    this.#received = 0;
    this.#ear = new AnswerEar();
    text.beginAnswer(from);
    try {
      for await (const chunk of source.rows({
        ...run,
        table: table.name,
        ...asked(this.#route, from, to),
        limit,
        signal,
        onTotal: (total, came) => {
          if (came !== undefined) missing = total - BigInt(came);
          // with bounds that could not be sent, the total also counts rows that are dropped here
          else if (from === int64Min && to === int64Max) this.#announced = total;
        },
        onBody: (body) => {
          text.answer.isJoined ||= this.#ear.ms !== undefined;
          this.#ear.onBody(body);
        },
      })) {
        const before = text.answer.rows;
        this.#received += chunk.byteLength;
        yield* text.push(chunk);
        onRows(text.answer.rows - before, chunk.byteLength);
        if (text.totalRows > this.#mostRows) throw farTooMany(text.totalRows, expected);
        if (text.isPast && mayStop) {
          // the rest lies after a bound that could not be sent
          text.dropRest();
          break;
        }
      }
      yield* text.endAnswer();
      if (missing !== undefined) {
        const all = BigInt(text.totalRows) + missing;
        if (all > (this.#announced ?? 0n)) this.#announced = all;
      }
      const { rows, first, isRowFirst, leftOut } = text.answer;
      const span = isRowFirst ? (text.lastTs ?? first!) - first! : 0n;
      seen.answered(table.name, this.#ear.sizeOf(rows + leftOut, this.#received), span);
    } catch (thrown) {
      if (thrown instanceof OutOfOrder) throw thrown;
      const error = RunvaultError.from(thrown);
      if (limit !== undefined && limit !== this.#taken && this.#received === 0 && isRefusal(error)) {
        this.#refused = limit;
        yield* this.answer(text, from, this.#taken);
        return;
      }
      throw error;
    }
    if (limit !== undefined) this.#taken = Math.max(limit, this.#taken ?? 0);
  }
}

function farTooMany(rows: number, expected: number | undefined): RunvaultError {
  return new RunvaultError(
    "incomplete",
    `the gateway counts ${expected} rows in this window, but sent ${rows} and did not stop`,
    {
      hint: "Run the same command again; if it happens again, ask the gateway's operator whether its counts or its rows are right.",
    },
  );
}
