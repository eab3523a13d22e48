import type { ErrorPlace } from "../../model/error.ts";
import type { RowRequest } from "../../model/source.ts";
import type { Answer, AnswerHeaders } from "../http/answer.ts";
import { type ErrorReading, errorFromAnswer, readErrorJson } from "../http/error-answer.ts";
import { type ErrorSeen, errorInDocument, errorInJson, untilErrorLine } from "../http/error-in-success.ts";
import {
  documentMaxBytes,
  type HttpSession,
  mediaType,
  type RequestContext,
  refused,
  requireMediaType,
} from "../http/http-session.ts";
import type { RowRate } from "../http/row-rate.ts";
import { textBody } from "../http/text-body.ts";

const maxRedirects = 3;
const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** One request, by its path below the gateway's address, and the accepted media types. */
export interface RestCall {
  readonly method: "GET" | "POST";
  readonly path: string;
  /** Whether the path starts at the origin, like a next page's. Default false. */
  readonly isFromOrigin?: boolean;
  readonly accept: readonly string[];
  /** JSON, of a POST. */
  readonly body?: Uint8Array;
}

/** An answer whose headers and first bytes have arrived; disposing it drops the rest. */
export interface OpenRows extends AsyncDisposable {
  readonly status: number;
  readonly headers: AnswerHeaders;
  /** The bytes as they come, decoded; none for 204. */
  chunks(): AsyncGenerator<Uint8Array, undefined>;
}

/** Requests over a gateway's connections: redirects, errors, media types, sizes. */
export class RestClient {
  readonly #session: HttpSession;
  readonly #errors: ErrorReading;

  constructor(session: HttpSession, errors: ErrorReading) {
    this.#session = session;
    this.#errors = errors;
  }

  /**
   * A whole decoded document. Truncation is retried like any other failure, because nothing was returned yet. Throws
   * `limit_exceeded` above 16 MiB, `timeout` if it takes too long, `not_a_gateway` for another media type, and the
   * error of a document with `ok: false`.
   */
  async document(
    call: RestCall,
    context: RequestContext,
  ): Promise<{ readonly bytes: Uint8Array; readonly headers: AnswerHeaders }> {
    const { place, signal } = context;
    using _place = await this.#session.gate.document(signal);
    return await this.#session.retrying(signal, async () => {
      const answer = await this.#open(call, context);
      try {
        requireMediaType(answer, call.accept, place);
      } catch (thrown) {
        answer.body.close();
        throw thrown;
      }
      const bytes = await this.#session.whole(answer, documentMaxBytes, "a document", place, textBody);
      const error = errorInDocument(bytes, this.#seen(place));
      if (error !== undefined) throw error;
      return { bytes, headers: answer.headers };
    });
  }

  /**
   * The decoded bytes of a row answer as they come; none for 204, which is reported. Retries until the first byte is
   * out, never after.
   */
  async *rows(
    call: RestCall,
    context: RequestContext,
    onBody: RowRequest["onBody"],
    onNoContent: () => void,
  ): AsyncGenerator<Uint8Array, undefined> {
    const { place, signal } = context;
    using _place = await this.#session.gate.rows(signal);
    await using answer = await this.openRows(call, context, this.#session.rowRate(place, onBody));
    if (answer.status === 204) onNoContent();
    yield* answer.chunks();
  }

  /** The same including headers, for callers that already have a place among the row answers. */
  async openRows(call: RestCall, context: RequestContext, rate: RowRate): Promise<OpenRows> {
    const { place, signal } = context;
    const { answer, watch, chunks, first } = await this.#session.retrying(signal, async () => {
      const answer = await this.#open(call, context, 204);
      const watch = rate.watch(answer.body);
      try {
        if (answer.status !== 204) {
          await this.#refuseErrorDocument(answer, call, place);
          requireMediaType(answer, call.accept, place);
          this.#session.requireFraming(answer, "rows", place);
        }
        const chunks = untilErrorLine(textBody(answer, place), this.#seen(place));
        return { answer, watch, chunks, first: await chunks.next() };
      } catch (thrown) {
        watch[Symbol.dispose]();
        answer.body.close();
        throw thrown;
      }
    });
    return {
      status: answer.status,
      headers: answer.headers,
      async *chunks() {
        for (let step = first; !step.done; step = await chunks.next()) yield step.value;
        return undefined;
      },
      [Symbol.asyncDispose]: async () => {
        try {
          await chunks.return(undefined);
        } finally {
          answer.body.close();
          watch[Symbol.dispose]();
        }
      },
    };
  }

  /** Throws the error in a document that came instead of rows. */
  async #refuseErrorDocument(answer: Answer, { accept }: RestCall, place: ErrorPlace): Promise<void> {
    const type = mediaType(answer);
    if (type !== "application/json" || accept.includes(type)) return;
    const error = errorInJson(await readErrorJson(answer, place), this.#seen(place));
    if (error !== undefined) throw error;
  }

  #seen(place: ErrorPlace): ErrorSeen {
    return { reading: this.#errors, scrubber: this.#session.scrubber, place };
  }

  /**
   * One attempt: an answer with status 200, or another accepted one, after at most three redirects within the origin.
   */
  async #open(call: RestCall, context: RequestContext, also?: number): Promise<Answer> {
    const { place } = context;
    const { method, body } = call;
    const headers: Record<string, string> = { accept: call.accept.join(", ") };
    if (body !== undefined) headers["content-type"] = "application/json";
    let target = (call.isFromOrigin === true ? "" : this.#session.address.basePath) + call.path;
    for (let hops = 0; ; hops += 1) {
      const answer = await this.#session.send(
        { method, path: target, headers, withKeys: true, ...(body === undefined ? {} : { body }) },
        context,
      );
      if (answer.status === 200 || answer.status === also) return answer;
      try {
        if (!redirects.has(answer.status) || (method === "POST" && answer.status < 307))
          throw await errorFromAnswer(answer, this.#errors, this.#session.scrubber, place);
        if (hops === maxRedirects)
          throw refused(`more than ${maxRedirects} redirects`, answer, place, redirected);
        target = this.#redirectTarget(target, answer, place);
      } finally {
        answer.body.close();
      }
    }
  }

  /** A redirect's target as a path: the origin, and so who gets the token, stays the same. */
  #redirectTarget(from: string, answer: Answer, place: ErrorPlace): string {
    const { origin } = this.#session.address;
    const location = answer.headers.location;
    const base = origin + from;
    if (location === undefined || !URL.canParse(location, base)) {
      throw refused("a redirect without a valid Location", answer, place, redirected);
    }
    const target = new URL(location, base);
    if (target.origin !== origin) {
      throw refused(`a redirect to another origin, ${target.origin}`, answer, place, redirected);
    }
    return target.pathname + target.search;
  }
}

const redirected = {
  hint: "Set --gateway or RUNVAULT_GATEWAY to the final address: at most three redirects are followed, and none to another origin.",
};
