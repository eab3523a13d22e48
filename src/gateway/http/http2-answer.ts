import { constants, type IncomingHttpHeaders } from "node:http2";
import { errors } from "undici";
import { timerMs } from "../../model/retry/deadline.ts";
import {
  type Answer,
  AnswerBody,
  type AnswerHeaders,
  type AnswerRequest,
  asError,
  joinHeaders,
} from "./answer.ts";
import type { Http2Connection, Http2Connections } from "./http2-connections.ts";

export interface Http2AnswerRequest extends AnswerRequest {
  /** Longest silence inside the body; it does not run while the reader pauses. */
  readonly bodyIdleTimeoutMs: number;
}

/**
 * Sends one request over HTTP/2 and waits for the answer's headers; its trailers are available once the body has ended.
 * Throws Node's errors, undici's for timeouts, or the signal's reason. A body ends without an error only if its stream
 * did; the trailers must say whether that was everything.
 */
export async function requestHttp2Answer(
  connections: Http2Connections,
  request: Http2AnswerRequest,
): Promise<Answer> {
  const { signal } = request;
  if (signal.aborted) throw asError(signal.reason);
  const connection = await settledOrAborted(connections.connection(), signal);
  return await exchange(connection, request);
}

function exchange(connection: Http2Connection, request: Http2AnswerRequest): Promise<Answer> {
  const { signal } = request;
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const stream = connection.session.request(
    { ...request.headers, ":method": request.method, ":path": request.path },
    { endStream: request.body === undefined },
  );
  let body: AnswerBody | undefined;
  let trailers: AnswerHeaders | undefined;
  let isDone = false;

  const settle = (error?: Error) => {
    if (isDone) return;
    isDone = true;
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
    if (error === undefined) body?.end();
    else {
      reject(error);
      body?.end(error);
    }
  };
  const giveUp = (error: Error) => {
    settle(error);
    if (!stream.closed) stream.close(constants.NGHTTP2_CANCEL);
  };
  const onAbort = () => giveUp(asError(signal.reason));
  /** a silent connection may be dead: the next attempt uses another */
  const onSilence = (error: Error) => () => {
    connection.leave();
    giveUp(error);
  };
  let timer = setTimeout(onSilence(new errors.HeadersTimeoutError()), timerMs(request.headersTimeoutMs));
  const watchSilence = () => {
    clearTimeout(timer);
    if (!isDone)
      timer = setTimeout(onSilence(new errors.BodyTimeoutError()), timerMs(request.bodyIdleTimeoutMs));
  };
  signal.addEventListener("abort", onAbort, { once: true });

  stream.on("response", (headers) => {
    const status = headers[":status"] ?? 0;
    body = new AnswerBody({
      pause: () => {
        stream.pause();
        clearTimeout(timer);
      },
      resume: () => {
        stream.resume();
        watchSilence();
      },
      abort: giveUp,
    });
    watchSilence();
    resolve({ status, headers: plainHeaders(headers), body, trailers: () => trailers });
  });
  stream.on("trailers", (headers: IncomingHttpHeaders) => {
    trailers = plainHeaders(headers);
  });
  stream.on("data", (chunk: Buffer) => {
    request.countBytes(chunk.length);
    watchSilence();
    body?.push(chunk);
  });
  stream.on("end", () => {
    if (body !== undefined) settle();
  });
  stream.on("error", (error) => settle(connection.failure(error)));
  stream.on("close", () =>
    settle(
      connection.failure(Object.assign(new Error("the stream was closed"), { code: "ERR_HTTP2_STREAM" })),
    ),
  );
  if (request.body !== undefined) stream.end(request.body);
  return promise;
}

function plainHeaders(headers: IncomingHttpHeaders): AnswerHeaders {
  return joinHeaders(Object.fromEntries(Object.entries(headers).filter(([name]) => !name.startsWith(":"))));
}

/** The value, or the signal's reason if that comes first. */
async function settledOrAborted<T>(value: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(asError(signal.reason));
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([value, promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
