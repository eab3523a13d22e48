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
  /** This server's host and port, as a client with such a Host header reaches it. */
  readonly address: (host: string) => string;
  /** Why calls are no longer answered; undefined while they are. */
  readonly refusal: () => RunvaultError | undefined;
  /** Refuse calls with an invalid token, and those about instances outside of it. */
  readonly hasTokens: boolean;
  /** Taken by calls for rows. */
  readonly slots: QuerySlots | undefined;
  readonly compress: boolean;
  readonly onRequest: ((entry: RequestLogEntry) => void) | undefined;
  readonly onError: (error: RunvaultError) => void;
}

export type RouteOptions = Pick<RpcOptions, "onRequest" | "onError" | "wire">;

// requests are a few ids and numbers; a token is the longest part
const maxRequestBytes = 64 * 1024;
// below this, compression saves no time
const compressedBytes = 1024;

/** Handlers of the services, independent of HTTP servers, and one for each service's unknown methods. */
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
    // some clients compress every request; answers are a separate question
    acceptCompression: [compressionGzip],
    compressMinBytes: options.compress ? compressedBytes : Number.POSITIVE_INFINITY,
    readMaxBytes: maxRequestBytes,
    // ignoring a misspelt filter would return the wrong rows
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

/** A handler per service for unknown methods: `unimplemented`, before the message is read. */
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
 * The handlers as routes, each at its path. The response is written here rather than by connect-node: it must be
 * logged before the client sees its end, and its bytes can be changed.
 */
export function rpcRoutes(
  app: FastifyInstance,
  handlers: readonly UniversalHandler[],
  options: RouteOptions,
): void {
  // the handlers read bodies themselves
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
    // if the handler stopped reading a body, Node reads no further request on this HTTP/1.1 connection
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
 * connect-es builds a URL from the host, which in HTTP/2 has a different header, and fails without one. Whether the
 * host is answered was decided before.
 */
function nameHost({ headers }: IncomingMessage): void {
  const authority = headers[":authority"];
  headers.host ??= String(authority ?? "");
  if (!URL.canParse(`http://${headers.host}`)) headers.host = "localhost";
  if (authority !== undefined) headers[":authority"] = headers.host;
}

/** Turns errors of the services into Connect errors with their plane's code; unknown fields are errors too. */
function errorsOnWire(onError: (error: RunvaultError) => void): Interceptor {
  return (next) => async (request) => {
    request.contextValues.get(rpcCallKey).isRead = true;
    try {
      if (!request.stream) refuseUnknownFields(request.message);
      return await next(request);
    } catch (thrown) {
      if (thrown instanceof ConnectError) throw thrown;
      // the reason for ending the call says more than the error: the deadline, or that the client left
      if (request.signal.aborted) throw ConnectError.from(request.signal.reason, Code.Canceled);
      const error = RunvaultError.from(thrown);
      if (isForOwner(error)) onError(error);
      throw connectError(planeOf(request.service), error);
    }
  };
}

/** Limits calls to the token's instances, and the number of simultaneous row calls. */
function withinBounds(hasTokens: boolean, slots: QuerySlots | undefined): Interceptor {
  return (next) => async (request) => {
    if (request.stream) return await next(request);
    const { message } = request;
    if (hasTokens) {
      const caller = requireCaller(requestScope.getStore()?.caller);
      const instanceId = namedInstance(message);
      if (instanceId !== "") refuseUnlessAllowed(caller, instanceId);
    }
    // checksum scans have a separate limit
    const isFacts =
      request.method.name === "GetStorageFacts" && !("withChecksum" in message && message.withChecksum);
    const isQuery = "selection" in message || isFacts;
    using _slot = isQuery ? slots?.take() : undefined;
    return await next(request);
  };
}

/** The instance that a request names, itself or in its selection; empty for none. */
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
