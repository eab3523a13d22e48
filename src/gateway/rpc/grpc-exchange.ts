import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { Code } from "@connectrpc/connect";
import { codeToHttpStatus } from "@connectrpc/connect/protocol-connect";
import { type ErrorPlace, RunvaultError } from "../../model/error.ts";
import { timerMs } from "../../model/retry/deadline.ts";
import type { RpcRules } from "../contract.ts";
import type { Answer, AnswerHeaders } from "../http/answer.ts";
import { codeOfStatus, statusHints } from "../http/error-answer.ts";
import { type HttpSession, mediaType } from "../http/http-session.ts";
import { readRetryAfterMs } from "../http/retry-after.ts";
import { refusalError } from "./rpc-error.ts";
import { methodPath, type RpcCall, type RpcExchange } from "./rpc-exchange.ts";

/** A flag for compression, and the message's length. */
const prefixBytes = 5;

/**
 * Unary gRPC over HTTP/2. An answer is accepted if its trailers have `grpc-status` 0 and its body is one complete
 * message of the stated length; without that status it was truncated (`stream_cut`), whatever came before.
 */
export function grpcExchange(session: HttpSession, rules: RpcRules): RpcExchange {
  const { headersTimeoutMs, documentTimeoutMs, compressed } = session.options;
  const timeoutMs = timerMs(headersTimeoutMs + documentTimeoutMs);
  const headers = {
    "content-type": "application/grpc+proto",
    // required by the protocol
    te: "trailers",
    "grpc-timeout": timeoutText(timeoutMs),
    "grpc-accept-encoding": (compressed ?? !session.address.loopback) ? "gzip,identity" : "identity",
    // gRPC compresses messages, never the answer
    "accept-encoding": "identity",
  };
  const attempt: RpcExchange = async (prefix, call, context) => {
    const { place } = context;
    const path = prefix + methodPath(call.method);
    const body = framed(call.request);
    const answer = await session.send({ method: "POST", path, headers, body, http2: true }, context);
    try {
      requireGrpc(answer, place);
      using _watch = call.rate?.watch(answer.body);
      const bytes = await session.whole(answer, call.mostBytes + prefixBytes, "a message", place);
      requireOk(answer, bytes, session, rules, call, place);
      return await messageIn(bytes, answer.headers["grpc-encoding"], call.mostBytes, place);
    } finally {
      answer.body.close();
    }
  };
  return (prefix, call, context) => session.withOtherToken(() => attempt(prefix, call, context));
}

function framed(message: Uint8Array): Buffer {
  const frame = Buffer.alloc(prefixBytes + message.byteLength);
  frame.writeUInt32BE(message.byteLength, 1);
  frame.set(message, prefixBytes);
  return frame;
}

/** At most eight digits and a unit. */
function timeoutText(ms: number): string {
  return ms < 100_000_000 ? `${ms}m` : `${Math.ceil(ms / 1000)}S`;
}

/** Throws for an answer that is not gRPC, by its status, such as one from a proxy. */
function requireGrpc(answer: Answer, place: ErrorPlace): void {
  const { status, headers } = answer;
  const isGrpc = /^application\/grpc(\+proto)?$/.test(mediaType(answer) ?? "");
  if (status === 200 && isGrpc) return;
  const byStatus = codeOfStatus(status);
  const code = byStatus === "refused" ? "not_a_gateway" : byStatus;
  const retryAfterMs = readRetryAfterMs(headers["retry-after"], Date.now());
  throw new RunvaultError(code, `the gateway answered HTTP ${status} instead of gRPC`, {
    place,
    status,
    hint:
      statusHints[code] ??
      "Check --gateway or RUNVAULT_GATEWAY: something else may be listening there, or a proxy in front of it does not pass gRPC.",
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

/** Throws unless the trailers report success; an answer without a body may have them as headers. */
function requireOk(
  { headers, trailers }: Answer,
  bytes: Buffer,
  session: HttpSession,
  rules: RpcRules,
  { withToken }: RpcCall,
  place: ErrorPlace,
): void {
  const behind = trailers?.();
  const ends = behind ?? (bytes.byteLength === 0 ? headers : {});
  const text = ends["grpc-status"];
  if (text === undefined) {
    throw new RunvaultError(
      "stream_cut",
      `the answer ended after ${bytes.byteLength} bytes without a grpc-status`,
      { place },
    );
  }
  if (!/^\d{1,2}$/.test(text) || Number(text) > Code.Unauthenticated) {
    throw new RunvaultError(
      "server_error",
      "the gateway answered with a grpc-status that gRPC does not have",
      {
        place,
      },
    );
  }
  const code = Number(text);
  if (code === 0) return;
  throw refusalError(
    {
      code,
      said: decoded(ends["grpc-message"] ?? ""),
      historyCode: undefined,
      retryAfterMs: pushbackMs(ends) ?? readRetryAfterMs(headers["retry-after"], Date.now()),
      httpStatus: codeToHttpStatus(code),
    },
    { rules, withToken, scrubber: session.scrubber, place },
  );
}

function pushbackMs(trailers: AnswerHeaders): number | undefined {
  const text = trailers["grpc-retry-pushback-ms"] ?? "";
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

/** The server's message, percent-decoded; invalid encoding is left as it is. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The single message of a body. Throws `stream_cut` if it is incomplete, `refused` for an unsupported encoding. */
async function messageIn(
  body: Buffer,
  encoding: string | undefined,
  mostBytes: number,
  place: ErrorPlace,
): Promise<Buffer> {
  if (body.byteLength < prefixBytes) {
    throw cut(`${body.byteLength === 0 ? "there is no message" : "it ends inside a length"}`, place);
  }
  const flag = body[0]!;
  const length = body.readUInt32BE(1);
  const held = body.byteLength - prefixBytes;
  if (held !== length) {
    throw cut(`its message should have ${length} bytes, but ${held} came`, place);
  }
  const message = body.subarray(prefixBytes);
  if (flag === 0) return message;
  if (flag !== 1 || encoding !== "gzip") {
    const shown = /^[\w-]{1,20}$/.test(encoding ?? "") ? encoding : "something else";
    throw new RunvaultError(
      "refused",
      flag === 1
        ? `the gateway compressed a message with ${encoding === undefined ? "something unnamed" : shown} instead of gzip`
        : `the gateway sent a message with the unknown flag ${flag}`,
      { place, hint: "Configure the gateway to use gzip or no compression: runvault asks for nothing else." },
    );
  }
  return await unzipped(message, mostBytes, place);
}

const unzip = promisify<Buffer, { maxOutputLength: number }, Buffer>(gunzip);

async function unzipped(message: Buffer, mostBytes: number, place: ErrorPlace): Promise<Buffer> {
  try {
    return await unzip(message, { maxOutputLength: mostBytes });
  } catch (cause) {
    const isTooLarge = (cause as { code?: unknown } | null)?.code === "ERR_BUFFER_TOO_LARGE";
    throw isTooLarge
      ? new RunvaultError("limit_exceeded", `the gateway sent a message of more than ${mostBytes} bytes`, {
          place,
        })
      : new RunvaultError("malformed_row", "a compressed message cannot be decompressed", { cause, place });
  }
}

function cut(what: string, place: ErrorPlace): RunvaultError {
  return new RunvaultError("stream_cut", `the gRPC answer is incomplete: ${what}`, { place });
}
