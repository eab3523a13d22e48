import http2 from "node:http2";
import { connect, type Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { Client, errors } from "undici";
import type { GatewayAddress } from "../address.ts";
import type { CheckedOptions } from "../options.ts";
import { proxyFor } from "./environment-proxy.ts";

/** A connection for requests, until it is left. */
export interface Http2Connection {
  readonly session: http2.ClientHttp2Session;
  /** Accepts no further requests on it; those in progress may end. */
  leave(): void;
  /** Explains a failure. A clear-text connection that never spoke HTTP/2 does not speak it. */
  failure(error: Error): Error;
}

/** A stream's window: a page's worth, so that a long line does not take a round trip for each 64 kB. */
const streamWindowBytes = 1024 * 1024;
const connectionWindowBytes = 8 * 1024 * 1024;
/** Most bytes of an answer's headers: a status, a message and some bookkeeping. */
const headerBytes = 64 * 1024;

/**
 * Connections to a gateway over HTTP/2: with prior knowledge for http addresses, over TLS with ALPN for https ones,
 * through the same proxies as HTTP/1.1. All requests share one connection; a new one is made when it ends, gets a
 * GOAWAY or falls silent.
 */
export class Http2Connections {
  readonly #address: GatewayAddress;
  readonly #options: CheckedOptions;
  #current: Promise<Http2Connection> | undefined;
  readonly #open = new Set<{ destroy(): void }>();
  #isDestroyed = false;

  constructor(address: GatewayAddress, options: CheckedOptions) {
    this.#address = address;
    this.#options = options;
  }

  /** The current connection, or a new one. Throws Node's errors, and `UND_ERR_CONNECT_TIMEOUT` if it takes too long. */
  connection(): Promise<Http2Connection> {
    if (this.#current === undefined) {
      const opening = this.#connect();
      this.#current = opening;
      opening.catch(() => this.#forget(opening));
    }
    return this.#current;
  }

  /** Stops using the current connection: the next request makes another. */
  leave(): void {
    const former = this.#current;
    this.#current = undefined;
    former?.then(
      ({ leave }) => leave(),
      () => {
        // the caller that waits for it gets the error
      },
    );
  }

  destroy(): void {
    this.#isDestroyed = true;
    this.#current = undefined;
    for (const open of this.#open) open.destroy();
    this.#open.clear();
  }

  #forget(connection: Promise<Http2Connection>): void {
    if (this.#current === connection) this.#current = undefined;
  }

  async #connect(): Promise<Http2Connection> {
    const socket = await this.#socket();
    if (this.#isDestroyed) {
      socket.destroy();
      throw new errors.ClientDestroyedError();
    }
    const session = http2.connect(this.#address.origin, {
      createConnection: () => socket,
      settings: {
        enablePush: false,
        initialWindowSize: streamWindowBytes,
        maxHeaderListSize: headerBytes,
      },
    });
    this.#open.add(session);
    let spoke = false;
    const isSecure = this.#address.origin.startsWith("https:");
    let fault: Error | undefined;
    const opening = this.#current;
    const leave = () => {
      if (opening !== undefined) this.#forget(opening);
      if (!session.closed) session.close();
    };
    session.once("connect", () => session.setLocalWindowSize(connectionWindowBytes));
    session.once("remoteSettings", () => {
      spoke = true;
    });
    session.on("goaway", leave);
    session.on("error", (error) => {
      fault = error;
      leave();
    });
    session.once("close", () => {
      this.#open.delete(session);
      leave();
    });
    const failure = (error: Error) => {
      if (spoke) return error;
      // HTTP/2 was agreed on, then closed silently: perhaps because of a client certificate
      if (isSecure && fault === undefined && codeOf(error).startsWith("ERR_HTTP2")) {
        return new errors.SocketError("other side closed");
      }
      // its own message quotes what came, which may be anything
      return codeOf(fault ?? error).startsWith("ERR_HTTP2") ? notHttp2() : (fault ?? error);
    };
    return { session, leave, failure };
  }

  async #socket(): Promise<Socket | TLSSocket> {
    const url = new URL(this.#address.origin);
    const isSecure = url.protocol === "https:";
    const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
    const port = Number(url.port || (isSecure ? 443 : 80));
    const isDirect = this.#address.loopback && !this.#options.proxyLoopback;
    const proxy = isDirect ? undefined : proxyFor(url, process.env);
    const deadline = performance.now() + this.#options.connectTimeoutMs;
    const plain =
      proxy === undefined
        ? await this.#connected(connect({ host, port }), "connect", deadline)
        : await this.#tunnel(proxy, url.hostname, port, deadline);
    if (!isSecure) return plain;
    const { ca, cert, key } = this.#options;
    const socket = connectTls({
      socket: plain,
      host,
      ...(/^[\d.]+$|:/.test(host) ? {} : { servername: host }),
      ALPNProtocols: ["h2"],
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
    });
    await this.#connected(socket, "secureConnect", deadline);
    if (socket.alpnProtocol === "h2") return socket;
    socket.destroy();
    throw notHttp2();
  }

  /** A tunnel through a proxy, by CONNECT; nothing else carries HTTP/2. */
  async #tunnel(proxy: URL, hostname: string, port: number, deadline: number): Promise<Socket> {
    const client = new Client(proxy.origin, {
      connect: { timeout: this.#options.connectTimeoutMs },
      headersTimeout: this.#options.connectTimeoutMs,
    });
    this.#open.add(client as unknown as { destroy(): void });
    const timeoutMs = Math.max(1, Math.ceil(deadline - performance.now()));
    const target = `${hostname}:${port}`;
    const credentials = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`;
    try {
      const { statusCode, socket } = await client.connect({
        path: target,
        headers: {
          host: target,
          ...(credentials === ":"
            ? {}
            : { "proxy-authorization": `Basic ${Buffer.from(credentials).toString("base64")}` }),
        },
        signal: AbortSignal.timeout(timeoutMs),
      });
      if (statusCode === 200) return socket as Socket;
      socket.destroy();
      // the same as undici's errors for a proxy that wants other credentials, and for one that does not connect
      throw statusCode === 407
        ? new errors.InvalidArgumentError("Proxy response (407)")
        : new errors.RequestAbortedError(`Proxy response (${statusCode})`);
    } catch (thrown) {
      if ((thrown as { name?: string } | null)?.name === "TimeoutError")
        throw new errors.ConnectTimeoutError();
      throw thrown;
    } finally {
      this.#open.delete(client as unknown as { destroy(): void });
    }
  }

  #connected<S extends Socket>(socket: S, event: "connect" | "secureConnect", deadline: number): Promise<S> {
    const { promise, resolve, reject } = Promise.withResolvers<S>();
    this.#open.add(socket);
    const timer = setTimeout(
      () => socket.destroy(new errors.ConnectTimeoutError()),
      Math.max(1, deadline - performance.now()),
    );
    const onClose = () => reject(new errors.SocketError("other side closed"));
    socket.once(event, () => resolve(socket));
    socket.once("error", reject);
    socket.once("close", onClose);
    return promise.finally(() => {
      clearTimeout(timer);
      socket.off("close", onClose);
      this.#open.delete(socket);
    });
  }
}

/** The error when the peer does not speak HTTP/2: like other things that are not a gateway, with our own code. */
function notHttp2(): Error {
  return Object.assign(new Error("no HTTP/2"), { code: "ERR_NO_HTTP2" });
}

function codeOf(error: Error): string {
  const { code } = error as { code?: unknown };
  return typeof code === "string" ? code : "";
}
