import { RunvaultError } from "../model/error.ts";
import type { HistorySource, RowRequest, StorageFacts } from "../model/source.ts";
import { builtInRpcContract } from "./contract.ts";
import { describedSource } from "./described-source.ts";
import type { Gateway, GatewaySource } from "./gateway.ts";
import { HttpSession } from "./http/http-session.ts";
import { keepOnce } from "./keep-once.ts";
import type { GatewayOptions } from "./options.ts";
import { restSource } from "./rest/rest-gateway.ts";
import { isNotThere } from "./rpc/rpc-client.ts";
import { type RpcSource, rpcSource } from "./rpc/rpc-gateway.ts";
import type { TransportChoice } from "./transport-choice.ts";

/**
 * Opens a gateway over the chosen transport; sends nothing yet. Disposing it ends everything in progress
 * (`interrupted`). Throws `invalid_argument` for invalid options.
 *
 * `auto` probes both transports before the first answer is needed. If both exist, lists, facts and documents come over
 * RPC, which has all of them, and rows over REST, which streams them; what one lacks comes over the other. If neither
 * exists, it throws REST's error.
 */
export function openGateway(options: GatewayOptions, transport: TransportChoice): Gateway {
  const session = new HttpSession(options);
  const close = () => session[Symbol.asyncDispose]();
  const { profile } = options;
  if (profile !== undefined) {
    return { ...describedSource(session, profile, transport), [Symbol.asyncDispose]: close };
  }
  if (transport === "rest") {
    return { ...restSource(session), [Symbol.asyncDispose]: close };
  }
  const rpc = rpcSource(session, builtInRpcContract);
  if (transport === "rpc") return { ...rpc, [Symbol.asyncDispose]: close };
  return {
    ...autoSource(session, restSource(session), rpc),
    [Symbol.asyncDispose]: close,
  };
}

/** The transports that a gateway offers, at least one. */
interface Offered {
  readonly rest: GatewaySource | undefined;
  readonly rpc: GatewaySource | undefined;
}

function autoSource(session: HttpSession, rest: GatewaySource, rpc: RpcSource): GatewaySource {
  const { address } = session;
  const offered = keepOnce(async (): Promise<Offered> => {
    using scope = session.scope(undefined);
    const [restMissing, rpcMissing] = await Promise.all([
      missing(() => rest.instances(scope.signal)),
      missing(() => rpc.find(scope.signal).catch(rethrowWithWayOut)),
    ]);
    if (restMissing !== undefined && rpcMissing !== undefined) throw restMissing;
    return {
      rest: restMissing === undefined ? rest : undefined,
      rpc: rpcMissing === undefined ? rpc : undefined,
    };
  });

  /** Asks RPC, and REST if RPC has no answer. */
  async function ask<T>(
    signal: AbortSignal | undefined,
    of: (source: GatewaySource) => Promise<T | null>,
  ): Promise<T | null> {
    using scope = session.scope(signal);
    const { rest, rpc } = await offered(scope.signal);
    const answer =
      rpc === undefined ? null : await nullWhereMissing(() => of(rpc), rest !== undefined, session);
    return answer ?? (rest === undefined ? null : await of(rest));
  }

  /** REST's facts, if both exist: `facts` asks RPC first. */
  const otherFacts: NonNullable<HistorySource["otherFacts"]> = async (run, bounds, signal, asked) => {
    using scope = session.scope(signal);
    const { rest, rpc } = await offered(scope.signal);
    if (rest === undefined || rpc === undefined) return null;
    return await nullWhereMissing(() => rest.facts(run, bounds, signal, asked), true, session);
  };

  return {
    label: address.label,
    now: () => session.now(),
    stats: session.stats,
    retriesOf: (run) => session.retriesOf(run),
    reconnect: () => session.reconnect(),
    isNoContentUnclear: (run, table) => session.noContent.isUnclear(run, table),
    listings: async (signal) => {
      using scope = session.scope(signal);
      const { rest, rpc } = await offered(scope.signal);
      const both = [rpc, rest].filter((source) => source !== undefined);
      return (await Promise.all(both.map((source) => source.listings!(signal)))).flat();
    },
    instances: async (signal) => (await ask(signal, (source) => source.instances(signal))) ?? [],
    runs: (instanceId, signal) => ask(signal, (source) => source.runs(instanceId, signal)),
    async facts(run, bounds, signal, asked) {
      const facts = await ask(signal, (source) => source.facts(run, bounds, signal, asked));
      if (facts === null || asked?.withHash !== true || hasHashes(facts)) return facts;
      const others = await otherFacts(run, bounds, signal, asked);
      return others !== null && hasHashes(others) ? others : facts;
    },
    otherFacts,
    document: (run, kind, signal) => ask(signal, (source) => source.document(run, kind, signal)),

    async *rows(request): AsyncGenerator<Uint8Array, void> {
      using scope = session.scope(request.signal);
      const { rest, rpc } = await offered(scope.signal);
      if (rest === undefined) return yield* rowsOf(rpc!, request);
      if (rpc === undefined) return yield* rowsOf(rest, request);
      let began = false;
      try {
        for await (const chunk of rest.rows(request)) {
          began = true;
          yield chunk;
        }
        return;
      } catch (thrown) {
        if (began || !isNotThere(thrown)) throw thrown;
      }
      yield* rowsOf(rpc, request);
    },

    async *pagedRows(request): AsyncGenerator<Uint8Array, void> {
      using scope = session.scope(request.signal);
      const { rpc } = await offered(scope.signal);
      if (rpc === undefined) {
        throw new RunvaultError("route_not_found", "the gateway does not serve rows in pages", {
          place: {
            instance: request.instanceId,
            run: request.runId,
            table: request.table,
            url: address.label,
          },
        });
      }
      yield* rowsOf(rpc, request);
    },
  };
}

function hasHashes(facts: StorageFacts): boolean {
  return [...facts.values()].some(({ rowHash }) => rowHash !== undefined);
}

async function* rowsOf(source: Pick<HistorySource, "rows">, request: RowRequest) {
  yield* source.rows(request);
}

/** Why a transport is missing; undefined if it exists. Throws if that cannot be found out. */
async function missing(probe: () => Promise<unknown>): Promise<unknown> {
  try {
    await probe();
    return undefined;
  } catch (thrown) {
    if (isNotThere(thrown)) return thrown;
    throw thrown;
  }
}

/** An RPC probe may hit a server that answers unknown paths with its own error. */
function rethrowWithWayOut(thrown: unknown): never {
  if (!(thrown instanceof RunvaultError) || thrown.status === undefined || isNotThere(thrown)) throw thrown;
  const { code, message, place, status, retryAfterMs, hint = "" } = thrown;
  throw new RunvaultError(code, message, {
    cause: thrown,
    place,
    status,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    hint: `${hint} If the gateway offers only REST, use --transport rest.`.trimStart(),
  });
}

function nullWhereMissing<T>(
  ask: () => Promise<T | null>,
  mayFall: boolean,
  { notices }: HttpSession,
): Promise<T | null> {
  return ask().catch((thrown: unknown) => {
    if (!mayFall || !isNotThere(thrown)) throw thrown;
    // an answer in another format is not as clear as none
    const { code, message } = thrown as RunvaultError;
    if (code === "not_a_gateway")
      notices.tell(`one transport does not follow the contract and is not used for this: ${message}`);
    return null;
  });
}
