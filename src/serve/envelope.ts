import { create, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import {
  ErrorCode as ControlCode,
  ErrorEnvelopeSchema,
  type GatewayErrorSchema,
} from "../gen/example/gateway/v1/error_pb.ts";
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
}

const upstream = (history: string, control: ControlCode = ControlCode.UPSTREAM_FAILED): WireError => ({
  status: 502,
  history,
  control,
});
const notFound = (history: string, control: ControlCode): WireError => ({ status: 404, history, control });

/** What each of our codes is on the wire; what is not named here is a failed history query. */
const wireErrors: Partial<Record<ErrorCode, WireError>> = {
  invalid_argument: { status: 400, history: "invalid_argument", control: ControlCode.INVALID_ARGUMENT },
  table_unknown: { status: 400, history: "invalid_argument", control: ControlCode.INVALID_ARGUMENT },
  unauthenticated: { status: 401, history: "unauthenticated", control: ControlCode.UNAUTHENTICATED },
  permission_denied: { status: 403, history: "permission_denied", control: ControlCode.PERMISSION_DENIED },
  run_not_found: notFound("run_not_found", ControlCode.RESOURCE_NOT_FOUND),
  not_archived: notFound("run_not_found", ControlCode.RESOURCE_NOT_FOUND),
  instance_not_found: notFound("instance_not_found", ControlCode.INSTANCE_NOT_FOUND),
  resource_not_found: notFound("resource_not_found", ControlCode.RESOURCE_NOT_FOUND),
  route_not_found: notFound("route_not_found", ControlCode.ROUTE_NOT_FOUND),
  history_identity_conflict: {
    status: 409,
    history: "history_identity_conflict",
    control: ControlCode.STATE_CONFLICT,
  },
  history_unavailable: {
    status: 409,
    history: "history_unavailable",
    control: ControlCode.CAPABILITY_UNAVAILABLE,
  },
  capability_unavailable: {
    status: 409,
    history: "history_unavailable",
    control: ControlCode.CAPABILITY_UNAVAILABLE,
  },
  state_conflict: {
    status: 409,
    history: "history_identity_conflict",
    control: ControlCode.STATE_CONFLICT,
  },
  limit_exceeded: { status: 413, history: "limit_exceeded", control: ControlCode.LIMIT_EXCEEDED },
  rate_limited: { status: 429, history: "rate_limited", control: ControlCode.RATE_LIMITED },
  history_unreachable: upstream("history_unreachable", ControlCode.UPSTREAM_UNREACHABLE),
  unreachable: upstream("history_unreachable", ControlCode.UPSTREAM_UNREACHABLE),
  timeout: upstream("history_unreachable", ControlCode.UPSTREAM_UNREACHABLE),
  stream_cut: upstream("history_unreachable", ControlCode.UPSTREAM_UNREACHABLE),
  history_query_failed: upstream("history_query_failed"),
  internal: { status: 500, history: "internal", control: ControlCode.INTERNAL },
};

/** An error in the envelope of its plane: `history` routes have `ok` and no more, the others the protobuf envelope. */
export function errorAnswer(plane: "history" | "control", error: RunvaultError): ErrorAnswer {
  const wire = wireErrors[error.code] ?? upstream("history_query_failed");
  const headers: Record<string, string> = {};
  if (error.retryAfterMs !== undefined) headers["retry-after"] = String(Math.ceil(error.retryAfterMs / 1000));
  if (wire.status === 401) headers["www-authenticate"] = "Bearer";
  if (plane === "history") {
    return {
      status: wire.status,
      headers,
      body: { ok: false, error: { code: wire.history, message: error.message } },
    };
  }
  const envelope = create(ErrorEnvelopeSchema, { error: gatewayError(error) });
  return {
    status: wire.status,
    headers,
    body: toJson(ErrorEnvelopeSchema, envelope, { alwaysEmitImplicit: true }),
  };
}

/** An error as the control and live planes put it. */
export function gatewayError(error: RunvaultError): MessageInitShape<typeof GatewayErrorSchema> {
  const wire = wireErrors[error.code] ?? upstream("history_query_failed");
  return {
    code: wire.control,
    message: error.message,
    capability: error.capability ?? "",
    upstreamCode: wire.status === 502 ? error.code : "",
    hint: error.hint ?? "",
  };
}

/** Anything thrown while a request is answered, as a RunvaultError; fastify's own refusals by their status. */
export function requestError(thrown: unknown): RunvaultError {
  const status = (thrown as { statusCode?: unknown } | null)?.statusCode;
  if (!(thrown instanceof RunvaultError) && typeof status === "number" && status >= 400 && status < 500) {
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    return new RunvaultError("invalid_argument", message, { cause: thrown });
  }
  return RunvaultError.from(thrown);
}
