import { z } from "zod";
import { type ErrorCode, type ErrorPlace, RunvaultError } from "../../model/error.ts";
import { parseJson } from "../../model/outside-json.ts";
import { operatorText } from "../../model/text/operator-text.ts";
import type { Scrubber } from "../../model/text/scrubber.ts";
import type { GatewayContract } from "../contract.ts";
import { type Answer, limitBody } from "./answer.ts";
import { decodedBody } from "./decode.ts";
import { readRetryAfterMs } from "./retry-after.ts";

/** How an error's body is read: where its code is, and where its text for operators. */
export interface ErrorReading {
  /** Path of the code, by the names of nested objects. */
  readonly code: readonly string[];
  /** The meaning of a code under a status; undefined if unknown. */
  meaning(status: number, code: string): ErrorCode | undefined;
  /** The meaning of a code whatever the status, and its usual status; undefined if unknown. */
  usual(code: string): { readonly status: number; readonly code: ErrorCode } | undefined;
  /** Whether a code may be shown: any other may be anything, even an echoed token. */
  isKnown(code: string): boolean;
}

/** Errors of the contract: the envelopes of history and control routes have the code in the same place. */
export function contractErrors({ errors }: GatewayContract): ErrorReading {
  return {
    code: ["error", "code"],
    meaning: (status, code) => {
      const known = errors[status];
      return known !== undefined && Object.hasOwn(known, code) ? known[code] : undefined;
    },
    usual: (code) => {
      const [status, codes] = Object.entries(errors).find(([, codes]) => Object.hasOwn(codes, code)) ?? [];
      return codes && { status: Number(status), code: codes[code]! };
    },
    isKnown: (code) => Object.values(errors).some((codes) => Object.hasOwn(codes, code)),
  };
}

const words = z.string().optional().catch(undefined);
const wireCodes = z
  .union([z.string().max(200), z.number().transform(String)])
  .optional()
  .catch(undefined);
const saidSchema = z.object({ message: words, hint: words });

const errorBodyMaxBytes = 64 * 1024;
// the status is already known; a slow code is not worth a longer wait
const errorBodyMs = 5_000;

/**
 * An unsuccessful answer as an error, by status and code. Its message text is only shown. If the contract does not have
 * the code under this status, the status decides. Reads and closes the body.
 */
export async function errorFromAnswer(
  answer: Answer,
  reading: ErrorReading,
  scrubber: Scrubber,
  place: ErrorPlace,
): Promise<RunvaultError> {
  const { status, headers } = answer;
  const { wireCode, said } = readError(await readErrorJson(answer, place), reading);
  const code =
    (wireCode === undefined ? undefined : reading.meaning(status, wireCode)) ?? codeOfStatus(status);
  const retryAfterMs = readRetryAfterMs(headers["retry-after"], Date.now());
  const hint = status === 400 ? badRequestHint : statusHints[code];
  const what = `${status}${showCode(wireCode, reading)}${operatorText(said, scrubber)}`;
  return new RunvaultError(code, `the gateway answered ${what}`, {
    place,
    status,
    ...(hint === undefined ? {} : { hint }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

/**
 * An error in the JSON of an answer with status 200; `where` says how it came. An unknown code counts as a server
 * error.
 */
export function errorInBody(
  json: unknown,
  where: string,
  reading: ErrorReading,
  scrubber: Scrubber,
  place: ErrorPlace,
): RunvaultError {
  const { wireCode, said } = readError(json, reading);
  const { status, code } = (wireCode === undefined ? undefined : reading.usual(wireCode)) ?? {
    status: 200,
    code: "server_error",
  };
  const what = wireCode !== undefined && reading.isKnown(wireCode) ? `the error ${wireCode}` : "an error";
  const hint = status === 400 ? badRequestHint : statusHints[code];
  return new RunvaultError(code, `the gateway sent ${what} ${where}${operatorText(said, scrubber)}`, {
    place,
    status,
    ...(hint === undefined ? {} : { hint }),
  });
}

function readError(json: unknown, { code }: ErrorReading) {
  const around = objectAt(json, code.slice(0, -1));
  return {
    wireCode: wireCodes.parse(memberOf(around, code.at(-1) ?? "")),
    said: saidSchema.safeParse(around).data ?? {},
  };
}

/**
 * The meaning of a status alone. 400 is `refused`: the client built the request, so the user's command is not at fault.
 * 409 never means `history_unavailable`, which needs its code.
 */
export function codeOfStatus(status: number): ErrorCode {
  switch (status) {
    case 401:
      return "unauthenticated";
    case 403:
      return "permission_denied";
    case 404:
    case 405:
    case 410:
    case 501:
      return "route_not_found";
    case 408:
      return "timeout";
    case 413:
    case 414:
      return "limit_exceeded";
    case 421:
      return "misdirected";
    case 429:
      return "rate_limited";
    default:
      if (status >= 500) return "server_error";
      return status < 300 ? "not_a_gateway" : "refused";
  }
}

export const statusHints: Partial<Record<ErrorCode, string>> = {
  unauthenticated:
    "Set --token-file or RUNVAULT_TOKEN_FILE, and --token-header if the gateway expects the token in another header, or the profile's headers.",
  limit_exceeded:
    "The gateway refuses answers or requests of that size; with --transport rpc rows come in small pages.",
  misdirected:
    "The gateway does not answer to the host name in its address: use its IP address, or have its operator allow the name.",
  rate_limited:
    "The gateway limits requests: set --max-rps below its limit, or run the same command again later.",
  permission_denied:
    "The token is valid but lacks permission: ask the gateway's operator for it, or set another with --token-file or RUNVAULT_TOKEN_FILE.",
  history_identity_conflict:
    "The gateway does not know which run this id means: ask its operator, and archive the run again when that is fixed.",
  history_unavailable: "The gateway keeps no such table for this run; if it should, ask its operator.",
  incomplete: "The gateway has not proven the table itself: archive the run again when it has.",
  route_not_found:
    "The gateway has no such path: check --gateway or RUNVAULT_GATEWAY, which often ends in /api/v1.",
};

/** What to do if a token was sent in this header and refused. */
export function refusedTokenHint(header: string): string {
  const sent =
    header.toLowerCase() === "authorization" ? "as Authorization: Bearer TOKEN" : `in the header ${header}`;
  return `The token was sent, ${sent}, and the gateway refuses it: check that it is this gateway's and still valid, or set --token-header if it belongs in another header.`;
}

export const badRequestHint =
  "The gateway rejects this request: its interface may differ from the contract in proto/; its log may say why.";

/**
 * The JSON value of an error's body; undefined if it is truncated, slow, long or invalid. Reads and closes the body.
 */
export async function readErrorJson(answer: Answer, place: ErrorPlace): Promise<unknown> {
  const parts: Buffer[] = [];
  let bytes = 0;
  using _deadline = limitBody(answer.body, errorBodyMs, place);
  try {
    for await (const chunk of decodedBody(answer, place)) {
      bytes += chunk.length;
      if (bytes > errorBodyMaxBytes) return undefined;
      parts.push(chunk);
    }
    return parseJson(Buffer.concat(parts).toString("utf8"));
  } catch (thrown) {
    // without a readable body, the status still says which error it is
    if (thrown instanceof SyntaxError) return undefined;
    if (thrown instanceof RunvaultError && thrown.code !== "interrupted") return undefined;
    throw thrown;
  } finally {
    answer.body.close();
  }
}

function showCode(wireCode: string | undefined, reading: ErrorReading): string {
  if (wireCode === undefined) return "";
  return reading.isKnown(wireCode) ? ` ${wireCode}` : " with an unknown code";
}

function objectAt(json: unknown, path: readonly string[]): unknown {
  return path.reduce(memberOf, json);
}

function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as Record<string, unknown>)[name];
}
