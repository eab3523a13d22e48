import type { ErrorPlace } from "../../model/error.ts";
import type { GatewayContract } from "../contract.ts";
import type { Answer } from "../http/answer.ts";
import { decodedBody } from "../http/decode.ts";
import { errorFromAnswer } from "../http/error-answer.ts";
import {
  documentMaxBytes,
  type HttpSession,
  type RequestContext,
  refused,
  requireMediaType,
} from "../http/http-session.ts";

const maxRedirects = 3;
const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** GET over a gateway's connections: redirects, errors, media types, sizes. */
export class RestClient {
  readonly #session: HttpSession;
  readonly #contract: GatewayContract;

  constructor(session: HttpSession, contract: GatewayContract) {
    this.#session = session;
    this.#contract = contract;
  }

  /**
   * A whole document's bytes, decoded. A cut is retried like any other failure: nothing was handed out yet.
   * Throws `limit_exceeded` above 16 MiB, `timeout` where it takes too long as a whole, `not_a_gateway` for another
   * media type.
   */
  async document(path: string, context: RequestContext): Promise<Uint8Array> {
    const { place, signal } = context;
    using _place = await this.#session.gate.document(signal);
    const accept = this.#contract.mediaTypes.document;
    return await this.#session.retrying(signal, async () => {
      const answer = await this.#open(path, accept, context);
      try {
        requireMediaType(answer, accept, place);
      } catch (thrown) {
        answer.body.close();
        throw thrown;
      }
      return await this.#session.whole(answer, documentMaxBytes, "a document", place);
    });
  }

  /** The bytes of a row answer as they come, decoded; none for 204. Retries until the first byte is out, never after. */
  async *rows(path: string, context: RequestContext): AsyncGenerator<Uint8Array, undefined> {
    const { place, signal } = context;
    using _place = await this.#session.gate.rows(signal);
    const accept = this.#contract.mediaTypes.rows;
    const rate = this.#session.rowRate(place);
    const { answer, watch, chunks, first } = await this.#session.retrying(signal, async () => {
      const answer = await this.#open(path, accept, context, 204);
      const watch = rate.watch(answer.body);
      try {
        if (answer.status !== 204) {
          requireMediaType(answer, accept, place);
          this.#session.requireFraming(answer, "rows", place);
        }
        const chunks = decodedBody(answer, place);
        return { answer, watch, chunks, first: await chunks.next() };
      } catch (thrown) {
        watch[Symbol.dispose]();
        answer.body.close();
        throw thrown;
      }
    });
    using _watch = watch;
    try {
      for (let step = first; !step.done; step = await chunks.next()) yield step.value;
    } finally {
      await chunks.return(undefined);
      answer.body.close();
    }
  }

  /** One attempt: an answer of status 200, or of another that serves as well, after at most three redirects within the origin. */
  async #open(path: string, accept: string, context: RequestContext, also?: number): Promise<Answer> {
    const { place } = context;
    let target = this.#session.address.basePath + path;
    for (let hops = 0; ; hops += 1) {
      const answer = await this.#session.send(
        { method: "GET", path: target, headers: { accept }, withKeys: true },
        context,
      );
      if (answer.status === 200 || answer.status === also) return answer;
      try {
        if (!redirects.has(answer.status))
          throw await errorFromAnswer(answer, this.#contract, this.#session.scrubber, place);
        if (hops === maxRedirects)
          throw refused(`more than ${maxRedirects} redirects`, answer, place, redirected);
        target = this.#redirectTarget(target, answer, place);
      } finally {
        answer.body.close();
      }
    }
  }

  /** Where a redirect leads, as a path: the origin, and with it who gets the token, stays. */
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
