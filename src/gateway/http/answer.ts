import { type Dispatcher, errors } from "undici";
import { type ErrorPlace, RunvaultError } from "../../model/error.ts";
import { timerMs } from "../../model/retry/deadline.ts";

/** An answer whose headers have arrived and whose body is still coming. The body must be read to the end or closed. */
export interface Answer {
  readonly status: number;
  readonly headers: AnswerHeaders;
  readonly body: AnswerBody;
  /** The trailers, once the body has ended; only over HTTP/2. */
  readonly trailers?: () => AnswerHeaders | undefined;
}

/** Headers by lower-case name; repeated ones are joined with commas. */
export type AnswerHeaders = Readonly<Record<string, string>>;

export interface AnswerRequest {
  readonly origin: string;
  readonly method: "GET" | "POST";
  /** Path with query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  readonly signal: AbortSignal;
  /** Time limit until the request is sent, including a proxy. */
  readonly connectTimeoutMs: number;
  /** Time limit from then until the final status line and headers; earlier 1xx do not extend it. */
  readonly headersTimeoutMs: number;
  /** Called with the length of each chunk of body that comes off the wire. */
  readonly countBytes: (bytes: number) => void;
}

// Reading stops at the upper mark and continues at the lower one, so a slow reader holds at most this much and one
// socket read.
const pauseAtBytes = 1024 * 1024;
const resumeAtBytes = 256 * 1024;
/** Cost of a chunk besides its bytes; otherwise an answer in one-byte chunks would queue a million of them. */
const chunkCost = 256;

/** The source of a body's bytes, which can be paused or stopped. */
export interface BodyFlow {
  pause(): void;
  resume(): void;
  abort(reason: Error): void;
}

/**
 * The chunks of a body as they arrive, for one reader. A small queue with pause and resume does what the streams of
 * undici and Node do, at half the CPU. Ends only if HTTP says that the body is complete; otherwise throws the error of
 * undici or `signal`.
 */
export class AnswerBody implements AsyncIterableIterator<Buffer, undefined> {
  /** Bytes received so far. */
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

  /** How long the reader has waited for bytes; time in which bytes waited for the reader does not count. */
  get waitedMs(): number {
    return (
      this.#waitedMs + (this.#waitingSinceMs === undefined ? 0 : performance.now() - this.#waitingSinceMs)
    );
  }

  /**
   * Time from the first byte to the last, without pauses by the reader; undefined until the body is complete.
   */
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

  /** Marks the end; an error reaches the reader after the chunks received before. */
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

  /** Ends the body with the error at once, drops unread bytes, and closes the connection. */
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

  /** Drops the rest: the connection is closed unless the body was already complete. */
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
 * Ends the body with `timeout` if it is not read within that time, until disposed: a dripping body is never silent for
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
 * Sends one request and waits for the answer's headers. Throws undici's errors or the signal's reason.
 * `HeadersTimeoutError` uses its own clock, because undici's restarts with each 1xx.
 */
export function requestAnswer(dispatcher: Dispatcher, request: AnswerRequest): Promise<Answer> {
  const { signal } = request;
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  let body: AnswerBody | undefined;
  let controller: Dispatcher.DispatchController | undefined;
  /** Why the request was given up before it was sent. */
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

/** Joins headers that occur several times. */
export function joinHeaders(headers: Record<string, string | string[] | undefined>): AnswerHeaders {
  const joined: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) joined[name.toLowerCase()] = Array.isArray(value) ? value.join(", ") : value;
  }
  return joined;
}

/** A signal's abort reason as an error. */
export function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
