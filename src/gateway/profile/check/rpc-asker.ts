import { randomUUID } from "node:crypto";
import { fromBinary } from "@bufbuild/protobuf";
import { type ErrorPlace, RunvaultError } from "../../../model/error.ts";
import type { FilterName } from "../../../model/profile/table.ts";
import { planMessage } from "../../../row/wire/json-plan.ts";
import { JsonTranscoder } from "../../../row/wire/json-transcoder.ts";
import { indexPage } from "../../../row/wire/page-index.ts";
import type { HttpSession } from "../../http/http-session.ts";
import { type ProfileRpc, profileRpcClient } from "../../rpc/profile-rpc-client.ts";
import { documentBytes } from "../../rpc/rpc-documents.ts";
import type { RpcProfile, RpcRequest, RpcRoute } from "../profile.ts";
import { requestMessage } from "../rpc/request-message.ts";
import { type AskedFor, type Asker, type CheckedRequest, NoMoreRequests, type Told } from "./asker.ts";
import { listOf, protobufType } from "./rpc-requests.ts";

/** Enough for a page with one row of the largest size. */
const mostBytes = 17 * 1024 * 1024;
const mostRows = 100_000;

/**
 * Sends a profile's RPC requests to its gateway, and counts them. Answers are shown as the JSON of their message, with
 * rows as the normaliser gets them.
 */
export class RpcAsker implements Asker {
  readonly #session: HttpSession;
  readonly #profile: RpcProfile;
  readonly #rpc: ProfileRpc;
  readonly #signal: AbortSignal;
  #left: number;
  requests = 0;

  /** Sends at most `most` requests. */
  constructor(
    session: HttpSession,
    profile: RpcProfile,
    signal: AbortSignal,
    most = Number.POSITIVE_INFINITY,
  ) {
    this.#session = session;
    this.#profile = profile;
    this.#rpc = profileRpcClient(session, profile);
    this.#signal = signal;
    this.#left = most;
  }

  ofTable(most: number): RpcAsker {
    return new RpcAsker(this.#session, this.#profile, this.#signal, most);
  }

  get unauthenticatedHint(): string {
    return this.#session.unauthenticatedHint;
  }

  async ask(
    { path, rpc }: CheckedRequest,
    asked: AskedFor,
    _accept: string,
    place: ErrorPlace,
  ): Promise<Told> {
    if (rpc === undefined) throw new RunvaultError("internal", "a REST request cannot be sent over RPC");
    const request = messageOf(rpc, asked, place);
    if (this.#left < 1) throw new NoMoreRequests();
    this.#left -= 1;
    this.requests += 1;
    const { client, prefix } = this.#rpc;
    using scope = this.#session.scope(this.#signal);
    const { signal } = scope;
    return await this.#session.retrying(signal, async () => {
      const seen = {
        request: this.#session.scrubber.scrub(`POST ${prefix}${path}`),
        mediaType: protobufType,
        headers: {},
        cut: false,
      };
      try {
        const call = { method: rpc.method, request, withToken: false, mostBytes };
        const bytes = await client.call(call, { place, signal });
        return { ...seen, status: 200, text: textOf(rpc, bytes) };
      } catch (thrown) {
        const status = refusedStatus(thrown);
        if (status === undefined) throw withProtocol(thrown, this.#profile, place);
        const refusal = (thrown as RunvaultError).message.replace(/^the gateway answered /, "");
        return { ...seen, status, text: refusal, refusal };
      }
    });
  }

  follow(_address: string, _from: Told, _accept: string, place: ErrorPlace): Promise<Told> {
    // pages over RPC use only tokens
    return Promise.reject(
      new RunvaultError("internal", "there are no addresses to follow over RPC", { place }),
    );
  }
}

function messageOf(rpc: RpcRequest, asked: AskedFor, place: ErrorPlace): Uint8Array {
  const message = requestMessage(rpc, {
    instanceId: asked.instance,
    runId: asked.run,
    bounds: { from: asked.from, to: asked.to },
    limit: asked.limit,
    token: asked.more?.find(([name]) => name === rpc.places.token?.join("."))?.[1],
    filters: Object.entries(asked.filters ?? {}) as [FilterName, string][],
  });
  if (message instanceof Uint8Array) return message;
  const { typeName } = rpc.method.input;
  throw new RunvaultError("invalid_argument", `the request does not fit ${typeName}: ${message.message}`, {
    place,
    hint: "An id or a time may be too large for the field that the profile names.",
  });
}

/** Adds to a connection error that the gateway may speak the other protocol. */
function withProtocol(thrown: unknown, { protocol }: RpcProfile, place: ErrorPlace): unknown {
  if (!(thrown instanceof RunvaultError) || thrown.code !== "not_a_gateway") return thrown;
  const other = protocol === "grpc" ? "connect" : "grpc";
  return new RunvaultError("not_a_gateway", thrown.message, {
    place,
    cause: thrown,
    hint: `${thrown.hint ?? "Check the address."} If the gateway speaks ${other}, write \`protocol: ${other}\`.`,
    ...(thrown.status === undefined ? {} : { status: thrown.status }),
  });
}

/** The HTTP status of a refusal; undefined for anything else, or if a retry may help. */
function refusedStatus(thrown: unknown): number | undefined {
  if (!(thrown instanceof RunvaultError) || thrown.status === undefined || thrown.status < 400)
    return undefined;
  const isBusy = thrown.code === "rate_limited" || thrown.status === 503;
  return isBusy || thrown.code === "not_a_gateway" || thrown.code === "stream_cut"
    ? undefined
    : thrown.status;
}

function textOf(rpc: RpcRequest, bytes: Uint8Array): string {
  const { output } = rpc.method;
  let text: string;
  try {
    text = Buffer.from(documentBytes(output, fromBinary(output, bytes), "foreign")).toString("utf8");
  } catch (cause) {
    if (cause instanceof RunvaultError) throw cause;
    throw new RunvaultError("history_query_failed", `the answer is not a ${output.typeName}`, {
      cause,
      hint: "The descriptor set may be older than the gateway: make it again.",
    });
  }
  return isRoute(rpc) ? withRows(text, rpc, bytes) : text;
}

function isRoute(rpc: RpcRequest): rpc is RpcRoute {
  return "layout" in rpc;
}

/** The answer's JSON, with rows as the normaliser gets them. */
function withRows(text: string, route: RpcRoute, bytes: Uint8Array): string {
  const whole = JSON.parse(text) as Record<string, unknown>;
  let here = whole;
  const path = listOf(route);
  for (const name of path.slice(0, -1)) {
    const inside = Object.hasOwn(here, name) ? here[name] : undefined;
    const next = typeof inside === "object" && inside !== null ? (inside as Record<string, unknown>) : {};
    here[name] = next;
    here = next;
  }
  // a mark that no answer can contain
  const mark = randomUUID();
  here[path.at(-1)!] = mark;
  return JSON.stringify(whole).replace(JSON.stringify(mark), () => `[${rowTexts(route, bytes)}]`);
}

function rowTexts({ layout, row }: RpcRoute, bytes: Uint8Array): string {
  const read = planMessage(row);
  // a profile with such a message does not load
  if ("unreadable" in read) throw new RunvaultError("internal", `${row.typeName} cannot be read`);
  const steps = new JsonTranscoder(read.plan).transcode(indexPage(bytes, layout, mostRows));
  for (;;) {
    const step = steps.next();
    if (!step.done) continue;
    return Buffer.concat(step.value.chunks).toString("utf8").trimEnd().replaceAll("\n", ",");
  }
}
