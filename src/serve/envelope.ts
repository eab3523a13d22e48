import { create, toJson } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  ErrorCode as ControlCode,
  ErrorCodeSchema,
  ErrorEnvelopeSchema,
  type GatewayError,
  GatewayErrorSchema,
} from "../gen/example/gateway/v1/error_pb.ts";
import { HistoryErrorDetailSchema } from "../gen/example/history/v1/history_service_pb.ts";
import { type ErrorCode, RunvaultError } from "../model/error.ts";

/** An error answer: status, headers and JSON body. */
export interface ErrorAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

interface WireError {
  readonly status: number;
  /** Code on history routes. */
  readonly history: string;
  /** Code on control and live routes. */
  readonly control: ControlCode;
  /** Code over Connect, on every service. */
  readonly connect: Code;
}

const upstream = (history: string, control: ControlCode, connect: Code): WireError => ({
  status: 502,
  history,
  control,
  connect,
});
const refusal = (status: number, history: string, control: ControlCode, connect: Code): WireError => ({
  status,
  history,
  control,
  connect,
});
const notFound = (history: string, control: ControlCode) => refusal(404, history, control, Code.NotFound);
const invalid = refusal(400, "invalid_argument", ControlCode.INVALID_ARGUMENT, Code.InvalidArgument);
const unreachable = upstream("history_unreachable", ControlCode.UPSTREAM_UNREACHABLE, Code.Unavailable);
const queryFailed = upstream("history_query_failed", ControlCode.UPSTREAM_FAILED, Code.Internal);

/** The wire form of each of our codes; codes not listed are failed history queries. */
const wireErrors: Partial<Record<ErrorCode, WireError>> = {
  invalid_argument: invalid,
  table_unknown: invalid,
  unauthenticated: refusal(401, "unauthenticated", ControlCode.UNAUTHENTICATED, Code.Unauthenticated),
  permission_denied: refusal(403, "permission_denied", ControlCode.PERMISSION_DENIED, Code.PermissionDenied),
  run_not_found: notFound("run_not_found", ControlCode.RESOURCE_NOT_FOUND),
  not_archived: notFound("run_not_found", ControlCode.RESOURCE_NOT_FOUND),
  instance_not_found: notFound("instance_not_found", ControlCode.INSTANCE_NOT_FOUND),
  resource_not_found: notFound("resource_not_found", ControlCode.RESOURCE_NOT_FOUND),
  gone: refusal(410, "gone", ControlCode.RESOURCE_NOT_FOUND, Code.NotFound),
  route_not_found: notFound("route_not_found", ControlCode.ROUTE_NOT_FOUND),
  history_identity_conflict: refusal(
    409,
    "history_identity_conflict",
    ControlCode.STATE_CONFLICT,
    Code.Aborted,
  ),
  history_unavailable: refusal(
    409,
    "history_unavailable",
    ControlCode.CAPABILITY_UNAVAILABLE,
    Code.FailedPrecondition,
  ),
  // not in the gateway's contract: an incomplete table is not a missing one
  incomplete: refusal(409, "history_incomplete", ControlCode.CAPABILITY_UNAVAILABLE, Code.FailedPrecondition),
  capability_unavailable: refusal(
    409,
    "history_unavailable",
    ControlCode.CAPABILITY_UNAVAILABLE,
    Code.FailedPrecondition,
  ),
  state_conflict: refusal(
    409,
    "history_identity_conflict",
    ControlCode.STATE_CONFLICT,
    Code.FailedPrecondition,
  ),
  misdirected: refusal(421, "misdirected", ControlCode.MISDIRECTED, Code.PermissionDenied),
  // not resource_exhausted, which rate_limited uses and which invites a retry
  limit_exceeded: refusal(413, "limit_exceeded", ControlCode.LIMIT_EXCEEDED, Code.OutOfRange),
  rate_limited: refusal(429, "rate_limited", ControlCode.RATE_LIMITED, Code.ResourceExhausted),
  history_unreachable: unreachable,
  unreachable,
  timeout: unreachable,
  stream_cut: unreachable,
  history_query_failed: queryFailed,
  internal: refusal(500, "internal", ControlCode.INTERNAL, Code.Internal),
};

/** A plane's codes with their statuses, such as `404 run_not_found`, each once. */
export function wireCodes(plane: "history" | "control"): string[] {
  const named = Object.values(wireErrors).map(({ status, history, control }) =>
    plane === "history" ? `${status} ${history}` : `${status} ${ErrorCodeSchema.value[control]?.name}`,
  );
  return [...new Set(named)].sort();
}

/** An error in its plane's envelope: `history` routes only have `ok`, the others the protobuf envelope. */
export function errorAnswer(plane: "history" | "control", error: RunvaultError): ErrorAnswer {
  const wire = wireErrors[error.code] ?? queryFailed;
  const headers = errorHeaders(wire, error);
  if (plane === "history") {
    return {
      status: wire.status,
      headers,
      body: { ok: false, error: { code: wire.history, message: messageOnWire(error) } },
    };
  }
  const envelope = create(ErrorEnvelopeSchema, { error: gatewayError(error) });
  return {
    status: wire.status,
    headers,
    body: toJson(ErrorEnvelopeSchema, envelope, { alwaysEmitImplicit: true }),
  };
}

/** An error over Connect, with its plane's code as the detail. */
export function connectError(plane: "history" | "control", error: RunvaultError): ConnectError {
  const wire = wireErrors[error.code] ?? queryFailed;
  const detail =
    plane === "history"
      ? { desc: HistoryErrorDetailSchema, value: { code: wire.history } }
      : { desc: GatewayErrorSchema, value: gatewayError(error) };
  return new ConnectError(messageOnWire(error), wire.connect, errorHeaders(wire, error), [detail], error);
}

function errorHeaders({ status }: WireError, { retryAfterMs }: RunvaultError): Record<string, string> {
  return {
    ...(retryAfterMs === undefined ? {} : { "retry-after": String(Math.ceil(retryAfterMs / 1000)) }),
    ...(status === 401 ? { "www-authenticate": "Bearer" } : {}),
  };
}

/** Whether to report an error to the server's owner, because clients do not see its message. */
export function isForOwner({ code, status }: RunvaultError): boolean {
  return code.startsWith("storage_") || code === "archive_damaged" || isBug(code, status);
}

/** Errors with a status came from another gateway or a wire hook. */
function isBug(code: ErrorCode, status: number | undefined): boolean {
  return code === "internal" && status === undefined;
}

/**
 * The message for clients: system messages contain full paths, and those of bugs our own names, so neither is shown.
 */
export function messageOnWire({ code, status, message }: RunvaultError): string {
  if (isBug(code, status)) return "internal error of the service";
  return code.startsWith("storage_") ? `stored data cannot be read (${code})` : message;
}

/** An error in the form of the control and live planes. */
export function gatewayError(error: RunvaultError): Omit<GatewayError, "$typeName" | "$unknown"> {
  const wire = wireErrors[error.code] ?? queryFailed;
  return {
    code: wire.control,
    message: messageOnWire(error),
    capability: error.capability ?? "",
    upstreamCode: wire.status === 502 ? error.code : "",
    hint: error.hint ?? "",
  };
}

/** Turns anything thrown while a request is answered into a RunvaultError; fastify's own refusals by their status. */
export function requestError(thrown: unknown): RunvaultError {
  const status = (thrown as { statusCode?: unknown } | null)?.statusCode;
  if (!(thrown instanceof RunvaultError) && typeof status === "number" && status >= 400 && status < 500) {
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    return new RunvaultError("invalid_argument", message, { cause: thrown });
  }
  return RunvaultError.from(thrown);
}
