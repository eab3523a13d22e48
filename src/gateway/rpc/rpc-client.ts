import {
  create,
  type DescMessage,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { contentTypeUnaryProto, requestHeader } from "@connectrpc/connect/protocol-connect";
import { type ErrorCode, RunvaultError } from "../../model/error.ts";
import { timerMs } from "../../model/retry/deadline.ts";
import type { RpcContract } from "../contract.ts";
import { statusHints } from "../http/error-answer.ts";
import {
  documentMaxBytes,
  type HttpSession,
  type RequestContext,
  requireMediaType,
} from "../http/http-session.ts";
import type { RowRate } from "../http/row-rate.ts";
import { keepOnce } from "../keep-once.ts";
import { errorFromRpcAnswer } from "./rpc-error.ts";

/** One call: the method and the bytes of its request. */
export interface RpcCall {
  readonly method: DescMethodUnary;
  readonly request: Uint8Array;
  /** Whether the request carries a page token, which may be refused. */
  readonly withToken: boolean;
  /** An answer longer than this is `limit_exceeded`. */
  readonly mostBytes: number;
  /** What the answer is held to where it is a page of rows. */
  readonly rate?: RowRate;
}

/**
 * Unary Connect with binary protobuf over a gateway's connections, by requests of our own: so RPC has the
 * timeouts, proxies, certificates, retries and counts that REST has, and a page's bytes come as they are.
 */
export class RpcClient {
  readonly #session: HttpSession;
  readonly #contract: RpcContract;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #prefix: (signal: AbortSignal) => Promise<string>;

  constructor(session: HttpSession, contract: RpcContract) {
    this.#session = session;
    this.#contract = contract;
    const { headersTimeoutMs, documentTimeoutMs } = session.options;
    // how long the client waits in all: whoever answers later answers nobody
    const timeoutMs = timerMs(headersTimeoutMs + documentTimeoutMs);
    this.#headers = Object.fromEntries(requestHeader("unary", true, timeoutMs, undefined, false));
    this.#prefix = keepOnce(() => this.#findPrefix());
  }

  /**
   * Finds where HistoryService answers: under the base address, or else at the origin. Throws `route_not_found` or
   * `not_a_gateway` where it does not, and whatever else keeps from knowing.
   */
  async find(signal: AbortSignal): Promise<void> {
    await this.#prefix(signal);
  }

  /** One method's answer as its message. Throws as RPC errors go, `history_query_failed` for what does not decode. */
  async unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    context: RequestContext,
  ): Promise<MessageShape<O>> {
    const prefix = await this.#prefix(context.signal);
    return await this.#unary(prefix, method, request, context);
  }

  /** One attempt at a call, without retries: the answer's bytes; none for 204, as an empty message has none. */
  async call(call: RpcCall, context: RequestContext): Promise<Buffer> {
    return await this.#call(await this.#prefix(context.signal), call, context, 204);
  }

  /** Name of a method in addresses. */
  static pathOf({ parent, name }: DescMethodUnary): string {
    return `/${parent.typeName}/${name}`;
  }

  async #findPrefix(): Promise<string> {
    const { basePath, label, origin } = this.#session.address;
    const { datasource } = this.#contract.methods;
    using scope = this.#session.scope(undefined);
    const ask = async (prefix: string, url: string) => {
      const place = { url: url + RpcClient.pathOf(datasource) };
      await this.#unary(prefix, datasource, {}, { place, signal: scope.signal });
      return prefix;
    };
    try {
      return await ask(basePath, label);
    } catch (thrown) {
      if (!isNotThere(thrown) || basePath === "") throw thrown;
    }
    try {
      return await ask("", origin);
    } catch (thrown) {
      if (!(thrown instanceof RunvaultError) || !closedDoors.has(thrown.code)) throw thrown;
      throw new RunvaultError(
        "route_not_found",
        `there is no RPC under the base address, and at the origin it is refused (${thrown.code})`,
        { cause: thrown, place: thrown.place, hint: statusHints.route_not_found! },
      );
    }
  }

  async #unary<I extends DescMessage, O extends DescMessage>(
    prefix: string,
    method: DescMethodUnary<I, O>,
    init: MessageInitShape<I>,
    context: RequestContext,
  ): Promise<MessageShape<O>> {
    const { place, signal } = context;
    const request = toBinary(method.input, create(method.input, init));
    using _place = await this.#session.gate.document(signal);
    return await this.#session.retrying(signal, async () => {
      const call = { method, request, withToken: false, mostBytes: documentMaxBytes };
      const bytes = await this.#call(prefix, call, context);
      try {
        return fromBinary(method.output, bytes);
      } catch (cause) {
        throw new RunvaultError(
          "history_query_failed",
          "the answer cannot be decoded as the message it should be",
          {
            cause,
            place,
            hint: "Look at the gateway and at any proxy in front of it: answers are damaged, or differ from the contract in proto/.",
          },
        );
      }
    });
  }

  async #call(prefix: string, call: RpcCall, context: RequestContext, empty?: number): Promise<Buffer> {
    const { place } = context;
    const path = prefix + RpcClient.pathOf(call.method);
    const request = { method: "POST", path, headers: this.#headers, body: call.request } as const;
    const answer = await this.#session.send(request, context);
    try {
      if (answer.status === empty) return Buffer.alloc(0);
      if (answer.status !== 200) {
        const { scrubber } = this.#session;
        throw await errorFromRpcAnswer(answer, this.#contract, call.withToken, scrubber, place);
      }
      requireMediaType(answer, [contentTypeUnaryProto], place);
      this.#session.requireFraming(answer, "a message", place);
      using _watch = call.rate?.watch(answer.body);
      return await this.#session.whole(answer, call.mostBytes, "a message", place);
    } finally {
      answer.body.close();
    }
  }
}

/** What the origin may say that is another application's, with a log-in of its own. */
const closedDoors: ReadonlySet<ErrorCode> = new Set([
  "unauthenticated",
  "permission_denied",
  "misdirected",
  "refused",
]);

/** Whether an error says that the interface asked for is not offered there, rather than out of reach or closed. */
export function isNotThere(thrown: unknown): boolean {
  return (
    thrown instanceof RunvaultError && (thrown.code === "route_not_found" || thrown.code === "not_a_gateway")
  );
}
