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

// other JSON answers, such as a REST route's, have no code at the top
const connectShape = z.looseObject({ code: z.string() });

/** REST has its own status for these; Connect over HTTP uses 400, as for wrong requests. */
const restStatus: Readonly<Record<string, number>> = { failed_precondition: 409, out_of_range: 413 };

/**
 * An unsuccessful RPC answer as an error: by the history code in its details, or else by its Connect code, or, without
 * a Connect error, by its status. Its message is only shown. A refused page token is `stream_cut`: earlier rows stay
 * valid. Reads and closes the body.
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
    // a redirect, or a refusal in another protocol: Connect servers say what they refuse
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

/** A refused call, in either protocol. */
export interface Refusal {
  readonly code: Code;
  /** The server's own words. */
  readonly said: string;
  readonly historyCode: string | undefined;
  readonly retryAfterMs: number | undefined;
  /** Connect's HTTP status for the code. */
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
  // only codes of the contract are shown: others may be anything
  const names = isKnown ? `${connectCode} ${historyCode}` : connectCode;
  const shown = names + operatorText({ message: said }, scrubber);
  const code = (isKnown ? rules.historyCodes[historyCode] : rules.codes[connectCode]) ?? "server_error";
  // a history code more specific than a wrong request is not about the token
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

/** The error in a Connect body; undefined if there is none. */
function connectErrorOf(json: unknown, status: number): ConnectError | undefined {
  if (!connectShape.safeParse(json).success) return undefined;
  const fallback = new ConnectError(`HTTP ${status}`, codeFromHttpStatus(status));
  try {
    return errorFromJson(json as Parameters<typeof errorFromJson>[0], undefined, fallback);
  } catch {
    // an invalid message or details beside a code: this throws the fallback, which did not come from the gateway
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
