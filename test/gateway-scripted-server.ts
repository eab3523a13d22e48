import { createServer as createHttpServer, type RequestListener } from "node:http";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";

/** A server of a test, on a free port of 127.0.0.1; disposing it ends its connections too. */
export interface ScriptedServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** Raw heads of requests for raw servers, `METHOD path` for HTTP ones, in order. */
  readonly requests: string[];
}

/** An HTTP server that answers by the handler. */
export async function serveHttp(handler: RequestListener): Promise<ScriptedServer> {
  const requests: string[] = [];
  const server = createHttpServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    handler(request, response);
  });
  return listen(server, requests);
}

/** A server that answers each request with bytes of its own; the number of the request counts from 1. */
export async function serveRaw(
  answer: (socket: Socket, request: number, head: string) => void,
): Promise<ScriptedServer> {
  const requests: string[] = [];
  const server = createServer((socket) => {
    let head = "";
    socket.on("error", () => socket.destroy());
    socket.on("data", (bytes) => {
      head += bytes.toString("latin1");
      const end = head.indexOf("\r\n\r\n");
      if (end < 0) return;
      requests.push(head.slice(0, end));
      head = head.slice(end + 4);
      answer(socket, requests.length, requests.at(-1) ?? "");
    });
  });
  return listen(server, requests);
}

async function listen(server: Server, requests: string[]): Promise<ScriptedServer> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    requests,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Head of an NDJSON answer with the given further header lines. */
export function rowsHead(...headers: string[]): string {
  return ["HTTP/1.1 200 OK", "Content-Type: application/x-ndjson", ...headers, "", ""].join("\r\n");
}
