import type { IncomingMessage } from "node:http";
import websocket from "@fastify/websocket";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { ControlPlane } from "../../model/control.ts";
import { RunvaultError } from "../../model/error.ts";
import { pathOf } from "../http/request-target.ts";
import type { RequestLogEntry } from "../monitoring/request-log.ts";
import type { ServiceMetrics } from "../monitoring/service-metrics.ts";
import { queryOf } from "../route-doc.ts";
import { closeCode, LiveConnection, type Sent } from "./live-connection.ts";

/** From the contract of ClientFrame. */
const mostFrameBytes = 16 * 1024;
const mostConnections = 64;
/** Time for a client to answer the close of its connection when the server ends. */
const closeMs = 500;

export interface LiveRouteOptions {
  readonly control: ControlPlane;
  readonly metrics: ServiceMetrics;
  readonly onError: (error: RunvaultError) => void;
  readonly onRequest: ((entry: RequestLogEntry) => void) | undefined;
}

/**
 * Whether a request asks for a WebSocket. Other upgrades, such as the `h2c` that some clients always offer, are
 * answered as usual.
 */
export function wantsWebSocket(request: IncomingMessage): boolean {
  return request.headers.upgrade?.toLowerCase() === "websocket";
}

/** Closes the connection with the answer if the router itself refuses an upgrade, because then no hook does. */
export function closeRefusedUpgrade(request: FastifyRequest, reply: FastifyReply): void {
  if (wantsWebSocket(request.raw)) reply.raw.once("finish", () => request.raw.socket.destroySoon());
}

/** Accepts WebSockets on this server. Await it before adding any hook or route. */
export async function acceptWebSockets(app: FastifyInstance): Promise<void> {
  await app.register(websocket, {
    options: { maxPayload: mostFrameBytes, perMessageDeflate: false, autoPong: false },
    preClose: async () => {
      const { clients } = app.websocketServer;
      const gone = [...clients].map((client) => new Promise((resolve) => client.once("close", resolve)));
      for (const client of clients) client.close(closeCode.goingAway, "the server is stopping");
      const late = setTimeout(() => {
        for (const client of clients) client.terminate();
      }, closeMs);
      await Promise.all(gone);
      clearTimeout(late);
    },
  });
  app.addHook("onRequest", async (request) => {
    if (!request.ws || request.is404) return;
    // a GET route has another one for HEAD
    if (request.method !== "GET" || request.routeOptions.config.takesWebSocket !== true) {
      throw new RunvaultError("invalid_argument", "this route does not take a WebSocket");
    }
  });
}

declare module "fastify" {
  interface FastifyContextConfig {
    takesWebSocket?: boolean;
  }
}

/** GET /instances/{id}/ws. Errors about the instance are answered before the upgrade, as on any route. */
export function liveRoute(app: FastifyInstance, options: LiveRouteOptions): void {
  const { control, metrics, onError, onRequest } = options;
  app.route<{ Params: { id: string } }>({
    method: "GET",
    url: "/instances/:id/ws",
    config: {
      takesWebSocket: true,
      doc: {
        summary: "Opens the WebSocket of an instance, for subscriptions.",
        query: [],
        answer: "websocket",
      },
    },
    preValidation: async (request) => {
      queryOf(request);
      await refuseUnlessLive(control, request.params.id);
      if (!request.ws) {
        throw new RunvaultError("invalid_argument", "this route needs a WebSocket upgrade", {
          hint: "Open it with a WebSocket client.",
        });
      }
      if (app.websocketServer.clients.size >= mostConnections) {
        throw new RunvaultError("rate_limited", `all ${mostConnections} WebSocket connections are in use`, {
          retryAfterMs: 1000,
        });
      }
    },
    handler: async (_request, reply) => reply,
    wsHandler: (socket, request) => {
      const { method, params } = request;
      const entry = { method, path: pathOf(request), query: {}, status: 101, ending: "whole" } as const;
      const instanceId = params.id;
      const onClose = (sent: Sent) => {
        try {
          onRequest?.({ ...entry, ...sent });
        } catch (error) {
          onError(RunvaultError.from(error));
        }
      };
      new LiveConnection(socket, { control, instanceId, metrics, onError, onClose });
    },
  });
}

async function refuseUnlessLive(control: ControlPlane, instanceId: string): Promise<void> {
  const { transport, capabilities, capabilityErrors } = await control.status(instanceId);
  if (capabilities?.subscriptions === true) return;
  const error = capabilityErrors?.find(({ capability }) => capability === "subscriptions");
  const place = { instance: instanceId };
  const message = `${instanceId} takes no subscriptions${error?.message ? `: ${error.message}` : ""}`;
  if (transport?.connected !== true) throw new RunvaultError("unreachable", message, { place });
  throw new RunvaultError("capability_unavailable", message, {
    place,
    capability: "subscriptions",
    hint: "GET /runtime/status lists the capabilities of the instance.",
  });
}
