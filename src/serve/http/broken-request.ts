import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { RunvaultError } from "../../model/error.ts";
import { errorAnswer } from "../envelope.ts";

/** Broken requests for which HTTP has a status; others get 400. */
const statuses: Readonly<Record<string, readonly [status: number, message: string]>> = {
  ERR_HTTP_REQUEST_TIMEOUT: [408, "the request did not arrive in time"],
  HPE_HEADER_OVERFLOW: [431, "the request's headers are too long"],
};

export interface BrokenAnswer {
  readonly status: number;
  /** Bytes of the body. */
  readonly bytes: number;
}

/**
 * Answers a request that is not readable as HTTP, or incomplete, and closes the connection. Its route is unknown, so it
 * gets the control plane's envelope. In the middle of another answer it sends nothing, which would be taken for part of
 * that. Returns what was answered, if anything. Node and fastify would use their own messages, and send them in place
 * of an answer that is still due.
 */
export function answerBrokenRequest(
  { code = "" }: NodeJS.ErrnoException,
  socket: Socket,
  isAnswering: boolean,
): BrokenAnswer | undefined {
  // nothing can be sent before a handshake is over, and unsent data would keep the connection open
  if (!socket.writable || isAnswering || code === "ECONNRESET" || /^ERR_(?:TLS|SSL)_/.test(code)) {
    socket.destroy();
    return undefined;
  }
  const [status, message] = statuses[code] ?? [400, "the request is not HTTP/1.1"];
  const body = JSON.stringify(errorAnswer("control", new RunvaultError("invalid_argument", message)).body);
  const bytes = Buffer.byteLength(body);
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    "connection: close",
    "content-type: application/json; charset=utf-8",
    `content-length: ${bytes}`,
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\n${body}`);
  socket.destroySoon();
  return { status, bytes };
}
