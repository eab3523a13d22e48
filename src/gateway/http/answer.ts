import { type Dispatcher, errors } from "undici";
import { type ErrorPlace, RunvaultError } from "../../model/error.ts";
import { timerMs } from "../../model/retry/deadline.ts";

/** An answer whose headers are here and whose body is on its way. Its body must be read to the end or closed. */
export interface Answer {
  readonly status: number;
  readonly headers: AnswerHeaders;
  readonly body: AnswerBody;
  /** What stands behind the body, once that is at its end; only of answers over HTTP/2. */
  readonly trailers?: () => AnswerHeaders | undefined;
}

/** Headers by lower-case name; a header that came several times is joined with commas. */
export type AnswerHeaders = Readonly<Record<string, string>>;

export interface AnswerRequest {
  readonly origin: string;
  readonly method: "GET" | "POST";
  /** Path with query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  readonly signal: AbortSignal;
  /** Longest time until the request is on its way, over a proxy as well. */
  readonly connectTimeoutMs: number;
  /** Longest time from then on until the final status line and its headers are here, whatever 1xx come ahead of them. */
  readonly headersTimeoutMs: number;
  /** Called with the length of each chunk of body that comes off the wire. */
  readonly countBytes: (bytes: number) => void;
}

// Reading stops at the upper mark and goes on at the lower one: a slow reader holds at most this and one socket read.
const pauseAtBytes = 1024 * 1024;
const resumeAtBytes = 256 * 1024;
/** What a chunk costs beside its bytes: an answer in chunks of a byte would otherwise queue a million of them. */
const chunkCost = 256;

/** What a body's bytes come from, to be held back or given up. */
export interface BodyFlow {
  pause(): void;
  resume(): void;
  abort(reason: Error): void;
}

/**
 * The chunks of a body as they come off the socket, for one reader. A small queue with pause and resume stands between
 * the two; the streams of undici and Node do the same at twice the CPU. Ends only where HTTP says that the body is
 * whole, else throws what undici or `signal` says.
 */
export class AnswerBody implements AsyncIterableIterator<Buffer, undefined> {
  /** Bytes taken off the wire so far. */
  receivedBytes = 0;
  readonly #controller: BodyFlow;
  #queue: Buffer[] = [];
  #next = 0;
  #queuedBytes = 0;
  #ended = false;
  #error: Error | undefined;
  #wake: (() => void) | undefined;
  #waitedMs = 0;
  #waitingSinceMs: number | undefined;
  #firstByteMs: number | undefined;
  #pausedMs = 0;
  #pausedSinceMs: number | undefined;
  #arrivalMs: number | undefined;

  constructor(controller: BodyFlow) {
    this.#controller = controller;
  }

  /** How long the reader has waited for bytes so far; none of it while bytes wait for the reader. */
  get waitedMs(): number {
    return (
      this.#waitedMs + (this.#waitingSinceMs === undefined ? 0 : performance.now() - this.#waitingSinceMs)
    );
  }

  /** From the first byte to the last, less the time in which the reader held it back; undefined until it came whole. */
  get arrivalMs(): number | undefined {
    return this.#arrivalMs;
  }

  push(chunk: Buffer): void {
    if (this.#ended) return;
    this.#firstByteMs ??= performance.now();
    this.#queue.push(chunk);
    this.#queuedBytes += chunk.length + chunkCost;
    this.receivedBytes += chunk.length;
    if (this.#queuedBytes >= pauseAtBytes) {
      this.#pausedSinceMs ??= performance.now();
      this.#controller.pause();
    }
    this.#wake?.();
  }

  /** Marks the end; with an error, the reader gets it after the chunks that came before. */
  end(error?: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    if (error === undefined) {
      const now = performance.now();
      const pausedMs = this.#pausedMs + now - (this.#pausedSinceMs ?? now);
      this.#arrivalMs = now - (this.#firstByteMs ?? now) - pausedMs;
    }
    this.#wake?.();
  }

  /** Ends the body with the error at once, what was not read yet left out, and closes the connection. */
  fail(error: Error): void {
    if (this.#ended) return;
    this.#dropQueue();
    this.end(error);
    this.#controller.abort(error);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Buffer, undefined>> {
    for (;;) {
      const chunk = this.#queue[this.#next];
      if (chunk !== undefined) {
        this.#take(chunk);
        return { value: chunk, done: false };
      }
      if (this.#error !== undefined) throw this.#error;
      if (this.#ended) return { value: undefined, done: true };
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      this.#waitingSinceMs = performance.now();
      await promise;
      this.#wake = undefined;
      this.#waitedMs = this.waitedMs;
      this.#waitingSinceMs = undefined;
    }
  }

  /** Gives the rest up: the connection is closed unless the body had already come whole. */
  async return(): Promise<IteratorResult<Buffer, undefined>> {
    this.close();
    return { value: undefined, done: true };
  }

  close(): void {
    this.#dropQueue();
    if (this.#ended) return;
    this.#ended = true;
    this.#controller.abort(new Error("the reader stopped reading"));
    this.#wake?.();
  }

  #dropQueue(): void {
    this.#queue = [];
    this.#next = 0;
    this.#queuedBytes = 0;
  }

  #take(chunk: Buffer): void {
    this.#next += 1;
    if (this.#next === this.#queue.length) {
      this.#queue = [];
      this.#next = 0;
    }
    this.#queuedBytes -= chunk.length + chunkCost;
    if (this.#queuedBytes > resumeAtBytes || this.#ended) return;
    if (this.#pausedSinceMs !== undefined) this.#pausedMs += performance.now() - this.#pausedSinceMs;
    this.#pausedSinceMs = undefined;
    this.#controller.resume();
  }
}

/**
 * Ends the body with `timeout` when it is not read in that time, until disposed: a body that drips is never silent for
 * long, and would hold its reader forever.
 */
export function limitBody(body: AnswerBody, timeoutMs: number, place: ErrorPlace): Disposable {
  const timer = setTimeout(() => {
    const message = `the answer was still incomplete after ${timeoutMs / 1000} s (${body.receivedBytes} bytes so far)`;
    body.fail(new RunvaultError("timeout", message, { place }));
  }, timeoutMs);
  return { [Symbol.dispose]: () => clearTimeout(timer) };
}

/**
 * Sends one request and waits for the headers of its answer. Throws undici's errors, `HeadersTimeoutError` by its own
 * clock, for undici's begins anew with each 1xx, or the signal's reason.
 */
export function requestAnswer(dispatcher: Dispatcher, request: AnswerRequest): Promise<Answer> {
  const { signal } = request;
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  let body: AnswerBody | undefined;
  let controller: Dispatcher.DispatchController | undefined;
  /** Why the request was given up before it was on its way. */
  let givenUp: Error | undefined;

  const giveUp = (reason: Error) => {
    clearTimeout(beginning);
    givenUp = reason;
    reject(reason);
    body?.end(reason);
    controller?.abort(reason);
  };
  const onAbort = () => giveUp(asError(signal.reason));
  const settled = () => {
    clearTimeout(beginning);
    signal.removeEventListener("abort", onAbort);
  };
  let beginning: NodeJS.Timeout | undefined;
  const beginWithin = (timeoutMs: number) => {
    clearTimeout(beginning);
    beginning = setTimeout(() => giveUp(new errors.HeadersTimeoutError()), timerMs(timeoutMs));
  };
  if (signal.aborted) {
    onAbort();
    return promise;
  }
  signal.addEventListener("abort", onAbort, { once: true });
  beginWithin(request.connectTimeoutMs + request.headersTimeoutMs);

  dispatcher.dispatch(
    {
      origin: request.origin,
      path: request.path,
      method: request.method,
      headers: { ...request.headers },
      body: request.body ?? null,
    },
    {
      onRequestStart(started) {
        const isFirst = controller === undefined;
        controller = started;
        if (givenUp !== undefined) started.abort(givenUp);
        else if (isFirst) beginWithin(request.headersTimeoutMs);
      },
      onResponseStart(started, status, headers) {
        if (status < 200) return;
        clearTimeout(beginning);
        body = new AnswerBody(started);
        resolve({ status, headers: joinHeaders(headers), body });
      },
      onResponseData(_controller, chunk) {
        request.countBytes(chunk.length);
        body?.push(chunk);
      },
      onResponseEnd() {
        settled();
        body?.end();
      },
      onResponseError(_controller, error) {
        settled();
        reject(error);
        body?.end(error);
      },
    },
  );
  return promise;
}

/** Headers with each that came several times as one. */
export function joinHeaders(headers: Record<string, string | string[] | undefined>): AnswerHeaders {
  const joined: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) joined[name.toLowerCase()] = Array.isArray(value) ? value.join(", ") : value;
  }
  return joined;
}

/** What a signal was aborted with, as an error. */
export function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
