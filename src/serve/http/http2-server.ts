import http from "node:http";
import http2 from "node:http2";
import type https from "node:https";
import type { Socket } from "node:net";
import { mostPipelined } from "./connections.ts";

export interface Http2Limits {
  /** Time limit to a client's first request. */
  readonly headMs: number;
  /** Time limit for a request with its body. */
  readonly requestMs: number;
  /** How long a session may be idle. */
  readonly keepAliveMs: number;
}

/** The beginning of every HTTP/2 connection. */
const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/** The same limit as for an HTTP/1.1 request's head. */
const maxHeadBytes = http.maxHeaderSize;
/** Room for a session's answers in progress; a page is 4 MiB. */
const sessionMegabytes = 512;
/** How often to check that the end of an answer was sent; usually it was at once. */
const endLookMs = 10;

// Node's types declare fields that do not exist
type Base = Omit<
  http2.Http2ServerResponse,
  "destroyed" | "destroy" | "setHeader" | "writableNeedDrain" | "writeContinue"
>;
const Base = http2.Http2ServerResponse as unknown as new (...given: readonly unknown[]) => Base;

const { setHeader, writeContinue } = http2.Http2ServerResponse.prototype;

/**
 * A response that reports like HTTP/1.1 whether it is over, and how a cut one ended; otherwise clients could take it
 * for complete.
 */
class Response extends Base {
  constructor(...given: readonly unknown[]) {
    super(...given);
    let isTold = false;
    this.once("close", () => {
      isTold = true;
    });
    // Node does not report the end of a cut answer to HEAD
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

  /** A stream may end before its request is handled; Node would then throw an uncaught error. */
  writeContinue(): void {
    if (!this.destroyed) writeContinue.call(this);
  }

  /**
   * HTTP/2 has no header `connection`: a session that is to close accepts no more requests, and ends with those it has.
   */
  setHeader(name: string, value: number | string | readonly string[]): void {
    if (name.toLowerCase() !== "connection") setHeader.call(this, name, value);
    else if (value === "close") this.stream.session?.close();
  }
}

/**
 * An HTTP/2 server for connections that another server accepted. Ends idle sessions, incomplete requests, and too many
 * of them; Node itself ends floods of resets, settings, pings and heads.
 */
export function newHttp2Server(handler: http.RequestListener, limits: Http2Limits): http2.Http2Server {
  const server = http2.createServer(
    {
      Http2ServerResponse: Response as unknown as typeof http2.Http2ServerResponse,
      settings: { maxConcurrentStreams: mostPipelined, maxHeaderListSize: maxHeadBytes },
      maxSessionMemory: sessionMegabytes,
    },
    (request: http2.Http2ServerRequest, response: http2.Http2ServerResponse) => {
      // The stream has closed; a handler would wait forever.
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
    // the response emits `finish` only once the stream is closed
    stream.once("finish", () => dropBody(stream));
  });
  return server;
}

/**
 * Ends a stream after its answer was sent, dropping the unread rest of its body. Doing that before the answer's end
 * makes clients take it for cut (RFC 9113, 8.1), and Node does not say when that was sent.
 */
function dropBody(stream: http2.Http2Stream): void {
  // an abandoned request reads no more, and would hold the stream forever
  stream.removeAllListeners("data").resume();
  const close = () => {
    if (stream.destroyed) return;
    if (stream.state.localClose === 1) stream.close(http2.constants.NGHTTP2_NO_ERROR);
    else setTimeout(close, endLookMs);
  };
  setImmediate(close);
}

/**
 * Ends a session that is idle for too long. Uses Node's session timer, which frames without a stream, such as pings, do
 * not reset; but it does not know about answers that only wait for their source.
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
 * Takes over a server's HTTP/2 connections: over TLS by the handshake's choice, else by their first bytes (prior
 * knowledge). Others continue as before. `onSilent` gets connections that send too little in time to tell.
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
      // a peer that has closed its side opens no window either: its session would stay until its timers end it
      socket.allowHalfOpen = false;
      taker.emit("connection", socket);
    } else for (const listener of others) listener.call(server, socket);
  };
  server.on(event, (socket: Socket & { readonly alpnProtocol?: string | false }) => {
    if (isSecure) return pass(socket, socket.alpnProtocol === "h2");
    firstBytes(socket, headMs, (isHttp2) => pass(socket, isHttp2), onSilent);
  });
}

/** Looks at a connection's first bytes, and leaves them for its reader. */
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
  // the new owner of a connection that is already over would wait for its end
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
