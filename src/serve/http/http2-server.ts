import http from "node:http";
import http2 from "node:http2";
import type https from "node:https";
import type { Socket } from "node:net";
import { mostPipelined } from "./connections.ts";

export interface Http2Limits {
  /** How long a client may take to its first request. */
  readonly headMs: number;
  /** How long a request may take with its body. */
  readonly requestMs: number;
  /** How long a session may be without a request. */
  readonly keepAliveMs: number;
}

/** What every connection of HTTP/2 begins with. */
const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/** As much as the head of a request over HTTP/1.1 may have. */
const maxHeadBytes = http.maxHeaderSize;
/** Room for the answers under way of one session; a page is 4 MiB. */
const sessionMegabytes = 512;
/** How often it is looked whether the end of an answer was sent; usually it was at once. */
const endLookMs = 10;

// Node's types have fields where what is there are none
type Base = Omit<
  http2.Http2ServerResponse,
  "destroyed" | "destroy" | "setHeader" | "writableNeedDrain" | "writeContinue"
>;
const Base = http2.Http2ServerResponse as unknown as new (...given: readonly unknown[]) => Base;

const { setHeader, writeContinue } = http2.Http2ServerResponse.prototype;

/**
 * A response that tells as one of HTTP/1.1 does whether it is over, and how a cut one ended: without this a client could
 * take it for whole.
 */
class Response extends Base {
  constructor(...given: readonly unknown[]) {
    super(...given);
    let isTold = false;
    this.once("close", () => {
      isTold = true;
    });
    // Node says nothing of the end of an answer to HEAD that was cut
    this.stream.once("close", () => {
      if (!isTold) this.emit("close");
    });
  }

  get destroyed(): boolean {
    return this.stream.destroyed || this.stream.closed;
  }

  get writableNeedDrain(): boolean {
    return this.stream.writableNeedDrain;
  }

  destroy(): void {
    this.stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
  }

  /** A stream may be over before its request is heard of; Node would throw where nobody catches it. */
  writeContinue(): void {
    if (!this.destroyed) writeContinue.call(this);
  }

  /** HTTP/2 has no header `connection`: a session that is to close takes no more requests, and ends with those it has. */
  setHeader(name: string, value: number | string | readonly string[]): void {
    if (name.toLowerCase() !== "connection") setHeader.call(this, name, value);
    else if (value === "close") this.stream.session?.close();
  }
}

/**
 * A server of HTTP/2 for connections that another one has accepted. Sessions that ask nothing, requests that do not come
 * whole and more of them than HTTP/1.1 would have are ended; Node itself ends floods of resets, settings, pings and heads.
 */
export function newHttp2Server(handler: http.RequestListener, limits: Http2Limits): http2.Http2Server {
  const server = http2.createServer(
    {
      Http2ServerResponse: Response as unknown as typeof http2.Http2ServerResponse,
      settings: { maxConcurrentStreams: mostPipelined, maxHeaderListSize: maxHeadBytes },
      maxSessionMemory: sessionMegabytes,
    },
    (request: http2.Http2ServerRequest, response: http2.Http2ServerResponse) => {
      // of a stream that is over by now nobody hears the end, and would wait for it
      const answer = response as unknown as http.ServerResponse<http.IncomingMessage> & {
        req: http.IncomingMessage;
      };
      if (!answer.destroyed) handler(request as unknown as http.IncomingMessage, answer);
    },
  );
  server.on("session", (session) => endIdle(session, limits));
  server.on("request", ({ stream }) => {
    if (stream.endAfterHeaders) return;
    const late = setTimeout(() => stream.close(http2.constants.NGHTTP2_CANCEL), limits.requestMs);
    for (const event of ["end", "close"]) stream.once(event, () => clearTimeout(late));
    // the response tells its own `finish` only once the stream is closed
    stream.once("finish", () => dropBody(stream));
  });
  return server;
}

/**
 * Ends a stream whose answer is on its way: the rest of a body that was not read to its end nobody wants. Only behind the
 * end of the answer, or clients take it for cut (RFC 9113, 8.1), and Node does not say when that was sent.
 */
function dropBody(stream: http2.Http2Stream): void {
  // a request that was given up takes no more, and would hold the stream for good
  stream.removeAllListeners("data").resume();
  const close = () => {
    if (stream.destroyed) return;
    if (stream.state.localClose === 1) stream.close(http2.constants.NGHTTP2_NO_ERROR);
    else setTimeout(close, endLookMs);
  };
  setImmediate(close);
}

/**
 * Ends a session that is without a request for too long. Node's timer of the session does the work, which frames of no
 * stream, such as pings, do not start anew; that an answer is under way, and only waits for its source, it does not know.
 */
function endIdle(session: http2.ServerHttp2Session, { headMs, keepAliveMs }: Http2Limits): void {
  let open = 0;
  session.setTimeout(headMs);
  session.on("timeout", () => {
    if (open === 0) session.close();
  });
  session.on("stream", (stream) => {
    open += 1;
    stream.once("close", () => {
      open -= 1;
      session.setTimeout(keepAliveMs);
    });
  });
}

/**
 * Takes the connections of a server that are HTTP/2: over TLS by what the handshake agreed on, else by how they begin,
 * which clients have to know of (prior knowledge). All others go on as before. `onSilent` is told of one that says too
 * little in time to tell.
 */
export function takeHttp2(
  server: http.Server | https.Server,
  isSecure: boolean,
  {
    http2: taker,
    headMs,
    onSilent,
  }: {
    http2: http2.Http2Server;
    headMs: number;
    onSilent: (socket: Socket) => void;
  },
): void {
  const event = isSecure ? "secureConnection" : "connection";
  const others = server.listeners(event);
  server.removeAllListeners(event);
  const pass = (socket: Socket, isHttp2: boolean) => {
    if (isHttp2) {
      // whoever says no more opens no window either: a session of theirs would be there until its timers end it
      socket.allowHalfOpen = false;
      taker.emit("connection", socket);
    } else for (const listener of others) listener.call(server, socket);
  };
  server.on(event, (socket: Socket & { readonly alpnProtocol?: string | false }) => {
    if (isSecure) return pass(socket, socket.alpnProtocol === "h2");
    firstBytes(socket, headMs, (isHttp2) => pass(socket, isHttp2), onSilent);
  });
}

/** Looks at the first bytes of a connection, and leaves them to be read by whoever takes it. */
function firstBytes(
  socket: Socket,
  headMs: number,
  onKnown: (isHttp2: boolean) => void,
  onSilent: (socket: Socket) => void,
): void {
  let seen = Buffer.alloc(0);
  const onError = () => socket.destroy();
  const stop = () => {
    clearTimeout(late);
    socket.off("readable", look).off("end", end).off("close", stop).off("error", onError);
  };
  const look = () => {
    for (let part: Buffer | null = socket.read(); part !== null; part = socket.read()) {
      seen = Buffer.concat([seen, part]);
    }
    const known = Math.min(seen.length, preface.length);
    const isLike = seen.subarray(0, known).equals(preface.subarray(0, known));
    if (isLike && known < preface.length) return;
    stop();
    socket.unshift(seen);
    onKnown(isLike);
  };
  // whoever takes a connection that is over already would wait for its end, which was told
  const end = () => {
    stop();
    socket.destroy();
  };
  const late = setTimeout(() => {
    stop();
    socket.on("error", onError);
    onSilent(socket);
  }, headMs);
  socket.on("readable", look).on("end", end).on("close", stop).on("error", onError);
}
