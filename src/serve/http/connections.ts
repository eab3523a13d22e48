import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Http2Server, Http2Stream } from "node:http2";
import type { Server as HttpsServer } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { RunvaultError } from "../../model/error.ts";

/** How many clients may be connected, and how long each may take to say what it wants. */
export interface ConnectionLimits {
  /**
   * Connections at a time. For one more, that is closed which has been without a whole request for longest. Default:
   * half of the files that the process may have open, and 10,000 at most: the other half is for the history's files.
   */
  readonly most?: number | undefined;
  /** How long the head of a request, or the handshake of TLS, may take. Default: 20,000. */
  readonly headMs?: number | undefined;
  /** How long a request may take with its body, which is small on every route. Default: 60,000. */
  readonly requestMs?: number | undefined;
}

const mostByDefault = 10_000;
/** Where the system does not say how many files a process may have open. */
const usualDescriptors = 1024;
/** Requests of a connection at a time: answers that nobody reads would pile up otherwise. */
export const mostPipelined = 64;

/** How many connections leave descriptors enough for the files of a history. */
export function usualConnections(): number {
  const report: typeof process.report & { excludeNetwork?: boolean } = process.report;
  const { excludeNetwork = false } = report;
  // the names of peers are looked up for a report otherwise
  report.excludeNetwork = true;
  const { userLimits } = report.getReport() as { userLimits?: { open_files?: { soft?: unknown } } };
  report.excludeNetwork = excludeNetwork;
  const limit = userLimits?.open_files?.soft;
  const descriptors = limit === "unlimited" ? Number.POSITIVE_INFINITY : Number(limit ?? usualDescriptors);
  return Math.min(mostByDefault, Math.max(1, Math.floor(descriptors / 2)));
}

interface Connection {
  readonly peer: string;
  /** The one that requests come on: of TLS, that above the first. */
  socket: Socket;
  /** Requests begun and not answered yet. */
  underWay: number;
  /** Those of them that have come whole. */
  whole: number;
  last: { readonly request: IncomingMessage; readonly response: ServerResponse } | undefined;
}

/**
 * The connections of a server, kept below a number. Clients that connect and ask nothing, or ask a byte at a time, give
 * way to those that come after them, so that they cannot keep anybody out; where every connection has a request under
 * way, it is the new one that is closed. Node's `maxConnections` always closes the new one, and of requests at a time
 * on a connection it has no limit.
 */
export class Connections {
  readonly #most: number;
  readonly #onDrop: () => void;
  readonly #all = new Map<string, Connection>();
  /** Those without a whole request, the longest waiting first. */
  readonly #waiting = new Set<Connection>();
  readonly #bySocket = new WeakMap<Duplex, Connection>();

  /** `onDrop` is told of every connection closed for want of room. */
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
    // TLS puts a socket of its own above the one that was accepted
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
   * Whether another answer is on its way on a socket, or due: one written now would be taken for a part of it, or for
   * it. An answer to a request that has not come whole is not.
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
    // HTTP/2 has something of its own in front of the socket
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
      // one that was answered before it came whole is waiting for its next request by then
      if (isOver) return;
      isWhole = true;
      connection.whole += 1;
      this.#waiting.delete(connection);
    };
    // a body that trickles in is no reason to keep others out
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

  /** The last of those that wait, from now on; where a whole request is under way, it does not. */
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
    // a port may be taken again before the end of its last connection is told
    if (this.#all.get(connection.peer) === connection) this.#all.delete(connection.peer);
  }
}

/** The same for a socket and for the one that TLS puts above it. */
function peerOf({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`;
}

function hasBody(request: IncomingMessage): boolean {
  // of HTTP/2, where a body needs no header
  if ("stream" in request) return !(request.stream as Http2Stream).endAfterHeaders;
  const { headers } = request;
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/** What the owner is told when there is no room for more of them. */
export function tooManyConnections(most: number): RunvaultError {
  const message = `all ${most} connections are in use: idle ones are closed to make room for new ones`;
  return new RunvaultError("rate_limited", message, {
    hint: "If these are your clients, raise --max-connections and the limit on open files.",
  });
}
