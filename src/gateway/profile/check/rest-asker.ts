import { type ErrorPlace, RunvaultError } from "../../../model/error.ts";
import type { FilterName } from "../../../model/profile/table.ts";
import { decodedBody } from "../../http/decode.ts";
import { codeOfStatus } from "../../http/error-answer.ts";
import { type HttpSession, mediaType } from "../../http/http-session.ts";
import { restCall } from "../../rest/rest-call.ts";
import type { RestRequest } from "../profile.ts";
import { type AskedFor, type Asker, NoMoreRequests, type Told } from "./asker.ts";

/** A longer answer has rows that were not requested. */
const mostBytes = 2 * 1024 * 1024;
const mostRedirects = 3;
const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Sends a profile's REST requests to its gateway, and counts them. */
export class RestAsker implements Asker {
  readonly #session: HttpSession;
  readonly #base: string;
  readonly #signal: AbortSignal;
  #left: number;
  requests = 0;

  /** Sends at most `most` requests. */
  constructor(session: HttpSession, base: string, signal: AbortSignal, most = Number.POSITIVE_INFINITY) {
    this.#session = session;
    this.#base = base;
    this.#signal = signal;
    this.#left = most;
  }

  ofTable(most: number): RestAsker {
    return new RestAsker(this.#session, this.#base, this.#signal, most);
  }

  get left(): number {
    return this.#left;
  }

  get unauthenticatedHint(): string {
    return this.#session.unauthenticatedHint;
  }

  ask(request: RestRequest, asked: AskedFor, accept: string, place: ErrorPlace): Promise<Told> {
    const { instance, run, from, to, limit, filters, more } = asked;
    const { method, path, body } = restCall(
      this.#base,
      request,
      {
        instanceId: instance,
        runId: run,
        bounds: { from, to },
        limit,
        filters: filters === undefined ? [] : (Object.entries(filters) as [FilterName, string][]),
        more: more === undefined ? {} : Object.fromEntries(more),
      },
      [accept],
    );
    return this.#send(method, this.#session.address.basePath + path, body, accept, place);
  }

  async follow(address: string, from: Told, accept: string, place: ErrorPlace): Promise<Told> {
    const { origin } = this.#session.address;
    const base = origin + from.request.replace(/^\w+ /, "");
    const target = URL.canParse(address, base) ? new URL(address, base) : undefined;
    if (target?.origin !== origin) {
      throw new RunvaultError("refused", "the next page is at an address of another server", { place });
    }
    return await this.#send("GET", target.pathname + target.search, undefined, accept, place);
  }

  async #send(
    method: "GET" | "POST",
    path: string,
    body: Uint8Array | undefined,
    accept: string,
    place: ErrorPlace,
  ): Promise<Told> {
    if (this.#left < 1) throw new NoMoreRequests();
    this.#left -= 1;
    this.requests += 1;
    using scope = this.#session.scope(this.#signal);
    const context = { place, signal: scope.signal };
    const headers = { accept, ...(body === undefined ? {} : { "content-type": "application/json" }) };
    return await this.#session.retrying(scope.signal, async () => {
      let target = path;
      for (let hops = 0; ; hops++) {
        const answer = await this.#session.send(
          { method, path: target, headers, withKeys: true, ...(body === undefined ? {} : { body }) },
          context,
        );
        const to = redirects.has(answer.status)
          ? this.#redirectOf(target, answer.headers.location)
          : undefined;
        if (to !== undefined && hops < mostRedirects) {
          answer.body.close();
          target = to;
          continue;
        }
        const busy = codeOfStatus(answer.status);
        if (busy === "rate_limited" || (busy === "server_error" && answer.status === 503)) {
          answer.body.close();
          throw new RunvaultError(busy, `the gateway answered ${answer.status}`, {
            place,
            status: answer.status,
          });
        }
        const { text, cut } = await this.#read(decodedBody(answer, place));
        return {
          request: this.#session.scrubber.scrub(`${method} ${path}`),
          status: answer.status,
          mediaType: mediaType(answer),
          headers: answer.headers,
          text,
          cut,
        };
      }
    });
  }

  async #read(chunks: AsyncGenerator<Buffer, undefined>): Promise<{ text: string; cut: boolean }> {
    const parts: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of chunks) {
      parts.push(chunk);
      bytes += chunk.length;
      // leaving the loop closes the connection
      if (bytes > mostBytes) break;
    }
    const cut = bytes > mostBytes;
    const whole = Buffer.concat(parts);
    // a truncated character is dropped
    return { text: new TextDecoder("utf-8").decode(whole, { stream: cut }), cut };
  }

  #redirectOf(from: string, location: string | undefined): string | undefined {
    const { origin } = this.#session.address;
    if (location === undefined || !URL.canParse(location, origin + from)) return undefined;
    const target = new URL(location, origin + from);
    return target.origin === origin ? target.pathname + target.search : undefined;
  }
}
