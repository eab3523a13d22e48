import { Code, ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";

/** A made answer to a call. */
export interface MadeAnswer {
  readonly status: number;
  readonly header: Headers;
  readonly body: Buffer;
}

/**
 * The answer to a call of whose message no method has heard. Where its bytes are no message, connect-es says `internal`,
 * status 500, as if that were our fault; it is the client's: `invalid_argument`. Answers of gRPC-Web are left: their
 * status is 200 whatever went wrong.
 */
export function unreadAnswer(made: MadeAnswer): MadeAnswer {
  if (made.status !== 500) return made;
  const error = JSON.parse(made.body.toString()) as Readonly<Record<string, unknown>>;
  const body = Buffer.from(JSON.stringify({ ...error, code: "invalid_argument" }));
  const header = new Headers(made.header);
  if (header.has("content-length")) header.set("content-length", String(body.length));
  return { status: 400, header, body };
}

/**
 * The answer to a call that is refused for its host. HTTP has a status for that, which Connect's codes do not lead to;
 * clients of Connect go by the code in the body. Answers of gRPC-Web are left, as above.
 */
export function misdirectedAnswer(made: MadeAnswer): MadeAnswer {
  return made.status === 200 ? made : { ...made, status: 421 };
}

/** The same compression; bytes that end too early are the client's fault too. */
export function blamingClients(compression: Compression): Compression {
  return {
    ...compression,
    decompress: async (bytes, mostBytes) => {
      try {
        return await compression.decompress(bytes, mostBytes);
      } catch (thrown) {
        const error = ConnectError.from(thrown);
        if (error.code !== Code.Internal) throw error;
        throw new ConnectError(error.rawMessage, Code.InvalidArgument, undefined, undefined, thrown);
      }
    },
  };
}
