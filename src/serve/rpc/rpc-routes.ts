import type { IncomingMessage } from "node:http";
import type { Message } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ConnectRouterOptions,
  createConnectRouter,
  createContextValues,
  type HandlerContext,
  type Interceptor,
} from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { compressionGzip, universalRequestFromNodeRequest } from "@connectrpc/connect-node";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { DatasourceService } from "../../gen/example/gateway/v1/datasource_service_pb.ts";
import { DiscoveryService } from "../../gen/example/gateway/v1/discovery_service_pb.ts";
import { GatewayService } from "../../gen/example/gateway/v1/gateway_service_pb.ts";
import { InstanceService } from "../../gen/example/gateway/v1/instance_service_pb.ts";
import { RuntimeService } from "../../gen/example/gateway/v1/runtime_service_pb.ts";
import { HistoryService } from "../../gen/example/history/v1/history_service_pb.ts";
import type { ControlPlane } from "../../model/control.ts";
import { RunvaultError } from "../../model/error.ts";
import { refuseUnlessAllowed, requestScope, requireCaller } from "../auth/request-scope.ts";
import {
  datasourceService,
  discoveryService,
  type GatewayServiceOptions,
  gatewayService,
  instanceService,
  runtimeService,
} from "../control/control-services.ts";
import { connectError, isForOwner } from "../envelope.ts";
import { type HistoryServiceOptions, historyService } from "../history/history-service.ts";
import { finishAnswer } from "../history/send-rows.ts";
import { cutDeadline } from "../http/client-deadline.ts";
import { givenQueryOf, pathOf } from "../http/request-target.ts";
import { answerOf, misdirectedAnswer, unreadAnswer } from "../http/unread-request.ts";
import type { QuerySlots } from "../monitoring/query-slots.ts";
import type { RequestLogEntry } from "../monitoring/request-log.ts";
import type { SentAnswer } from "../wire-hook.ts";
import { type RpcCall, rpcCallKey } from "./rpc-call.ts";

export interface RpcOptions extends HistoryServiceOptions, Omit<GatewayServiceOptions, "control"> {
  readonly control: ControlPlane | undefined;
  /** Host and port of this server, as a client reaches it that sends such a Host header. */
  readonly address: (host: string) => string;
  /** Why no call is answered any more; undefined while calls are. */
  readonly refusal: () => RunvaultError | undefined;
  /** Refuse calls whose token is none of this server's, and those about instances that are not its. */
  readonly hasTokens: boolean;
  /** Taken by calls for rows. */
  readonly slots: QuerySlots | undefined;
  readonly compress: boolean;
  readonly onRequest: ((entry: RequestLogEntry) => void) | undefined;
  readonly onError: (error: RunvaultError) => void;
}

export type RouteOptions = Pick<RpcOptions, "onRequest" | "onError" | "wire">;

// requests are a few ids and numbers; a token is the longest of them
const maxRequestBytes = 64 * 1024;
// below that, compressing saves no time
const compressedBytes = 1024;

/**
 * The services that are offered, as handlers that know nothing of HTTP servers, and of each one for methods that it has
 * not.
 */
export function rpcHandlers(options: RpcOptions): readonly UniversalHandler[] {
  const { control, hasTokens, slots } = options;
  const gate = ({ service }: Pick<HandlerContext, "service">) => {
    const refused = options.refusal();
    if (refused !== undefined) throw connectError(planeOf(service), refused);
    if (!hasTokens) return;
    try {
      requireCaller(requestScope.getStore()?.caller);
    } catch (error) {
      throw connectError(planeOf(service), RunvaultError.from(error));
    }
  };
  const common: ConnectRouterOptions = {
    // there are clients that compress every request; answers are another matter
    acceptCompression: [compressionGzip],
    compressMinBytes: options.compress ? compressedBytes : Number.POSITIVE_INFINITY,
    readMaxBytes: maxRequestBytes,
    // a misspelt filter that is ignored gives rows that were not asked for
    jsonOptions: { ignoreUnknownFields: false },
    interceptors: [errorsOnWire(options.onError), withinBounds(hasTokens, slots)],
  };
  const router = createConnectRouter({ ...common, requestGate: gate });
  router.service(HistoryService, historyService(options));
  router.service(GatewayService, gatewayService(options));
  router.service(DiscoveryService, discoveryService(control, options.address));
  router.service(DatasourceService, datasourceService(options));
  if (control !== undefined) {
    router.service(InstanceService, instanceService(control));
    router.service(RuntimeService, runtimeService(control));
  }
  return [...router.handlers, ...unknownMethods(router.handlers, common, gate)];
}

/** A handler of each service for whatever method it does not have: `unimplemented`, before a message is read. */
function unknownMethods(
  known: readonly UniversalHandler[],
  common: ConnectRouterOptions,
  gate: (context: HandlerContext) => void,
): UniversalHandler[] {
  const router = createConnectRouter({
    ...common,
    requestGate: (context) => {
      gate(context);
      throw new ConnectError(`${context.service.typeName} has no such method`, Code.Unimplemented);
    },
  });
  return [...new Set(known.map(({ service }) => service))].map((service) => {
    router.service(service, {});
    return Object.assign(router.handlers.at(-1)!, { requestPath: `/${service.typeName}/*` });
  });
}

/**
 * The handlers as routes, each at its own path. The response is written here and not by connect-node, so that it is in
 * the request log before the client sees its end, and so that its bytes can be changed.
 */
export function rpcRoutes(
  app: FastifyInstance,
  handlers: readonly UniversalHandler[],
  options: RouteOptions,
): void {
  // bodies are for the handlers to read
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _payload, done) => done(null));
  for (const handler of handlers) {
    app.all(handler.requestPath, { config: { doc: "rpc" } }, (request, reply) =>
      answerCall(handler, options, request, reply),
    );
  }
}

async function answerCall(
  handler: UniversalHandler,
  { onRequest, onError, wire }: RouteOptions,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  reply.hijack();
  const response = reply.raw;
  const call: RpcCall = {};
  const values = createContextValues().set(rpcCallKey, call);
  try {
    nameHost(request.raw);
    const asked = universalRequestFromNodeRequest(request.raw, response, undefined, values);
    cutDeadline(asked.header);
    const given = await answerOf(handler, asked);
    const heard = call.isRead === true ? given : unreadAnswer(given);
    const made = request.scope?.refusal?.code === "misdirected" ? misdirectedAnswer(heard) : heard;
    const { asked: what, rows } = call;
    const accepted = String(request.headers["accept-encoding"] ?? "");
    const plain: SentAnswer = { ...made, ending: "whole" };
    const sent = what === undefined ? plain : (wire?.answer(what, rows, accepted, made) ?? plain);
    const { header, body, ending } = sent;
    onRequest?.({
      method: request.method,
      path: pathOf(request),
      query: givenQueryOf(request),
      status: made.status,
      ending: response.destroyed ? "left" : ending,
      rows: rows ?? 0,
      bytes: body.length,
      ...call.noted,
    });
    // of a body that the handler gave up in the middle Node reads no more, and so no request behind it over HTTP/1.1
    const isGivenUp = request.raw.destroyed && !request.raw.complete;
    if (isGivenUp && request.raw.httpVersionMajor === 1) response.setHeader("connection", "close");
    response.writeHead(made.status, Object.fromEntries(header));
    response.write(body);
    if (heard.trailer !== undefined) response.addTrailers(Object.fromEntries(heard.trailer));
    await finishAnswer(response, ending);
  } catch (error) {
    // nobody else ends a hijacked answer
    response.destroy();
    onError(RunvaultError.from(error));
  }
  return reply;
}

/**
 * connect-es makes a URL of the host, which over HTTP/2 has a header of its own, and fails where that is none. Which
 * host is answered was decided ahead of that.
 */
function nameHost({ headers }: IncomingMessage): void {
  const authority = headers[":authority"];
  headers.host ??= String(authority ?? "");
  if (!URL.canParse(`http://${headers.host}`)) headers.host = "localhost";
  if (authority !== undefined) headers[":authority"] = headers.host;
}

/** Errors of the services as Connect errors with the code of their plane; fields that no message has are errors too. */
function errorsOnWire(onError: (error: RunvaultError) => void): Interceptor {
  return (next) => async (request) => {
    request.contextValues.get(rpcCallKey).isRead = true;
    try {
      if (!request.stream) refuseUnknownFields(request.message);
      return await next(request);
    } catch (thrown) {
      if (thrown instanceof ConnectError) throw thrown;
      // what ended the call says more than what came of it: the deadline, or that the client left
      if (request.signal.aborted) throw ConnectError.from(request.signal.reason, Code.Canceled);
      const error = RunvaultError.from(thrown);
      if (isForOwner(error)) onError(error);
      throw connectError(planeOf(request.service), error);
    }
  };
}

/** Calls only about instances that are the token's, and only so many for rows at a time. */
function withinBounds(hasTokens: boolean, slots: QuerySlots | undefined): Interceptor {
  return (next) => async (request) => {
    if (request.stream) return await next(request);
    const { message } = request;
    if (hasTokens) {
      const caller = requireCaller(requestScope.getStore()?.caller);
      const instanceId = namedInstance(message);
      if (instanceId !== "") refuseUnlessAllowed(caller, instanceId);
    }
    // scans for checksums have a limit of their own
    const isFacts =
      request.method.name === "GetStorageFacts" && !("withChecksum" in message && message.withChecksum);
    const isQuery = "selection" in message || isFacts;
    using _slot = isQuery ? slots?.take() : undefined;
    return await next(request);
  };
}

/** The instance that a request names, itself or in its selection; empty where it names none. */
function namedInstance(message: Message): string {
  if ("instanceId" in message) return String(message.instanceId);
  return "selection" in message && message.selection ? namedInstance(message.selection as Message) : "";
}

function refuseUnknownFields(message: Message): void {
  const numbers = message.$unknown?.map(({ no }) => no) ?? [];
  if (numbers.length > 0) {
    throw new RunvaultError(
      "invalid_argument",
      `${message.$typeName} has no field number ${numbers.join(" or ")}`,
    );
  }
  if ("selection" in message && message.selection !== undefined) {
    refuseUnknownFields(message.selection as Message);
  }
}

function planeOf({ typeName }: { typeName: string }): "history" | "control" {
  return typeName === HistoryService.typeName ? "history" : "control";
}
