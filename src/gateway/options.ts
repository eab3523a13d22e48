import { z } from "zod";
import { RunvaultError } from "../model/error.ts";
import { longestTimerMs } from "../model/retry/deadline.ts";
import { type RetryPolicy, retryPolicy } from "../model/retry/retry-policy.ts";
import { tokenFault } from "../model/secret-file.ts";
import type { LeastRate } from "./http/row-rate.ts";
import type { Profile } from "./profile/profile.ts";

/** How to reach a gateway over REST. Everything but the address has a default. */
export interface GatewayOptions {
  /** http or https address, to which the paths are appended unchanged; a user and password in it are secret. */
  readonly baseUrl: string;
  /** The token; never printed. */
  readonly token?: string | undefined;
  /**
   * Returns the current token, once the gateway has refused the old one, because secrets rotate while a job runs. A
   * request with a new token is sent again. Default: a refused token stays refused.
   */
  readonly renewToken?: (() => Promise<string>) | undefined;
  /**
   * Header of the token. Default `Authorization`, which sends `Bearer TOKEN`; any other header sends just the token.
   */
  readonly tokenHeader?: string | undefined;
  /** Longest wait for a connection. Default 10,000: a round trip and a TLS handshake, even across an ocean. */
  readonly connectTimeoutMs?: number | undefined;
  /** Longest wait for an answer's headers. Default 60,000: a gateway may run its query before it answers. */
  readonly headersTimeoutMs?: number | undefined;
  /** Longest silence inside an answer. Default 60,000; it does not run while the reader itself pauses. */
  readonly bodyIdleTimeoutMs?: number | undefined;
  /** Longest time for the body of one document. Default 120,000: enough for 16 MiB over a slow line. */
  readonly documentTimeoutMs?: number | undefined;
  /** Minimum rate of rows, else `too_slow`. Default: none, because slow links are legitimate. */
  readonly leastRate?: LeastRate | undefined;
  /** How failed requests are retried. Default: `retryPolicy()`. */
  readonly retry?: RetryPolicy | undefined;
  /** Requests started a second, retries included. Default: no limit. */
  readonly maxRequestsPerSecond?: number | undefined;
  /** Row answers open at the same time, and as many documents in addition. Default 4: more rarely adds throughput. */
  readonly concurrency?: number | undefined;
  /** Whether to ask for zstd or gzip. Default: not on loopback, where compressing costs more than it saves. */
  readonly compressed?: boolean | undefined;
  /**
   * Whether to accept uncompressed rows with neither Content-Length nor chunks. Default false: truncation would look
   * like the end of such an answer.
   */
  readonly acceptUnframed?: boolean | undefined;
  /** Whether http_proxy and https_proxy also apply to loopback addresses. Default false. */
  readonly proxyLoopback?: boolean | undefined;
  /**
   * Called each time that rows begin to come in short-lived buffers outside V8's heap: over RPC page by page, and when
   * a profile makes them canonical.
   */
  readonly onRowBuffers?: (() => void) | undefined;
  /** Called once for each notable fact that is not an error: unknown fields, refused requests. */
  readonly onNotice?: ((text: string) => void) | undefined;
  /** Certificates to trust instead of the system's, PEM. */
  readonly ca?: string | undefined;
  /** Client certificate, PEM. */
  readonly cert?: string | undefined;
  /** Key of the client certificate, PEM; never printed. */
  readonly key?: string | undefined;
  /** How the gateway differs from the built-in contract. Default: not at all. */
  readonly profile?: Profile | undefined;
  /** Headers of every request, by name, besides that of the token; values are never printed. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Query parameters of every REST request; values are secrets, never printed. */
  readonly keys?: Readonly<Record<string, string>> | undefined;
}

const ms = z.int().min(1).max(longestTimerMs);
const pem = z.string().min(1);
const policy = z.custom<RetryPolicy>(
  (value) => typeof value === "object" && value !== null,
  "must be a retry policy",
);

/** Characters of a header name. */
export const headerNamePattern = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Headers about framing and the form of answers, which a profile must not set. */
export const ownHeaders: readonly string[] = [
  "accept",
  "accept-encoding",
  "connection",
  "content-length",
  "content-type",
  "expect",
  "host",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];

/** A token that fits into a header. */
export const tokenSchema = z
  .string()
  .max(65_536)
  .superRefine((token, context) => {
    const fault = tokenFault(token);
    if (fault !== null) context.addIssue(fault);
  });

/** A header value: a line break would start another header. */
const headerValue = z
  .string()
  .regex(/^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/, "must be printable ASCII in one line");

const schema = z.strictObject({
  baseUrl: z.string().min(1).max(8192),
  token: tokenSchema.optional(),
  renewToken: z
    .custom<() => Promise<string>>((value) => typeof value === "function", "must be a function")
    .optional(),
  tokenHeader: z.string().regex(headerNamePattern, "must be a header name").default("Authorization"),
  connectTimeoutMs: ms.default(10_000),
  headersTimeoutMs: ms.default(60_000),
  bodyIdleTimeoutMs: ms.default(60_000),
  documentTimeoutMs: ms.default(120_000),
  leastRate: z.strictObject({ bytesPerSecond: z.number().positive(), windowMs: ms }).optional(),
  retry: policy.default(() => retryPolicy()),
  maxRequestsPerSecond: z.number().positive().min(0.001).max(1_000_000).optional(),
  concurrency: z.int().min(1).max(256).default(4),
  compressed: z.boolean().optional(),
  acceptUnframed: z.boolean().default(false),
  proxyLoopback: z.boolean().default(false),
  onRowBuffers: z.custom<() => void>((value) => typeof value === "function", "must be a function").optional(),
  onNotice: z
    .custom<(text: string) => void>((value) => typeof value === "function", "must be a function")
    .optional(),
  ca: pem.optional(),
  cert: pem.optional(),
  key: pem.optional(),
  profile: z
    .custom<Profile>((value) => typeof value === "object" && value !== null, "must be a profile")
    .optional(),
  headers: z
    .record(z.string().regex(headerNamePattern, "must be a header name"), headerValue.max(65_536))
    .default({}),
  keys: z.record(z.string().min(1), z.string().min(1).max(8192)).default({}),
});

/** The options with their defaults filled in. */
export type CheckedOptions = z.output<typeof schema>;

/** Checks the options once. Throws `invalid_argument` that names the option and never shows its value. */
export function checkOptions(options: GatewayOptions): CheckedOptions {
  const checked = schema.safeParse(options);
  if (!checked.success) {
    const problems = checked.error.issues.map(
      ({ path, message }) => `${path.length === 0 ? "" : `${path.join(".")}: `}${message}`,
    );
    throw new RunvaultError("invalid_argument", `gateway options: ${problems.join("; ")}`);
  }
  if ((checked.data.cert === undefined) !== (checked.data.key === undefined)) {
    throw new RunvaultError(
      "invalid_argument",
      "gateway options: a client certificate needs its key, and a key its certificate",
    );
  }
  return checked.data;
}
