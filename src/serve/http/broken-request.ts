import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { RunvaultError } from "../../model/error.ts";
import { errorAnswer } from "../envelope.ts";

/** What HTTP itself has a status for; any other request that cannot be read is a 400. */
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
 * Answers a request that cannot be read as HTTP, or did not come whole, and closes the connection. Nothing is known of
 * its route, so the envelope is that of the control plane. In the middle of another answer nothing is said: it would be
 * taken for a part of it. Gives what was answered; undefined where nothing was. Node and fastify answer in words of their
 * own, and ahead of an answer that is still due, whose place theirs would take.
 */
export function answerBrokenRequest(
  { code = "" }: NodeJS.ErrnoException,
  socket: Socket,
  isAnswering: boolean,
): BrokenAnswer | undefined {
  // before a handshake is over nothing can be said, and what is written would keep the connection waiting for its end
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
