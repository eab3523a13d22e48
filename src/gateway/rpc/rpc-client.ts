import {
  create,
  type DescMessage,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { type ErrorCode, RunvaultError } from "../../model/error.ts";
import { statusHints } from "../http/error-answer.ts";
import { documentMaxBytes, type HttpSession, type RequestContext } from "../http/http-session.ts";
import { keepOnce } from "../keep-once.ts";
import { methodPath, type RpcCall, type RpcExchange } from "./rpc-exchange.ts";

/**
 * Unary calls with binary protobuf over a gateway's connections. With our own requests, RPC has the same timeouts,
 * proxies, certificates, retries and counts as REST, and a page's bytes arrive unchanged.
 */
export class RpcClient {
  readonly #session: HttpSession;
  readonly #exchange: RpcExchange;
  readonly #prefix: (signal: AbortSignal) => Promise<string>;

  /** `where` is the path below which methods are, or a method without fields that finds it out. */
  constructor(session: HttpSession, exchange: RpcExchange, where: string | DescMethodUnary) {
    this.#session = session;
    this.#exchange = exchange;
    this.#prefix =
      typeof where === "string" ? () => Promise.resolve(where) : keepOnce(() => this.#findPrefix(where));
  }

  /**
   * Finds where HistoryService answers: under the base address, or else at the origin. Throws `route_not_found` or
   * `not_a_gateway` if nowhere, and any error that prevents finding out.
   */
  async find(signal: AbortSignal): Promise<void> {
    await this.#prefix(signal);
  }

  /**
   * A method's answer as its message. Throws RPC errors, and `history_query_failed` for an answer that cannot be
   * decoded.
   */
  async unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    context: RequestContext,
  ): Promise<MessageShape<O>> {
    return await this.document(method, toBinary(method.input, create(method.input, request)), context);
  }

  /** The same for a request's bytes. */
  async document<O extends DescMessage>(
    method: DescMethodUnary<DescMessage, O>,
    request: Uint8Array,
    context: RequestContext,
  ): Promise<MessageShape<O>> {
    return await this.#unary(await this.#prefix(context.signal), method, request, context);
  }

  /** One attempt at a call, without retries: the answer's bytes; none for 204, which means an empty message. */
  async call(call: RpcCall, context: RequestContext): Promise<Buffer> {
    return await this.#exchange(await this.#prefix(context.signal), call, context, 204);
  }

  async #findPrefix(probe: DescMethodUnary): Promise<string> {
    const { basePath, label, origin } = this.#session.address;
    using scope = this.#session.scope(undefined);
    const ask = async (prefix: string, url: string) => {
      const place = { url: url + methodPath(probe) };
      // a page of HTML may mean that only REST is here
      const again = (error: RunvaultError) => error.retry === "again" && !isNotThere(error);
      await this.#unary(prefix, probe, new Uint8Array(0), { place, signal: scope.signal }, again);
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

  async #unary<O extends DescMessage>(
    prefix: string,
    method: DescMethodUnary<DescMessage, O>,
    request: Uint8Array,
    context: RequestContext,
    again?: (error: RunvaultError) => boolean,
  ): Promise<MessageShape<O>> {
    const { place, signal } = context;
    using _place = await this.#session.gate.document(signal);
    const attempt = async () => {
      const call = { method, request, withToken: false, mostBytes: documentMaxBytes };
      const bytes = await this.#exchange(prefix, call, context);
      try {
        return fromBinary(method.output, bytes);
      } catch (cause) {
        throw new RunvaultError(
          "history_query_failed",
          "the answer cannot be decoded as the expected message",
          {
            cause,
            place,
            hint: "Check the gateway and any proxy in front of it: answers are damaged, or differ from the contract in proto/.",
          },
        );
      }
    };
    return await this.#session.retrying(signal, attempt, again);
  }
}

/** Codes that another application at the origin, with its own log-in, may return. */
const closedDoors: ReadonlySet<ErrorCode> = new Set([
  "unauthenticated",
  "permission_denied",
  "misdirected",
  "refused",
]);

/** Whether an error means that this interface is not offered there, rather than unreachable or closed. */
export function isNotThere(thrown: unknown): boolean {
  return (
    thrown instanceof RunvaultError && (thrown.code === "route_not_found" || thrown.code === "not_a_gateway")
  );
}
