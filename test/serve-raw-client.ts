import { once } from "node:events";
import net from "node:net";

/** An answer as the wire shows it. `isWhole` is true when a chunked body had its end, or one of known length its bytes. */
export interface RawAnswer {
  readonly status: number;
  readonly head: string;
  readonly body: Buffer;
  readonly isWhole: boolean;
}

/** Asks over a bare socket, reads until the server closes or the chunked body ends. */
export async function rawGet(url: string, headers: Record<string, string> = {}): Promise<RawAnswer> {
  return await raw("GET", url, headers, Buffer.alloc(0));
}

/** The same for a body of known length. */
export async function rawPost(
  url: string,
  body: Uint8Array,
  headers: Record<string, string> = {},
): Promise<RawAnswer> {
  return await raw("POST", url, { "content-length": String(body.length), ...headers }, body);
}

async function raw(
  method: string,
  url: string,
  headers: Record<string, string>,
  body: Uint8Array,
): Promise<RawAnswer> {
  const { hostname, port, pathname, search } = new URL(url);
  const socket = net.connect(Number(port), hostname);
  const lines = Object.entries({ host: "test", connection: "close", ...headers }).map(
    ([k, v]) => `${k}: ${v}\r\n`,
  );
  socket.write(`${method} ${pathname}${search} HTTP/1.1\r\n${lines.join("")}\r\n`);
  if (body.length > 0) socket.write(body);
  const parts: Buffer[] = [];
  socket.on("data", (part) => parts.push(part));
  await once(socket, "close");
  return parsed(Buffer.concat(parts));
}

function parsed(answer: Buffer): RawAnswer {
  const headEnd = answer.indexOf("\r\n\r\n");
  const head = answer.subarray(0, headEnd).toString().toLowerCase();
  const status = Number(/^http\/1\.1 (\d+)/.exec(head)?.[1]);
  const length = /^content-length: (\d+)\r?$/m.exec(head)?.[1];
  if (length !== undefined) {
    const body = answer.subarray(headEnd + 4);
    return { status, head, body, isWhole: body.length === Number(length) };
  }
  const chunks: Buffer[] = [];
  let at = headEnd + 4;
  for (;;) {
    const lineEnd = answer.indexOf("\r\n", at);
    if (lineEnd === -1) return { status, head, body: Buffer.concat(chunks), isWhole: false };
    const size = Number.parseInt(answer.subarray(at, lineEnd).toString(), 16);
    if (size === 0) return { status, head, body: Buffer.concat(chunks), isWhole: true };
    chunks.push(answer.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 2 + size + 2;
  }
}
