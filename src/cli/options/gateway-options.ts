import { readFile } from "node:fs/promises";
import { type Command, Option } from "commander";
import { z } from "zod";
import type { Gateway } from "../../gateway/gateway.ts";
import type { GatewayOptions } from "../../gateway/options.ts";
import { transportChoices } from "../../gateway/transport-choice.ts";
import { RunvaultError } from "../../model/error.ts";
import { type RetryPolicy, retryPolicy } from "../../model/retry/retry-policy.ts";
import { readSecretFile, readTokenFile, renewedToken } from "../../model/secret-file.ts";
import { hideParts } from "../../model/text/address-secrets.ts";
import { unreadable } from "../../model/unreadable.ts";
import { countBuffersWithHeap } from "../apart/external-memory.ts";
import type { Session } from "../process/session.ts";
import { groupOptions } from "./group-options.ts";
import { durationMs, httpAddress, nonEmpty, positiveNumber, wholeNumber } from "./option-values.ts";
import { secretReading } from "./secret-reading.ts";

/** Schema of the options that `addGatewayOptions` declares. */
export const gatewayShape = {
  gateway: httpAddress.optional(),
  transport: z.enum(transportChoices),
  adapter: nonEmpty.optional(),
  tokenFile: nonEmpty.optional(),
  tokenHeader: nonEmpty.optional(),
  maxRps: positiveNumber.optional(),
  concurrency: wholeNumber(1, 256),
  retries: wholeNumber(0, 1000),
  connectTimeout: durationMs,
  headersTimeout: durationMs,
  idleTimeout: durationMs,
  documentTimeout: durationMs,
  acceptUnframed: z.boolean().default(false),
  compression: z.boolean(),
  ca: nonEmpty.optional(),
  cert: nonEmpty.optional(),
  key: nonEmpty.optional(),
  profile: nonEmpty.optional(),
};

/** Names of these options, for commands that only sometimes ask a gateway. */
export const gatewayOptionNames: readonly string[] = Object.keys(gatewayShape);

const gatewaySchema = z.object(gatewayShape);
export type GatewayValues = z.output<typeof gatewaySchema>;

/** Declares the options for reaching a gateway. With `declareGateway` false the caller declares `--gateway` itself. */
export function addGatewayOptions(command: Command, declareGateway = true): Command {
  if (declareGateway) {
    command.addOption(
      new Option("--gateway <url>", "the gateway's base address, ending in /api/v1").env("RUNVAULT_GATEWAY"),
    );
  }
  command
    .addOption(
      new Option("--transport <kind>", "protocol to use; auto detects what the gateway offers")
        .env("RUNVAULT_TRANSPORT")
        .choices(transportChoices)
        .default("auto"),
    )
    .addOption(
      new Option(
        "--adapter <file>",
        "module that replaces the built-in client for this gateway; its code is run",
      ),
    )
    .addOption(
      new Option("--token-file <file>", "file with the token; or put the token itself in RUNVAULT_TOKEN").env(
        "RUNVAULT_TOKEN_FILE",
      ),
    )
    .addOption(
      new Option(
        "--token-header <name>",
        "header that carries the token (default: Authorization, as a bearer token)",
      ).env("RUNVAULT_TOKEN_HEADER"),
    )
    .addOption(
      new Option("--max-rps <n>", "maximum number of requests started per second").env("RUNVAULT_MAX_RPS"),
    )
    .addOption(
      new Option("--concurrency <n>", "maximum number of row requests at a time")
        .env("RUNVAULT_CONCURRENCY")
        .default("4"),
    )
    .addOption(
      new Option("--retries <n>", "how often a failed request is retried")
        .env("RUNVAULT_RETRIES")
        .default("5"),
    )
    .addOption(
      new Option("--connect-timeout <time>", "longest wait for a connection")
        .env("RUNVAULT_CONNECT_TIMEOUT")
        .default("10s"),
    )
    .addOption(
      new Option("--headers-timeout <time>", "longest wait for an answer to start")
        .env("RUNVAULT_HEADERS_TIMEOUT")
        .default("60s"),
    )
    .addOption(
      new Option("--idle-timeout <time>", "longest silence within an answer")
        .env("RUNVAULT_IDLE_TIMEOUT")
        .default("60s"),
    )
    .addOption(
      new Option("--document-timeout <time>", "longest time for a whole document to arrive")
        .env("RUNVAULT_DOCUMENT_TIMEOUT")
        .default("2m"),
    )
    .addOption(
      new Option(
        "--accept-unframed",
        "accept uncompressed rows without Content-Length or chunks, although a truncated answer would look complete",
      ).env("RUNVAULT_ACCEPT_UNFRAMED"),
    )
    .addOption(
      new Option(
        "--no-compression",
        "request uncompressed answers (default: zstd or gzip, except from this machine)",
      ).env("RUNVAULT_NO_COMPRESSION"),
    )
    .addOption(
      new Option("--ca <file>", "CA certificates to trust instead of the system's (PEM)").env("RUNVAULT_CA"),
    )
    .addOption(new Option("--cert <file>", "client certificate (PEM)").env("RUNVAULT_CERT"))
    .addOption(new Option("--key <file>", "private key of the client certificate (PEM)").env("RUNVAULT_KEY"))
    .addOption(
      new Option(
        "--profile <file>",
        "how the gateway differs from what runvault expects (default: not at all)",
      ).env("RUNVAULT_PROFILE"),
    );
  return groupOptions(command, rarer);
}

/** All but the address, token, pace and profile. */
const rarer = {
  "Connection:": [
    ...(["--transport", "--adapter", "--token-header", "--ca", "--cert", "--key"] as const),
    ...(["--no-compression", "--accept-unframed", "--concurrency", "--retries"] as const),
    ...(["--connect-timeout", "--headers-timeout", "--idle-timeout", "--document-timeout"] as const),
  ],
};

/**
 * Turns the checked values into options of the gateway client: reads files, and registers secrets so that the session
 * never prints them. Throws `invalid_argument` if there is no address or a file cannot be read.
 */
export async function gatewaySettings(
  values: GatewayValues,
  retry: RetryPolicy,
  session: Session,
): Promise<GatewayOptions> {
  if (values.gateway === undefined) {
    throw new RunvaultError("invalid_argument", "no gateway is named", {
      hint: "Give --gateway URL, or set RUNVAULT_GATEWAY.",
    });
  }
  const { username, password } = new URL(values.gateway);
  hideParts(session.scrubber, [username, password]);
  const { tokenFile } = values;
  const { env } = session.terminal;
  const tokenOption = tokenFile === env.RUNVAULT_TOKEN_FILE ? "RUNVAULT_TOKEN_FILE" : "--token-file";
  const fromFile =
    tokenFile === undefined ? undefined : await readTokenFile(tokenOption, tokenFile, secretReading(session));
  const renewToken = async (file: string) => {
    const renewed = await renewedToken(tokenOption, file, secretReading(session));
    session.scrubber.add(renewed);
    return renewed;
  };
  const token = fromFile ?? (env.RUNVAULT_TOKEN ?? "").trim();
  session.scrubber.add(token);
  const pem = async (flag: string, file: string | undefined) =>
    file === undefined ? undefined : await readOptionFile(flag, file);
  return {
    ...(await profileSettings(values.profile, session)),
    baseUrl: values.gateway,
    token: token === "" ? undefined : token,
    renewToken: tokenFile === undefined ? undefined : () => renewToken(tokenFile),
    tokenHeader: values.tokenHeader,
    maxRequestsPerSecond: values.maxRps,
    concurrency: values.concurrency,
    connectTimeoutMs: values.connectTimeout,
    headersTimeoutMs: values.headersTimeout,
    bodyIdleTimeoutMs: values.idleTimeout,
    documentTimeoutMs: values.documentTimeout,
    acceptUnframed: values.acceptUnframed,
    compressed: values.compression ? undefined : false,
    onRowBuffers: countBuffersWithHeap,
    onNotice: (text) => session.log.warn({ gateway: new URL(values.gateway!).host }, text),
    ca: await pem("--ca", values.ca),
    cert: await pem("--cert", values.cert),
    key:
      values.key === undefined
        ? undefined
        : (await readSecretFile("--key", values.key, secretReading(session))).toString("utf8"),
    retry,
  };
}

/** The contents of a profile's file, with its secrets. Throws every error of the file at once. */
async function profileSettings(
  file: string | undefined,
  session: Session,
): Promise<Pick<GatewayOptions, "profile" | "headers" | "keys">> {
  // the built-in contract works without a profile, and also over RPC
  if (file === undefined || file === "default") return {};
  const { loadProfile } = await import("../../gateway/profile/load-profile.ts");
  const { readProfileSecrets } = await import("../../gateway/profile/profile-secrets.ts");
  const profile = await loadProfile(file);
  const { env } = session.terminal;
  return {
    profile,
    ...(await readProfileSecrets(profile, { env, scrubber: session.scrubber, ...secretReading(session) })),
  };
}

/**
 * The retry policy of a command. Retries are logged; those of a gateway that is down only at `info` where the command
 * reports outages itself.
 */
export function retryPolicyFor(
  { retries }: Pick<GatewayValues, "retries">,
  session: Session,
  { reportsOutages = false } = {},
): RetryPolicy {
  return retryPolicy({
    retries,
    onRetry: ({ attempt, delayMs, error: { code, status, place, message } }) => {
      // long waits, and failures that cost rows already received, are logged by default
      const isLong = delayMs >= 1_000 && (!reportsOutages || status === 429);
      const isCostly = code === "stream_cut" || (code === "timeout" && !reportsOutages);
      const level = isLong || isCostly ? "warn" : "info";
      session.log[level](
        { attempt, delayMs, code, status, ...place, why: message },
        "waiting before the next attempt",
      );
    },
  });
}

/**
 * Opens the gateway that the checked values name. Loads the client only now, so that commands without a gateway start
 * faster. Throws like `gatewaySettings`.
 */
export async function openGatewayFor(
  values: GatewayValues,
  session: Session,
  retry: RetryPolicy = retryPolicyFor(values, session),
  more: Pick<GatewayOptions, "leastRate"> = {},
): Promise<Gateway> {
  const settings = await gatewaySettings(values, retry, session);
  if (values.adapter !== undefined) {
    const { openAdapter } = await import("../../gateway/adapter/open-adapter.ts");
    return await openAdapter(values.adapter, { ...settings, ...more });
  }
  const { openGateway } = await import("../../gateway/open-gateway.ts");
  return openGateway({ ...settings, ...more }, values.transport);
}

/** Text of a file named by a flag. Throws `invalid_argument` if it cannot be read. */
export async function readOptionFile(flag: string, file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    throw unreadable(file, cause, flag);
  }
}
