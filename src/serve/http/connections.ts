import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Http2Server, Http2Stream } from "node:http2";
import type { Server as HttpsServer } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { RunvaultError } from "../../model/error.ts";

/** How many clients may connect, and how long each may take to send a request. */
export interface ConnectionLimits {
  /**
   * Connections at a time. Another one closes the one that has been without a whole request for longest. Default: half
   * of the process's file limit, at most 10,000; the other half is for the history's files.
   */
  readonly most?: number | undefined;
  /** Time limit for a request's head, or a TLS handshake. Default: 20,000. */
  readonly headMs?: number | undefined;
  /** Time limit for a request with its body, which is small on every route. Default: 60,000. */
  readonly requestMs?: number | undefined;
}

const mostByDefault = 10_000;
/** If the system does not say how many files a process may open. */
const usualDescriptors = 1024;
/** Simultaneous requests of a connection; otherwise unread answers would pile up. */
export const mostPipelined = 64;

/** A number of connections that leaves enough file descriptors for a history. */
export function usualConnections(): number {
  const report: typeof process.report & { excludeNetwork?: boolean } = process.report;
  const { excludeNetwork = false } = report;
  // otherwise the report looks up the names of peers
  report.excludeNetwork = true;
  const { userLimits } = report.getReport() as { userLimits?: { open_files?: { soft?: unknown } } };
  report.excludeNetwork = excludeNetwork;
  const limit = userLimits?.open_files?.soft;
  const descriptors = limit === "unlimited" ? Number.POSITIVE_INFINITY : Number(limit ?? usualDescriptors);
  return Math.min(mostByDefault, Math.max(1, Math.floor(descriptors / 2)));
}

interface Connection {
  readonly peer: string;
  /** The socket of requests; with TLS, the one above the accepted one. */
  socket: Socket;
  /** Requests begun and not answered yet. */
  underWay: number;
  /** Those that have arrived whole. */
  whole: number;
  last: { readonly request: IncomingMessage; readonly response: ServerResponse } | undefined;
}

/**
 * A server's connections, limited in number. Clients that connect and request nothing, or send a byte at a time, give
 * way to newer ones, so they cannot lock anyone out; if every connection has a request in progress, the new one is
 * closed. Node's `maxConnections` always closes the new one, and has no limit for pipelined requests.
 */
export class Connections {
  readonly #most: number;
  readonly #onDrop: () => void;
  readonly #all = new Map<string, Connection>();
  /** Those without a whole request, the longest waiting first. */
  readonly #waiting = new Set<Connection>();
  readonly #bySocket = new WeakMap<Duplex, Connection>();

  /** `onDrop` is called for every connection closed for lack of room. */
  constructor(most: number, onDrop: () => void) {
    this.#most = most;
    this.#onDrop = onDrop;
  }

  get size(): number {
    return this.#all.size;
  }

  /** Closes all of them. */
  closeAll(): void {
    for (const connection of [...this.#all.values()]) this.#drop(connection);
  }

  /** `http2` answers some of the connections that `server` accepts. */
  watch(server: Server | HttpsServer, http2: Http2Server): void {
    server.on("connection", (socket: Socket) => this.#add(socket));
    // TLS puts its own socket above the accepted one
    server.on("secureConnection", (socket: Socket) => {
      const connection = this.#all.get(peerOf(socket));
      if (connection === undefined) return;
      connection.socket = socket;
      this.#bySocket.set(socket, connection);
    });
    for (const one of [server, http2]) {
      one.on("request", (request: IncomingMessage, response: ServerResponse) =>
        this.#begin(request, response),
      );
    }
    server.on("upgrade", (_request, socket) => {
      const connection = this.#bySocket.get(socket);
      if (connection !== undefined) this.#waiting.delete(connection);
    });
  }

  /**
   * Whether another answer is in progress or due on a socket: one written now would be taken for part of it, or for it.
   * Answers to incomplete requests do not count.
   */
  isAnswering(socket: Duplex): boolean {
    const { underWay = 0, last } = this.#bySocket.get(socket) ?? {};
    if (underWay === 0 || last === undefined) return false;
    return underWay > 1 || last.request.complete || last.response.headersSent;
  }

  #add(socket: Socket): void {
    const connection: Connection = { peer: peerOf(socket), socket, underWay: 0, whole: 0, last: undefined };
    this.#all.set(connection.peer, connection);
    this.#bySocket.set(socket, connection);
    this.#waiting.add(connection);
    socket.once("close", () => this.#remove(connection));
    if (this.#all.size <= this.#most) return;
    // the new one waits too, and is the last to go
    const [longest = connection] = this.#waiting;
    this.#drop(longest);
    this.#onDrop();
  }

  #begin(request: IncomingMessage, response: ServerResponse): void {
    // HTTP/2 puts its own object in front of the socket
    const connection = this.#bySocket.get(request.socket) ?? this.#all.get(peerOf(request.socket));
    if (connection === undefined) return;
    connection.underWay += 1;
    connection.last = { request, response };
    if (connection.underWay > mostPipelined) {
      this.#drop(connection);
      return;
    }
    let isWhole = false;
    let isOver = false;
    const cameWhole = () => {
      // one that was answered early is already waiting for its next request
      if (isOver) return;
      isWhole = true;
      connection.whole += 1;
      this.#waiting.delete(connection);
    };
    // a slowly arriving body must not keep others out
    if (hasBody(request)) request.once("end", cameWhole);
    else cameWhole();
    this.#waitUnlessWhole(connection);
    response.once("close", () => {
      isOver = true;
      connection.underWay -= 1;
      if (isWhole) connection.whole -= 1;
      this.#waitUnlessWhole(connection);
    });
  }

  /** Puts a connection last among the waiting ones, unless it has a whole request in progress. */
  #waitUnlessWhole(connection: Connection): void {
    if (connection.whole > 0 || this.#all.get(connection.peer) !== connection) return;
    this.#waiting.delete(connection);
    this.#waiting.add(connection);
  }

  #drop(connection: Connection): void {
    this.#remove(connection);
    connection.socket.destroy();
  }

  #remove(connection: Connection): void {
    this.#waiting.delete(connection);
    // a port may be reused before the end of its last connection is reported
    if (this.#all.get(connection.peer) === connection) this.#all.delete(connection.peer);
  }
}

/** The same for a socket and for the TLS socket above it. */
function peerOf({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`;
}

function hasBody(request: IncomingMessage): boolean {
  // over HTTP/2 a body needs no header
  if ("stream" in request) return !(request.stream as Http2Stream).endAfterHeaders;
  const { headers } = request;
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/** The owner's warning when there is no room for more connections. */
export function tooManyConnections(most: number): RunvaultError {
  const message = `all ${most} connections are in use: idle ones are closed to make room for new ones`;
  return new RunvaultError("rate_limited", message, {
    hint: "If these are your clients, raise --max-connections and the limit on open files.",
  });
}
