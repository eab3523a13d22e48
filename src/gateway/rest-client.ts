import type { Dispatcher } from "undici";
import { type ErrorPlace, RunvaultError } from "../model/error.ts";
import type { GatewayAddress } from "./address.ts";
import { type Answer, limitBody, requestAnswer } from "./answer.ts";
import type { GatewayContract } from "./contract.ts";
import { decodedBody, isSelfEnding } from "./decode.ts";
import { errorFromAnswer } from "./error-answer.ts";
import type { CheckedOptions } from "./options.ts";
import type { RequestGate } from "./request-gate.ts";
import { withRetries } from "./retry.ts";
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

/** A document larger than this is refused; a run with a hundred thousand resources stays below. */
export const documentMaxBytes = 16 * 1024 * 1024;

const maxRedirects = 3;
const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** What a GET needs beside the path: who to name in errors, and when to stop. */
export interface GetContext {
  readonly place: ErrorPlace;
  readonly signal: AbortSignal;
}

/** GET over a gateway's connections: authentication, redirects, retries, errors, media types, sizes. */
export class RestClient {
  readonly stats: { -readonly [K in keyof GatewayStats]: number } = { requests: 0, retries: 0, bytes: 0 };
  readonly #dispatcher: Dispatcher;
  readonly #address: GatewayAddress;
  readonly #contract: GatewayContract;
  readonly #options: CheckedOptions;
  readonly #gate: RequestGate;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(
    dispatcher: Dispatcher,
    address: GatewayAddress,
    contract: GatewayContract,
    options: CheckedOptions,
    gate: RequestGate,
  ) {
    this.#dispatcher = dispatcher;
    this.#address = address;
    this.#contract = contract;
    this.#options = options;
    this.#gate = gate;
    this.#headers = {
      ...authentication(address, options),
      "accept-encoding": (options.compressed ?? !address.loopback) ? "zstd, gzip" : "identity",
      "user-agent": "runvault",
    };
  }

  /**
   * A whole document's bytes, decoded. A cut is retried like any other failure: nothing was handed out yet.
   * Throws `limit_exceeded` above 16 MiB, `timeout` where it takes too long as a whole, `not_a_gateway` for another
   * media type.
   */
  async document(path: string, { place, signal }: GetContext): Promise<Uint8Array> {
    using _place = await this.#gate.document(signal);
    const accept = this.#contract.mediaTypes.document;
    return await this.#retrying(signal, async () => {
      const answer = await this.#open(path, accept, { place, signal });
      const parts: Buffer[] = [];
      let bytes = 0;
      try {
        requireMediaType(answer, accept, place);
        using _deadline = limitBody(answer.body, this.#options.documentTimeoutMs, place);
        for await (const chunk of decodedBody(answer, place)) {
          bytes += chunk.length;
          if (bytes > documentMaxBytes) throw tooLarge(place);
          parts.push(chunk);
        }
      } finally {
        answer.body.close();
      }
      return Buffer.concat(parts);
    });
  }

  /** The bytes of a row answer as they come, decoded. Retries until the first byte is out, never after. */
  async *rows(path: string, { place, signal }: GetContext): AsyncGenerator<Uint8Array, undefined> {
    using _place = await this.#gate.rows(signal);
    const accept = this.#contract.mediaTypes.rows;
    const { answer, chunks, first } = await this.#retrying(signal, async () => {
      const answer = await this.#open(path, accept, { place, signal });
      try {
        requireMediaType(answer, accept, place);
        this.#requireFraming(answer, place);
        const chunks = decodedBody(answer, place);
        return { answer, chunks, first: await chunks.next() };
      } catch (thrown) {
        answer.body.close();
        throw thrown;
      }
    });
    try {
      for (let step = first; !step.done; step = await chunks.next()) yield step.value;
    } finally {
      await chunks.return(undefined);
      answer.body.close();
    }
  }

  #retrying<T>(signal: AbortSignal, attempt: () => Promise<T>): Promise<T> {
    return withRetries(attempt, this.#options, signal, () => {
      this.stats.retries += 1;
    });
  }

  /** One attempt: an answer of status 200, after at most three redirects within the origin. */
  async #open(path: string, accept: string, { place, signal }: GetContext): Promise<Answer> {
    let target = this.#address.basePath + path;
    for (let hops = 0; ; hops += 1) {
      await this.#gate.start(signal);
      this.stats.requests += 1;
      const answer = await this.#send(target, accept, place, signal);
      if (answer.status === 200) return answer;
      try {
        if (!redirects.has(answer.status)) throw await errorFromAnswer(answer, this.#contract, place);
        if (hops === maxRedirects)
          throw refused(`more than ${maxRedirects} redirects`, answer, place, redirected);
        target = this.#redirectTarget(target, answer, place);
      } finally {
        answer.body.close();
      }
    }
  }

  async #send(path: string, accept: string, place: ErrorPlace, signal: AbortSignal): Promise<Answer> {
    try {
      return await requestAnswer(this.#dispatcher, {
        origin: this.#address.origin,
        path,
        headers: { ...this.#headers, accept },
        signal,
        countBytes: (bytes) => {
          this.stats.bytes += bytes;
        },
      });
    } catch (thrown) {
      throw transportError(thrown, { place, receivedBytes: undefined });
    }
  }

  /** Where a redirect leads, as a path: the origin, and with it who gets the token, stays. */
  #redirectTarget(from: string, answer: Answer, place: ErrorPlace): string {
    const location = answer.headers.location;
    const base = this.#address.origin + from;
    if (location === undefined || !URL.canParse(location, base)) {
      throw refused("a redirect without a readable Location", answer, place, redirected);
    }
    const target = new URL(location, base);
    if (target.origin !== this.#address.origin) {
      throw refused(`a redirect to another origin, ${target.origin}`, answer, place, redirected);
    }
    return target.pathname + target.search;
  }

  #requireFraming(answer: Answer, place: ErrorPlace): void {
    const { headers } = answer;
    const transferEncoding = headers["transfer-encoding"]?.trim().toLowerCase();
    if (transferEncoding === "chunked") return;
    // any other is read until the connection closes, whatever length stands beside it, or hides the rows in a coding
    if (transferEncoding !== undefined) {
      throw refused(
        "rows in a Transfer-Encoding other than chunked, whose end looks like a cut",
        answer,
        place,
        {
          hint: "Chunks alone, or a Content-Length, show where rows end: mend the gateway or the proxy before it.",
        },
      );
    }
    if (headers["content-length"] !== undefined) return;
    if (this.#options.acceptUnframed || isSelfEnding(answer)) return;
    throw refused("rows with neither Content-Length nor chunks, whose end looks like a cut", answer, place, {
      hint: "Where the gateway can do no better, --accept-unframed takes them; counts must then show what is missing.",
    });
  }
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
      "both a token and a user in the address want the Authorization header",
      { hint: "Give one of them, or name another header for the token." },
    );
  }
  headers[name] = name === "authorization" ? `Bearer ${token}` : token;
  return headers;
}

function requireMediaType(answer: Answer, wanted: string, place: ErrorPlace): void {
  const type = answer.headers["content-type"]?.split(";")[0]?.trim().toLowerCase();
  if (type === wanted) return;
  const shown = type !== undefined && /^[\w.+-]{1,60}\/[\w.+-]{1,60}$/.test(type) ? type : "no media type";
  throw new RunvaultError("not_a_gateway", `the answer is ${shown}, not ${wanted}`, {
    place,
    status: answer.status,
    hint: "Something else listens there, or the base address is not the gateway's.",
  });
}

function refused(
  what: string,
  answer: Answer,
  place: ErrorPlace,
  { hint }: { readonly hint: string },
): RunvaultError {
  return new RunvaultError("refused", `the gateway sent ${what}`, { place, status: answer.status, hint });
}

const redirected = {
  hint: "Redirects are followed three times and within the origin only: give the address they lead to.",
};

function tooLarge(place: ErrorPlace): RunvaultError {
  return new RunvaultError("limit_exceeded", `a document of more than ${documentMaxBytes} bytes`, { place });
}
