import { readFile } from "node:fs/promises";
import { openAdapter } from "../../gateway/adapter/open-adapter.ts";
import type { Gateway } from "../../gateway/gateway.ts";
import { openGateway } from "../../gateway/open-gateway.ts";
import type { GatewayOptions } from "../../gateway/options.ts";
import { readProfile } from "../../gateway/profile/load-profile.ts";
import { readProfileSecrets } from "../../gateway/profile/profile-secrets.ts";
import type { RetryPolicy } from "../../model/retry/retry-policy.ts";
import { readSecretFile, readTokenFile, renewedToken, type SecretReading } from "../../model/secret-file.ts";
import { hideParts } from "../../model/text/address-secrets.ts";
import type { Scrubber } from "../../model/text/scrubber.ts";
import { unreadable } from "../../model/unreadable.ts";
import { faultError } from "../../model/yaml/file-fault.ts";
import type { JobFile } from "../file/job-files.ts";
import type { Job } from "../file/job-schema.ts";

/** What a job's gateway is opened with, besides its file. */
export interface JobGatewayMeans extends SecretReading {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly scrubber: Scrubber;
  readonly retry: RetryPolicy;
  /** Called once for each notable fact about the gateway that is not an error. */
  readonly onNotice: (text: string) => void;
  readonly onRowBuffers?: (() => void) | undefined;
}

/**
 * Opens the gateway of a job file; sends nothing yet. A token file is read again when the gateway refuses the old
 * token. Throws `invalid_argument` if a named file cannot be read.
 */
export async function openJobGateway({ job }: JobFile, means: JobGatewayMeans): Promise<Gateway> {
  const { gateway } = job;
  const { budget, tls } = gateway;
  const { retry, onNotice, onRowBuffers } = means;
  const { username, password } = new URL(gateway.url);
  hideParts(means.scrubber, [username, password]);
  const token = await tokenOf(gateway, means);
  const { token: place } = gateway;
  const renewToken = async (file: string) => {
    const renewed = await renewedToken(tokenFileKey, file, means);
    means.scrubber.add(renewed);
    return renewed;
  };
  const options: GatewayOptions = {
    ...(await profileOf(gateway, means)),
    baseUrl: gateway.url,
    token,
    ...(place?.kind === "file" ? { renewToken: () => renewToken(place.file) } : {}),
    tokenHeader: gateway.token_header,
    maxRequestsPerSecond: budget.rps,
    concurrency: budget.answers,
    connectTimeoutMs: budget.connect.ms,
    headersTimeoutMs: budget.headers.ms,
    bodyIdleTimeoutMs: budget.idle.ms,
    documentTimeoutMs: budget.document.ms,
    leastRate:
      budget.min_rate === undefined ? undefined : { bytesPerSecond: budget.min_rate, windowMs: 30_000 },
    acceptUnframed: gateway.accept_unframed,
    compressed: gateway.compression ? undefined : false,
    onNotice,
    onRowBuffers,
    ca: await pem("gateway.tls.ca", tls?.ca),
    cert: await pem("gateway.tls.cert", tls?.cert),
    key:
      tls?.key === undefined
        ? undefined
        : (await readSecretFile("gateway.tls.key", tls.key, means)).toString("utf8"),
    retry,
  };
  return gateway.adapter === undefined
    ? openGateway(options, gateway.transport)
    : await openAdapter(gateway.adapter, options);
}

/** The profile's settings, with its secrets. Throws its first error. */
async function profileOf(
  { profile: file }: Job["gateway"],
  means: JobGatewayMeans,
): Promise<Pick<GatewayOptions, "profile" | "headers" | "keys">> {
  if (file === undefined) return {};
  const { profile, faults } = await readProfile(file);
  if (profile === null) throw faultError(faults[0]!);
  return { profile, ...(await readProfileSecrets(profile, means)) };
}

async function tokenOf(
  { token: place }: Job["gateway"],
  { env, scrubber, ...reading }: JobGatewayMeans,
): Promise<string | undefined> {
  if (place === undefined) return undefined;
  const token =
    place.kind === "file"
      ? await readTokenFile(tokenFileKey, place.file, reading)
      : (env[place.name] ?? "").trim();
  scrubber.add(token);
  return token === "" ? undefined : token;
}

const tokenFileKey = "gateway.token.file";

async function pem(key: string, file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined;
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    throw unreadable(file, cause, key);
  }
}
