import { errors } from "undici";
import { type ErrorCode, type ErrorPlace, RunvaultError } from "../../model/error.ts";

/** How far an answer had come when its transport failed. */
export interface Progress {
  readonly place: ErrorPlace;
  /** Undefined before the answer's headers. */
  readonly receivedBytes: number | undefined;
}

/**
 * Turns an error of undici or Node into a RunvaultError by its code: `timeout`; `stream_cut` inside a body;
 * `unreachable` before it; `refused` for an untrusted certificate on either side; `not_a_gateway` for anything but
 * HTTP. An error without a code is our own fault, `internal`.
 */
export function transportError(thrown: unknown, { place, receivedBytes }: Progress): RunvaultError {
  if (thrown instanceof RunvaultError) return thrown;
  const systemCode = codeOf(thrown);
  // the parser's error quotes what came, which may be anything
  const details = thrown instanceof errors.HTTPParserError ? { place } : { cause: thrown, place };
  // an error without a code is not a transport failure
  if (typeof systemCode !== "string") return RunvaultError.from(thrown, details);
  if (timeouts.has(systemCode)) {
    const where = receivedBytes === undefined ? timeouts.get(systemCode) : `after ${receivedBytes} bytes`;
    return new RunvaultError("timeout", `the gateway was silent for too long ${where}`, details);
  }
  if (receivedBytes !== undefined) {
    const message = `the answer broke off after ${receivedBytes} bytes (${systemCode})`;
    return new RunvaultError("stream_cut", message, details);
  }
  const [code, message, hint] = beforeHeaders(systemCode);
  return new RunvaultError(code, `${message} (${systemCode})`, { ...details, hint });
}

function codeOf(thrown: unknown): unknown {
  // the parser's error has no code for some input that is not HTTP at all
  if (thrown instanceof errors.HTTPParserError) return thrown.code ?? "HPE_INVALID";
  return (thrown as { code?: unknown } | null)?.code;
}

const timeouts = new Map<string, string>([
  ["UND_ERR_CONNECT_TIMEOUT", "while connecting"],
  ["ETIMEDOUT", "while connecting"],
  ["UND_ERR_HEADERS_TIMEOUT", "before answering"],
  ["UND_ERR_BODY_TIMEOUT", "in the middle of its answer"],
]);

function beforeHeaders(systemCode: string): [ErrorCode, string, string] {
  if (/^(CERT_|ERR_TLS|UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|HOSTNAME_MISMATCH)/.test(systemCode)) {
    return [
      "refused",
      "the gateway's certificate is not trusted",
      "Set --ca or RUNVAULT_CA to the authority that signed it, or correct the host name in --gateway.",
    ];
  }
  // with TLS 1.3 the server checks a client's certificate after the client considers itself connected
  if (/^ERR_SSL_.*ALERT_.*(CERTIFICATE|UNKNOWN_CA|HANDSHAKE_FAILURE|ACCESS_DENIED)/.test(systemCode)) {
    return [
      "refused",
      "the gateway rejects this client's certificate, or requires one",
      "Set --cert and --key (RUNVAULT_CERT, RUNVAULT_KEY) to a certificate that the gateway accepts.",
    ];
  }
  // contradictory lengths show while the headers are read
  if (
    /^(HPE_|ERR_NO_HTTP2|ERR_SSL|EPROTO|UND_ERR_HEADERS_OVERFLOW|UND_ERR_RES_CONTENT_LENGTH)/.test(systemCode)
  ) {
    return [
      "not_a_gateway",
      "what listens there does not speak this protocol",
      "Check the port in --gateway, and whether it should be http or https.",
    ];
  }
  // 407 from a proxy; our own arguments are checked before
  if (systemCode === "UND_ERR_INVALID_ARG") {
    return [
      "refused",
      "the proxy rejects the credentials, or requires some",
      "Set the user name and password in http_proxy or https_proxy.",
    ];
  }
  // a proxy that answers CONNECT with another status shows as an abort or a close; ours carry their own errors
  if (/^UND_ERR_(PRX|ABORTED|DESTROYED|CLOSED)/.test(systemCode)) {
    return [
      "unreachable",
      "the proxy did not connect to the gateway",
      "Check http_proxy, https_proxy and no_proxy.",
    ];
  }
  if (systemCode === "ECONNREFUSED") {
    return [
      "unreachable",
      "nothing is listening there",
      "Check --gateway or RUNVAULT_GATEWAY, and that the gateway is running.",
    ];
  }
  if (systemCode === "ENOTFOUND" || systemCode === "EAI_AGAIN") {
    return [
      "unreachable",
      "the host name cannot be resolved",
      "Check the host name in --gateway or RUNVAULT_GATEWAY, and DNS.",
    ];
  }
  return [
    "unreachable",
    "the connection failed before an answer came",
    "Check the network, and that the gateway is running.",
  ];
}
