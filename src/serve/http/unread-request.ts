import { gunzipSync } from "node:zlib";
import { Code } from "@connectrpc/connect";
import {
  createAsyncIterable,
  type UniversalHandler,
  type UniversalServerRequest,
  type UniversalServerResponse,
} from "@connectrpc/connect/protocol";

/** A complete answer to a call. */
export interface MadeAnswer {
  readonly status: number;
  readonly header: Headers;
  readonly body: Buffer;
  /** For gRPC. */
  readonly trailer?: Headers | undefined;
}

/** A handler's answer to a call. */
export async function answerOf(
  handler: UniversalHandler,
  asked: UniversalServerRequest,
): Promise<MadeAnswer> {
  try {
    const { status, header, trailer, ...answer } = await handler(asked);
    return { status, header: new Headers(header), body: await bodyOf(answer), trailer };
  } catch (error) {
    if (!(error instanceof URIError)) throw error;
    // The error may quote half a character, which connect-es cannot put into a header. The beginning of a text fails
    // the same way, without one.
    return await answerOf(handler, { ...asked, body: createAsyncIterable([unfinishedJson]) });
  }
}

/** A gRPC envelope with the single byte `{`. */
const unfinishedJson = Uint8Array.of(0, 0, 0, 0, 1, 0x7b);

async function bodyOf({ body }: Pick<UniversalServerResponse, "body">): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  if (body !== undefined) for await (const part of body) parts.push(part);
  const [only] = parts;
  return parts.length === 1 && only !== undefined
    ? Buffer.from(only.buffer, only.byteOffset, only.byteLength)
    : Buffer.concat(parts);
}

/**
 * Corrects the answer to a call that no method has seen. If its bytes are not a valid message, connect-es says
 * `internal`, but it is the client's fault: `invalid_argument`. Connect has the code in an error of status 500, gRPC in
 * a trailer, gRPC-Web in a trailer at the end of the body.
 */
export function unreadAnswer(made: MadeAnswer): MadeAnswer {
  if (made.trailer?.get(grpcStatus) === String(Code.Internal)) {
    const trailer = new Headers(made.trailer);
    trailer.set(grpcStatus, String(Code.InvalidArgument));
    return { ...made, trailer };
  }
  if (made.header.get("content-type")?.startsWith("application/grpc-web")) {
    return { ...made, body: blamingTrailer(made.body) };
  }
  // 415 and the like have no body
  if ((made.status !== 500 && made.status !== 400) || made.body.length === 0) return made;
  const error = JSON.parse(made.body.toString()) as Readonly<Record<string, unknown>>;
  // it quotes the request, which may have half a character
  const message = String(error.message ?? "").toWellFormed();
  const code = made.status === 500 ? "invalid_argument" : error.code;
  const body = Buffer.from(JSON.stringify({ ...error, code, message }));
  const header = new Headers(made.header);
  if (header.has("content-length")) header.set("content-length", String(body.length));
  return { status: 400, header, body };
}

const grpcStatus = "grpc-status";
const [trailerFlag, compressedFlag, envelopeBytes] = [0x80, 0x01, 5];

/** A gRPC-Web body that is only its trailer: a flag, a length, and lines, perhaps compressed. */
function blamingTrailer(body: Buffer): Buffer {
  const flags = body[0] ?? 0;
  if ((flags & trailerFlag) === 0) return body;
  const bytes = body.subarray(envelopeBytes);
  const text = (flags & compressedFlag ? gunzipSync(bytes) : bytes).toString("latin1");
  const blaming = text.replace(
    new RegExp(`^${grpcStatus}: ${Code.Internal}(?=\\r\\n|$)`, "im"),
    `${grpcStatus}: ${Code.InvalidArgument}`,
  );
  const lines = Buffer.from(blaming, "latin1");
  const head = Buffer.alloc(envelopeBytes, trailerFlag);
  head.writeUInt32BE(lines.length, 1);
  return Buffer.concat([head, lines]);
}

/**
 * The answer to a call that is refused for its host. HTTP has a status for that but Connect has no code; Connect
 * clients use the code in the body. gRPC-Web answers stay unchanged, as above.
 */
export function misdirectedAnswer(made: MadeAnswer): MadeAnswer {
  return made.status === 200 ? made : { ...made, status: 421 };
}
