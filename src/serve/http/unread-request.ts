import { gunzipSync } from "node:zlib";
import { Code } from "@connectrpc/connect";
import {
  createAsyncIterable,
  type UniversalHandler,
  type UniversalServerRequest,
  type UniversalServerResponse,
} from "@connectrpc/connect/protocol";

/** A made answer to a call. */
export interface MadeAnswer {
  readonly status: number;
  readonly header: Headers;
  readonly body: Buffer;
  /** Of gRPC. */
  readonly trailer?: Headers | undefined;
}

/** What a handler answers to a call. */
export async function answerOf(
  handler: UniversalHandler,
  asked: UniversalServerRequest,
): Promise<MadeAnswer> {
  try {
    const { status, header, trailer, ...answer } = await handler(asked);
    return { status, header: new Headers(header), body: await bodyOf(answer), trailer };
  } catch (error) {
    if (!(error instanceof URIError)) throw error;
    // What is quoted of a wrong text may have half a character, which connect-es cannot put into a header. The
    // beginning of a text is as wrong, and has none.
    return await answerOf(handler, { ...asked, body: createAsyncIterable([unfinishedJson]) });
  }
}

/** An envelope of gRPC with the one byte `{`. */
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
 * The answer to a call of whose message no method has heard. Where its bytes are no message, connect-es says `internal`,
 * as if that were our fault; it is the client's: `invalid_argument`. Connect has the code in an error of status 500, gRPC
 * in a trailer, gRPC-Web in a trailer at the end of the body.
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
  // it quotes what came, which may be half a character
  const message = String(error.message ?? "").toWellFormed();
  const code = made.status === 500 ? "invalid_argument" : error.code;
  const body = Buffer.from(JSON.stringify({ ...error, code, message }));
  const header = new Headers(made.header);
  if (header.has("content-length")) header.set("content-length", String(body.length));
  return { status: 400, header, body };
}

const grpcStatus = "grpc-status";
const [trailerFlag, compressedFlag, envelopeBytes] = [0x80, 0x01, 5];

/** A body of gRPC-Web that is its trailer alone: a flag, a length, and lines, compressed where that says so. */
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
 * The answer to a call that is refused for its host. HTTP has a status for that, which Connect's codes do not lead to;
 * clients of Connect go by the code in the body. Answers of gRPC-Web are left, as above.
 */
export function misdirectedAnswer(made: MadeAnswer): MadeAnswer {
  return made.status === 200 ? made : { ...made, status: 421 };
}
