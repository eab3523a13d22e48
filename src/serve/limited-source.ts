import { RunvaultError } from "../model/error.ts";
import type { RowAnswer } from "../model/row-answer.ts";
import type { HistorySource, RowRequest } from "../model/source.ts";
import { passedOn } from "./passed-on.ts";
import type { QuerySlots } from "./query-slots.ts";
import { countLines } from "./row-lines.ts";

/** How much a server does for one request, and for all at a time. */
export interface ServeLimits {
  /** Rows of an answer over REST; of a page over RPC, where more pages follow. */
  readonly rows?: number | undefined;
  /** Bytes of rows in an answer over REST, before compression; pages over RPC have 4 MiB at most anyway. */
  readonly bytes?: number | undefined;
  /** Queries for rows at a time. */
  readonly queries?: number | undefined;
  /** How long a query may compute before it gives rows, and again between them; how long storage facts may take. */
  readonly queryMs?: number | undefined;
}

/** The same source, giving up what it computes for too long: `limit_exceeded`. */
export function timedSource(source: HistorySource, queryMs: number): HistorySource {
  return {
    ...passedOn(source),
    async facts(run, bounds, signal) {
      const clock = new QueryClock(queryMs, signal);
      return await clock.time(() => source.facts(run, bounds, clock.signal));
    },
    rows(request) {
      const clock = new QueryClock(queryMs, request.signal);
      return clock.chunks(source.rows({ ...request, signal: clock.signal }));
    },
    async answer(request, accepted) {
      const clock = new QueryClock(queryMs, request.signal);
      const asked = { ...request, signal: clock.signal };
      const answer = await clock.time(async () => (await source.answer?.(asked, accepted)) ?? null);
      return answer && { ...answer, chunks: clock.chunks(answer.chunks) };
    },
  };
}

/**
 * The same source for whole answers: one that would be larger than allowed is `limit_exceeded`, before its first byte
 * where that can be known, else where it gets too large; never an end that looks like the end of the rows.
 */
export function limitedAnswers(
  source: HistorySource,
  { rows, bytes }: ServeLimits,
  slots: QuerySlots | undefined,
): HistorySource {
  /** The request, for one row more than allowed: that row shows that there are more. */
  const bounded = (request: RowRequest): RowRequest =>
    rows === undefined || (request.limit ?? Number.POSITIVE_INFINITY) <= rows
      ? request
      : { ...request, limit: rows + 1 };
  async function* limited(
    request: RowRequest,
    chunks: AsyncIterable<Uint8Array>,
    answer?: Pick<RowAnswer, "rows" | "bytes" | "given">,
  ): AsyncGenerator<Uint8Array> {
    const refuse = (what: string) => tooLarge(request, `the rows are more than ${what}`);
    const isTooLarge = (size: number) => bytes !== undefined && size > bytes;
    if (isTooLarge(answer?.bytes ?? 0)) throw refuse(`${bytes} bytes`);
    let seenRows = 0;
    let seenBytes = 0;
    for await (const chunk of chunks) {
      if (rows !== undefined) {
        seenRows = answer?.rows() ?? answer?.given?.() ?? seenRows + countLines(chunk);
        if (seenRows > rows) throw refuse(`${rows}`);
      }
      seenBytes += chunk.length;
      if (isTooLarge(seenBytes)) throw refuse(`${bytes} bytes`);
      yield chunk;
    }
  }
  return {
    ...passedOn(source),
    async facts(run, bounds, signal) {
      using _slot = slots?.take();
      return await source.facts(run, bounds, signal);
    },
    async *rows(request) {
      using _slot = slots?.take();
      yield* limited(request, source.rows(bounded(request)));
    },
    async answer(request, accepted) {
      const answer = (await source.answer?.(bounded(request), accepted)) ?? null;
      if (answer === null) return null;
      return {
        ...answer,
        chunks: (async function* () {
          using _slot = slots?.take();
          yield* limited(request, answer.chunks, answer);
        })(),
      };
    },
  };
}

function tooLarge({ instanceId, runId, table }: RowRequest, what: string): RunvaultError {
  return new RunvaultError("limit_exceeded", `${what}, the most of one answer here`, {
    place: { instance: instanceId, run: runId, table },
    hint: "Ask for a smaller window of time with from and to, or page over RPC.",
  });
}

/** Aborts its signal when the work it times takes too long. */
class QueryClock {
  readonly signal: AbortSignal;
  readonly #mostMs: number;
  readonly #stop = new AbortController();

  constructor(mostMs: number, signal: AbortSignal | undefined) {
    this.#mostMs = mostMs;
    this.signal = AbortSignal.any([this.#stop.signal, ...(signal === undefined ? [] : [signal])]);
  }

  /** Chunks that come in time, one after the other. */
  async *chunks(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const iterator = chunks[Symbol.asyncIterator]();
    try {
      for (;;) {
        const next = await this.time(() => iterator.next());
        if (next.done === true) return;
        yield next.value;
      }
    } finally {
      await iterator.return?.();
    }
  }

  async time<T>(work: () => Promise<T>): Promise<T> {
    const timer = setTimeout(() => {
      const message = `the query gave nothing within ${this.#mostMs} ms, the longest it may take here`;
      this.#stop.abort(
        new RunvaultError("limit_exceeded", message, { hint: "Ask for a smaller window of time." }),
      );
    }, this.#mostMs);
    try {
      return await work();
    } catch (error) {
      // whatever broke on the way out, the time was the reason
      if (this.#stop.signal.aborted) throw this.#stop.signal.reason;
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }
}
