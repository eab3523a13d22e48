import type { Dispatcher } from "undici";
import { type ErrorPlace, RunvaultError } from "../../model/error.ts";
import { Pieces } from "../../model/pieces.ts";
import { withRetries } from "../../model/retry/retry.ts";
import { alsoTelling, type RetryPolicy } from "../../model/retry/retry-policy.ts";
import type { RowRequest, RunRef } from "../../model/source.ts";
import { createScrubber, type Scrubber } from "../../model/text/scrubber.ts";
import type { Nanoseconds } from "../../model/time.ts";
import { type GatewayAddress, readAddress } from "../address.ts";
import { Notices } from "../notices.ts";
import {
  type CheckedOptions,
  checkOptions,
  type GatewayOptions,
  ownHeaders,
  tokenSchema,
} from "../options.ts";
import { openRequestScope, type RequestScope } from "../request-scope.ts";
import { UnknownFields } from "../rpc/unknown-fields.ts";
import { type Answer, type AnswerRequest, limitBody, requestAnswer } from "./answer.ts";
import { decodedBody, isSelfEnding } from "./decode.ts";
import { openDispatcher } from "./dispatcher.ts";
import { refusedTokenHint, statusHints } from "./error-answer.ts";
import { requestHttp2Answer } from "./http2-answer.ts";
import { Http2Connections } from "./http2-connections.ts";
import { NoContent } from "./no-content.ts";
import { openRequestGate, type RequestGate } from "./request-gate.ts";
import { RowRate } from "./row-rate.ts";
import { transportError } from "./transport-error.ts";

/** Counts of a source since it was opened. */
export interface GatewayStats {
  /** Requests sent, redirects and retries included. */
  readonly requests: number;
  /** Attempts repeated. */
  readonly retries: number;
  /** Bytes of bodies taken off the wire, before decompression. */
  readonly bytes: number;
}

/** A larger document is refused; a run with a hundred thousand resources fits. */
export const documentMaxBytes = 16 * 1024 * 1024;

/** What a request needs besides its contents: the place for errors, and when to stop. */
export interface RequestContext {
  readonly place: ErrorPlace;
  readonly signal: AbortSignal;
}

/** One request, by its path from the origin. */
export interface HttpSessionRequest {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  /** Whether to add the secret query parameters to its path; this happens last, so that no error shows them. */
  readonly withKeys?: boolean;
  /** Whether it goes over HTTP/2, whose trailers say how an answer ended. Default: HTTP/1.1. */
  readonly http2?: boolean;
}

/**
 * What REST and RPC share: connections, authentication, request limits, retries, and counts. Disposing it ends
 * everything in progress (`interrupted`).
 */
export class HttpSession implements AsyncDisposable {
  readonly address: GatewayAddress;
  readonly options: CheckedOptions;
  readonly gate: RequestGate;
  /** Knows every secret that is sent to the gateway, which may send it back. */
  readonly scrubber: Scrubber = createScrubber();
  readonly notices: Notices;
  readonly unknown: UnknownFields;
  readonly noContent = new NoContent();
  readonly stats: { -readonly [K in keyof GatewayStats]: number } = { requests: 0, retries: 0, bytes: 0 };
  /** Attempts repeated of requests that concern one run. */
  readonly #retriesOf = new Map<string, number>();
  readonly #retry: RetryPolicy;
  #dispatcher: Dispatcher;
  /** Former dispatchers, which end once their requests have. */
  readonly #left = new Set<Dispatcher>();
  readonly #http2: Http2Connections;
  #headers: Readonly<Record<string, string>>;
  #token: string | undefined;
  #renewing: Promise<void> | undefined;
  readonly #closing = new AbortController();
  #clock: { readonly dateMs: number; readonly seenMs: number } | undefined;

  /** Sends nothing yet. Throws `invalid_argument` for invalid options. */
  constructor(options: GatewayOptions) {
    this.options = checkOptions(options);
    this.#retry = alsoTelling(this.options.retry, ({ error }) => this.countRetry(error.place));
    this.address = readAddress(this.options.baseUrl);
    for (const secret of secretsOf(this.address, this.options)) this.scrubber.add(secret);
    this.notices = new Notices(this.options.onNotice);
    this.unknown = new UnknownFields(this.notices);
    this.gate = openRequestGate(this.options.concurrency, this.options.maxRequestsPerSecond);
    this.#token = this.options.token;
    this.#headers = headersOf(this.address, this.options);
    this.#dispatcher = openDispatcher(this.address, this.options);
    this.#http2 = new Http2Connections(this.address, this.options);
  }

  /** Sends later requests over new connections: behind a load balancer, another node may answer. */
  reconnect(): void {
    const former = this.#dispatcher;
    this.#dispatcher = openDispatcher(this.address, this.options);
    this.#http2.leave();
    this.#left.add(former);
    void former.close().finally(() => this.#left.delete(former));
  }

  /** The life of one call, which ends with the caller's signal and with the session. */
  scope(signal: AbortSignal | undefined): RequestScope {
    return openRequestScope([signal, this.#closing.signal]);
  }

  /**
   * Sends one request when its turn comes and waits for the answer's headers, of any status. If its token is refused
   * and a new one is available, sends it again.
   */
  async send(request: HttpSessionRequest, context: RequestContext): Promise<Answer> {
    const token = this.#token;
    const answer = await this.#sendOnce(request, context);
    if (answer.status !== 401 || !(await this.#hasOtherToken(token))) return answer;
    answer.body.close();
    return await this.#sendOnce(request, context);
  }

  /**
   * Makes a call whose answer may refuse the token despite a success status, as in gRPC. If it throws `unauthenticated`
   * and a new token is available, repeats it once.
   */
  async withOtherToken<T>(call: () => Promise<T>): Promise<T> {
    const token = this.#token;
    try {
      return await call();
    } catch (thrown) {
      const isRefused = thrown instanceof RunvaultError && thrown.code === "unauthenticated";
      if (!isRefused || !(await this.#hasOtherToken(token))) throw thrown;
      return await call();
    }
  }

  /** Whether there is a newer token than the refused one; simultaneous requests read it only once. */
  async #hasOtherToken(refused: string | undefined): Promise<boolean> {
    const { renewToken } = this.options;
    if (renewToken === undefined) return false;
    if (this.#token === refused) {
      this.#renewing ??= this.#renew(renewToken).finally(() => {
        this.#renewing = undefined;
      });
      await this.#renewing;
    }
    return this.#token !== refused;
  }

  async #renew(renewToken: () => Promise<string>): Promise<void> {
    const token = tokenSchema.safeParse(await renewToken()).data;
    // the refusal stands; a file that is just being written has no token
    if (token === undefined || token === this.#token) return;
    this.scrubber.add(token);
    this.#token = token;
    this.#headers = headersOf(this.address, { ...this.options, token });
  }

  async #sendOnce(request: HttpSessionRequest, { place, signal }: RequestContext): Promise<Answer> {
    await this.gate.start(signal);
    this.stats.requests += 1;
    try {
      const asked: AnswerRequest = {
        origin: this.address.origin,
        method: request.method,
        path: request.withKeys === true ? withKeys(request.path, this.options.keys) : request.path,
        ...(request.body === undefined ? {} : { body: request.body }),
        // a cached old answer is not an answer of the gateway
        headers: { "cache-control": "no-cache", ...this.#headers, ...request.headers },
        signal,
        connectTimeoutMs: this.options.connectTimeoutMs,
        headersTimeoutMs: this.options.headersTimeoutMs,
        countBytes: (bytes) => {
          this.stats.bytes += bytes;
        },
      };
      const answer =
        request.http2 === true
          ? await requestHttp2Answer(this.#http2, {
              ...asked,
              bodyIdleTimeoutMs: this.options.bodyIdleTimeoutMs,
            })
          : await requestAnswer(this.#dispatcher, asked);
      this.#readClock(answer.headers.date);
      return answer;
    } catch (thrown) {
      throw transportError(thrown, { place, receivedBytes: undefined });
    }
  }

  /** Counts a repeated attempt of a request about this place. */
  countRetry({ instance, run }: ErrorPlace): void {
    this.stats.retries += 1;
    if (instance === undefined || run === undefined) return;
    const key = JSON.stringify([instance, run]);
    this.#retriesOf.set(key, (this.#retriesOf.get(key) ?? 0) + 1);
  }

  /** Repeated attempts of requests about a run. */
  retriesOf({ instanceId, runId }: RunRef): number {
    return this.#retriesOf.get(JSON.stringify([instanceId, runId])) ?? 0;
  }

  /** The gateway's own clock, by the Date of its last answer; undefined before the first. */
  now(): Nanoseconds | undefined {
    if (this.#clock === undefined) return undefined;
    const { dateMs, seenMs } = this.#clock;
    return BigInt(Math.round(dateMs + performance.now() - seenMs)) * 1_000_000n;
  }

  #readClock(date: string | undefined): void {
    const dateMs = date === undefined ? Number.NaN : Date.parse(date);
    if (Number.isFinite(dateMs)) this.#clock = { dateMs, seenMs: performance.now() };
  }

  /** Repeats an attempt while its error, or `again` instead, says that a retry may help. */
  async retrying<T>(
    signal: AbortSignal,
    attempt: (number: number) => Promise<T>,
    again?: (error: RunvaultError) => boolean,
  ): Promise<T> {
    try {
      return await withRetries(attempt, this.#retry, signal, again === undefined ? {} : { again });
    } catch (thrown) {
      const isRefused = thrown instanceof RunvaultError && thrown.code === "unauthenticated";
      if (!isRefused || this.#token === undefined) throw thrown;
      throw thrown.advising(this.unauthenticatedHint);
    }
  }

  /** What to do about a 401, depending on whether a token was sent. */
  get unauthenticatedHint(): string {
    return this.#token === undefined
      ? statusHints.unauthenticated!
      : refusedTokenHint(this.options.tokenHeader);
  }

  /**
   * The whole body of an answer, decoded by `read`. Throws `limit_exceeded` above `mostBytes` and `timeout` if it takes
   * too long; closes the connection then.
   */
  async whole(
    answer: Answer,
    mostBytes: number,
    what: string,
    place: ErrorPlace,
    read: typeof decodedBody = decodedBody,
  ): Promise<Buffer> {
    const parts = new Pieces();
    try {
      using _deadline = limitBody(answer.body, this.options.documentTimeoutMs, place);
      for await (const chunk of read(answer, place)) {
        parts.add(chunk);
        if (parts.bytes > mostBytes) {
          throw new RunvaultError(
            "limit_exceeded",
            `the gateway sent ${what} of more than ${mostBytes} bytes`,
            { place },
          );
        }
      }
    } finally {
      answer.body.close();
    }
    return parts.take();
  }

  /** Enforces the minimum rate on the rows of one listing. */
  rowRate(place: ErrorPlace, onBody?: RowRequest["onBody"]): RowRate {
    return new RowRate(this.options.leastRate, place, onBody);
  }

  /**
   * Refuses an answer whose end HTTP does not mark, because truncation would look like its end. `what` names its
   * contents.
   */
  requireFraming(answer: Answer, what: string, place: ErrorPlace): void {
    const { headers } = answer;
    const transferEncoding = headers["transfer-encoding"]?.trim().toLowerCase();
    if (transferEncoding === "chunked") return;
    // any other coding hides the rows, or is read until the connection closes, even beside a Content-Length
    if (transferEncoding !== undefined) {
      throw refused(
        `${what} in a Transfer-Encoding other than chunked, so a truncated answer would look complete`,
        answer,
        place,
        {
          hint: "Configure the gateway, or the proxy in front of it, to send plain chunks or a Content-Length: these show where an answer ends.",
        },
      );
    }
    if (headers["content-length"] !== undefined) return;
    if (this.options.acceptUnframed || isSelfEnding(answer)) return;
    throw refused(
      `${what} without Content-Length or chunks, so a truncated answer would look complete`,
      answer,
      place,
      {
        hint: "If the gateway cannot be changed, set --accept-unframed or RUNVAULT_ACCEPT_UNFRAMED; then only counts can show what is missing.",
      },
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new RunvaultError("interrupted", "the connection to the gateway was closed"));
    this.#http2.destroy();
    await Promise.all([this.#dispatcher, ...this.#left].map((dispatcher) => dispatcher.destroy()));
  }
}

/** Throws `not_a_gateway` for an answer of another media type; after a page of HTML a retry may help. */
export function requireMediaType(answer: Answer, wanted: readonly string[], place: ErrorPlace): void {
  const type = mediaType(answer);
  if (type !== undefined && wanted.includes(type)) return;
  const shown =
    type !== undefined && /^[\w.+-]{1,60}\/[\w.+-]{1,60}$/.test(type) ? type : "of unknown media type";
  throw new RunvaultError("not_a_gateway", `the answer is ${shown}, not ${wanted.join(" or ")}`, {
    place,
    status: answer.status,
    // as proxies and maintenance pages send
    ...(type === "text/html" ? { retry: "again" } : {}),
    hint: "Check --gateway or RUNVAULT_GATEWAY: something else may be listening there.",
  });
}

/** The media type of an answer without its parameters; undefined if it names none. */
export function mediaType(answer: Answer): string | undefined {
  return answer.headers["content-type"]?.split(";")[0]?.trim().toLowerCase();
}

/** An error that refuses an answer, whatever it holds. */
export function refused(
  what: string,
  answer: Answer,
  place: ErrorPlace,
  { hint }: { readonly hint: string },
): RunvaultError {
  return new RunvaultError("refused", `the gateway sent ${what}`, { place, status: answer.status, hint });
}

/** The token, and the address's user and password, in each form in which they are sent. */
function secretsOf({ basicAuthorization }: GatewayAddress, options: CheckedOptions): string[] {
  const { token, baseUrl, headers, keys } = options;
  const { username, password } = new URL(baseUrl);
  const encoded = basicAuthorization?.replace(/^Basic /, "") ?? "";
  return [
    token ?? "",
    encoded,
    ...[username, password].flatMap((part) => [part, decodeURIComponent(part)]),
    ...Object.values(headers),
    ...Object.values(keys),
  ];
}

/** Appends secret query parameters to a path; existing ones, as in a next page's address, stay. */
function withKeys(path: string, keys: Readonly<Record<string, string>>): string {
  const names = new Set(new URLSearchParams(path.split("?")[1] ?? "").keys());
  const added = Object.entries(keys).filter(([name]) => !names.has(name));
  if (added.length === 0) return path;
  return `${path}${path.includes("?") ? "&" : "?"}${new URLSearchParams(added)}`;
}

function headersOf(address: GatewayAddress, options: CheckedOptions): Record<string, string> {
  return {
    ...profileHeaders(options),
    ...authentication(address, options),
    "accept-encoding": (options.compressed ?? !address.loopback) ? "zstd, gzip" : "identity",
    "user-agent": "runvault",
  };
}

/** The profile's headers. Refuses one that runvault or the token sets: two values would be ambiguous. */
function profileHeaders({ headers, token, tokenHeader, baseUrl }: CheckedOptions): Record<string, string> {
  const { username } = new URL(baseUrl);
  const taken = new Set(ownHeaders);
  if (token !== undefined) taken.add(tokenHeader.toLowerCase());
  if (username !== "") taken.add("authorization");
  const entries = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  const twice = entries.find(([name]) => taken.has(name));
  if (twice !== undefined) {
    throw new RunvaultError(
      "invalid_argument",
      `the profile's header ${twice[0]} is set by runvault itself`,
      {
        hint: "Remove it from the profile's headers; to send a token, use --token-file and --token-header.",
      },
    );
  }
  return Object.fromEntries(entries);
}

function authentication(address: GatewayAddress, options: CheckedOptions): Record<string, string> {
  const { token, tokenHeader } = options;
  const name = tokenHeader.toLowerCase();
  const headers: Record<string, string> = {};
  if (address.basicAuthorization !== undefined) headers.authorization = address.basicAuthorization;
  if (token === undefined) return headers;
  if (headers[name] !== undefined) {
    throw new RunvaultError(
      "invalid_argument",
      "the token and the user name in the gateway's address both need the Authorization header",
      { hint: "Give only one of them, or set --token-header or RUNVAULT_TOKEN_HEADER." },
    );
  }
  headers[name] = name === "authorization" ? `Bearer ${token}` : token;
  return headers;
}
