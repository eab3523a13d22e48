import { type Code, ConnectError } from "@connectrpc/connect";
import { codeFromHttpStatus, codeToString, errorFromJson } from "@connectrpc/connect/protocol-connect";
import { z } from "zod";
import { HistoryErrorDetailSchema } from "../../gen/example/history/v1/history_service_pb.ts";
import { type ErrorCode, type ErrorPlace, RunvaultError } from "../../model/error.ts";
import { operatorText } from "../../model/text/operator-text.ts";
import type { Scrubber } from "../../model/text/scrubber.ts";
import type { RpcRules } from "../contract.ts";
import type { Answer } from "../http/answer.ts";
import { badRequestHint, codeOfStatus, readErrorJson, statusHints } from "../http/error-answer.ts";
import { readRetryAfterMs } from "../http/retry-after.ts";

// what else answers in JSON, a REST route say, has no code at the top
const connectShape = z.looseObject({ code: z.string() });

/** What REST says by a status of its own; HTTP under Connect has 400 for these, as for requests that are wrong. */
const restStatus: Readonly<Record<string, number>> = { failed_precondition: 409, out_of_range: 413 };

/**
 * An RPC answer that is not a success, as an error: by the history code in its details, else by its Connect code, else,
 * where the body is no Connect error, by its status; never by its message, which is shown alone. Where the request carried a page token that
 * is refused, `stream_cut`: what came before stands. Reads and closes the body.
 */
export async function errorFromRpcAnswer(
  answer: Answer,
  rules: RpcRules,
  withToken: boolean,
  scrubber: Scrubber,
  place: ErrorPlace,
): Promise<RunvaultError> {
  const { status, headers } = answer;
  const error = connectErrorOf(await readErrorJson(answer, place), status);
  const retryAfterMs = readRetryAfterMs(headers["retry-after"], Date.now());
  const details = { place, status, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
  if (error === undefined) {
    const byStatus = codeOfStatus(status);
    // a redirect, or a refusal in another protocol's words: whoever speaks Connect says what it refuses
    const code = byStatus === "refused" ? "not_a_gateway" : byStatus;
    return new RunvaultError(code, `the gateway answered ${status}, without a Connect error`, {
      ...details,
      ...hintFor(code, status),
    });
  }
  return refusalError(
    {
      code: error.code,
      said: error.rawMessage,
      historyCode: error.findDetails(HistoryErrorDetailSchema)[0]?.code,
      retryAfterMs,
      httpStatus: status,
    },
    { rules, withToken, scrubber, place },
  );
}

/** How a call was refused, by whichever protocol. */
export interface Refusal {
  readonly code: Code;
  /** The server's own words. */
  readonly said: string;
  readonly historyCode: string | undefined;
  readonly retryAfterMs: number | undefined;
  /** As Connect has it for the code. */
  readonly httpStatus: number;
}

/** A refusal as an error: see `errorFromRpcAnswer`. */
export function refusalError(
  { code: rpcCode, said, historyCode, retryAfterMs, httpStatus: status }: Refusal,
  {
    rules,
    withToken,
    scrubber,
    place,
  }: {
    readonly rules: RpcRules;
    readonly withToken: boolean;
    readonly scrubber: Scrubber;
    readonly place: ErrorPlace;
  },
): RunvaultError {
  const details = { place, status, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
  const connectCode = codeToString(rpcCode);
  const isKnown = historyCode !== undefined && Object.hasOwn(rules.historyCodes, historyCode);
  // only codes that the contract knows are shown: any other may be anything
  const names = isKnown ? `${connectCode} ${historyCode}` : connectCode;
  const shown = names + operatorText({ message: said }, scrubber);
  const code = (isKnown ? rules.historyCodes[historyCode] : rules.codes[connectCode]) ?? "server_error";
  // a history code that says more than that the request is wrong is about something else than the token
  if (withToken && rules.tokenRefusals.has(connectCode) && (!isKnown || code === "refused")) {
    return new RunvaultError(
      "stream_cut",
      `the gateway no longer accepts its own page token: ${shown}`,
      details,
    );
  }
  const meant = isKnown ? status : (restStatus[connectCode] ?? status);
  return new RunvaultError(code, `the gateway answered ${shown}`, {
    ...details,
    status: meant,
    ...hintFor(code, status),
  });
}

/** The error in a Connect body; undefined where the body is none. */
function connectErrorOf(json: unknown, status: number): ConnectError | undefined {
  if (!connectShape.safeParse(json).success) return undefined;
  const fallback = new ConnectError(`HTTP ${status}`, codeFromHttpStatus(status));
  try {
    return errorFromJson(json as Parameters<typeof errorFromJson>[0], undefined, fallback);
  } catch {
    // a code beside a message or details that are none: throws the fallback, which is not what came
    return undefined;
  }
}

function hintFor(code: ErrorCode, status: number): { readonly hint?: string } {
  if (status >= 300 && status < 400) {
    return {
      hint: "Set --gateway or RUNVAULT_GATEWAY to the address that the redirect leads to: over RPC redirects are not followed.",
    };
  }
  if (code === "route_not_found") {
    return {
      hint: "The gateway has no such RPC method: check --gateway or RUNVAULT_GATEWAY, or use --transport rest.",
    };
  }
  const hint = code === "refused" ? badRequestHint : statusHints[code];
  return hint === undefined ? {} : { hint };
}
