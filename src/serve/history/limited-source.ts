import { RunvaultError } from "../../model/error.ts";
import type { RowAnswer } from "../../model/row-answer.ts";
import type { HistorySource, RowRequest } from "../../model/source.ts";
import { countText } from "../../model/text/plural.ts";
import { countLines } from "../../row/wire/row-lines.ts";
import { QueryClock } from "../monitoring/query-clock.ts";
import type { QuerySlots } from "../monitoring/query-slots.ts";
import { delegatingSource } from "./delegating-source.ts";
import { ScanQueue } from "./scan-queue.ts";

/** A server's limits for one request, and for all together. */
export interface ServeLimits {
  /** Most rows of a REST answer, or of an RPC page, after which others follow. */
  readonly rows?: number | undefined;
  /** Most bytes of rows in a REST answer, before compression; RPC pages have at most 4 MiB anyway. */
  readonly bytes?: number | undefined;
  /** Simultaneous row queries. */
  readonly queries?: number | undefined;
  /** Time limit of a query before its first rows and between rows; also for storage facts. */
  readonly queryMs?: number | undefined;
  /**
   * Time limit of one scan for row checksums. Default 30,000: with waiting, less than the minute that clients usually
   * wait; windows that take longer are halved.
   */
  readonly checksumMs?: number | undefined;
}

const usualChecksumMs = 30_000;

/**
 * The same source, with row checksums computed for one request at a time: each scans all its rows, which would take CPU
 * and disk from others. Throws `rate_limited` if too many wait, and `limit_exceeded` for a scan that takes too long.
 */
export function limitedChecksums(
  source: HistorySource,
  { checksumMs = usualChecksumMs }: ServeLimits,
): HistorySource {
  const scans = new ScanQueue();
  return {
    ...delegatingSource(source),
    async facts(run, bounds, signal, asked) {
      if (asked?.withHash !== true) return await source.facts(run, bounds, signal, asked);
      using _turn = await scans.turn(signal);
      const clock = new QueryClock(checksumMs, signal);
      return await clock.time(() => source.facts(run, bounds, clock.signal, asked));
    },
  };
}

/** The same source with a time limit on everything except checksums: `limit_exceeded`. */
export function timedSource(source: HistorySource, queryMs: number): HistorySource {
  return {
    ...delegatingSource(source),
    async facts(run, bounds, signal, asked) {
      // checksums have a separate limit
      if (asked?.withHash === true) return await source.facts(run, bounds, signal, asked);
      const clock = new QueryClock(queryMs, signal);
      return await clock.time(() => source.facts(run, bounds, clock.signal, asked));
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
 * The same source with a limit on whole answers. An answer that is too large is `limit_exceeded`, if possible before
 * its first byte, else when it gets too large; it never ends like a complete one.
 */
export function limitedAnswers(
  source: HistorySource,
  { rows, bytes }: ServeLimits,
  slots: QuerySlots | undefined,
): HistorySource {
  const isTooLarge = (size: number) => bytes !== undefined && size > bytes;
  /** Requests one row more than allowed, which shows that there are more. */
  const bounded = (request: RowRequest): RowRequest =>
    rows === undefined || (request.limit ?? Number.POSITIVE_INFINITY) <= rows
      ? request
      : { ...request, limit: rows + 1 };
  async function* limited(
    request: RowRequest,
    chunks: AsyncIterable<Uint8Array>,
    answer?: Pick<RowAnswer, "rows" | "given">,
  ): AsyncGenerator<Uint8Array> {
    const refuse = (what: string) => tooLarge(request, `the answer would exceed ${what}`);
    let seenRows = 0;
    let seenBytes = 0;
    for await (const chunk of chunks) {
      if (rows !== undefined) {
        seenRows = answer?.rows() ?? answer?.given?.() ?? seenRows + countLines(chunk);
        if (seenRows > rows) throw refuse(countText(rows, "row"));
      }
      seenBytes += chunk.length;
      if (isTooLarge(seenBytes)) throw refuse(`${bytes} bytes`);
      yield chunk;
    }
  }
  return {
    ...delegatingSource(source),
    async facts(run, bounds, signal, asked) {
      using _slot = asked?.withHash === true ? undefined : slots?.take();
      return await source.facts(run, bounds, signal, asked);
    },
    async *rows(request) {
      using _slot = slots?.take();
      yield* limited(request, source.rows(bounded(request)));
    },
    async answer(request, accepted) {
      const answer = (await source.answer?.(bounded(request), accepted)) ?? null;
      if (answer === null) return null;
      if (isTooLarge(answer.bytes ?? 0)) throw tooLarge(request, `the rows exceed ${bytes} bytes`);
      if (rows !== undefined && (answer.rows() ?? 0) > rows)
        throw tooLarge(request, `the rows exceed ${rows}`);
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
  return new RunvaultError("limit_exceeded", `${what}, the limit of this server`, {
    place: { instance: instanceId, run: runId, table },
    hint: "Ask for a smaller time window with from and to, or page over RPC.",
  });
}
