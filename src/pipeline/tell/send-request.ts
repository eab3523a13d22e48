import { Agent, EnvHttpProxyAgent, errors, request } from "undici";
import { RunvaultError } from "../../model/error.ts";
import { basicAuthorization } from "../../model/text/address-secrets.ts";
import { isLoopback } from "../../serve/http/loopback.ts";
import type { WebAddress } from "./web-address.ts";

/** A request to send. */
export interface Sent {
  readonly method: "GET" | "POST";
  readonly body?: string;
  readonly type?: string;
}

/** Longer answers are not read to the end. */
const mostOfAnswer = 16 * 1024;
const longestDrainMs = 1_000;

/**
 * Sends one request and accepts any success status; the answer's contents do not matter. Does not follow redirects.
 * Errors contain neither the address nor the answer: either may hold a secret.
 */
export async function sendRequest(address: WebAddress, sent: Sent, signal: AbortSignal): Promise<void> {
  const { url } = address;
  // as for gateways: the environment's proxies, but not for this machine itself
  const isHere = isLoopback(url.hostname.replace(/^\[(.*)\]$/, "$1"));
  const dispatcher = isHere ? new Agent() : new EnvHttpProxyAgent();
  try {
    const answer = await request(`${url.origin}${url.pathname}${url.search}`, {
      dispatcher,
      signal,
      method: sent.method,
      body: sent.body ?? null,
      headers: { "user-agent": "runvault", ...authorization(address), ...contentType(sent) },
    });
    answer.body.on("error", () => {});
    const { statusCode, headers } = answer;
    await answer.body
      .dump({ limit: mostOfAnswer, signal: AbortSignal.timeout(longestDrainMs) })
      .catch(() => {});
    if (statusCode < 200 || statusCode > 299) throw statusError(statusCode, headers["retry-after"], address);
  } catch (thrown) {
    if (thrown instanceof RunvaultError) throw thrown;
    signal.throwIfAborted();
    throw transportError(thrown, address);
  } finally {
    await dispatcher.destroy();
  }
}

function authorization({ url, words }: WebAddress): Record<string, string> {
  const value = basicAuthorization(url, `the address of ${words}`);
  return value === undefined ? {} : { authorization: value };
}

function contentType({ type }: Sent): Record<string, string> {
  return type === undefined ? {} : { "content-type": type };
}

function statusError(
  status: number,
  retryAfter: string | string[] | undefined,
  { words, from }: WebAddress,
): RunvaultError {
  if (status >= 300 && status < 400) {
    return new RunvaultError(
      "refused",
      `${words} answered with a redirect (${status}), which is not followed`,
      {
        status,
        hint: `Set ${from} to the redirect's target.`,
      },
    );
  }
  const again = status === 408 || status === 425 || status === 429;
  if (again || status >= 500) {
    const seconds = /^\d{1,6}$/.test(String(retryAfter)) ? Number(retryAfter) : 0;
    return new RunvaultError(
      again ? "rate_limited" : "server_error",
      `${words} answered with status ${status}`,
      {
        status,
        retryAfterMs: seconds * 1000,
        hint: `Check what is wrong with ${words}; \`runvault check FILE --test-notify\` tests it again.`,
      },
    );
  }
  return new RunvaultError("refused", `${words} answered with status ${status}`, {
    status,
    hint: `Check ${from}: the address may be wrong, or no longer valid.`,
  });
}

/** What undici or Node threw, by its code alone: its words have the host's name. */
export function transportError(thrown: unknown, { words, from, url }: WebAddress): RunvaultError {
  const schemes = url.protocol.startsWith("smtp") ? "smtp or smtps" : "http or https";
  if (thrown instanceof errors.HTTPParserError) {
    return new RunvaultError("refused", `${words} does not speak HTTP`, {
      hint: `Check the port in ${from}, and whether it should be http or https.`,
    });
  }
  const code = String((thrown as { code?: unknown } | null)?.code ?? "");
  if (/^(CERT_|ERR_TLS|UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|HOSTNAME_MISMATCH)/.test(code)) {
    return new RunvaultError("refused", `the certificate of ${words} is not trusted (${code})`, {
      hint: "Set NODE_EXTRA_CA_CERTS to a file with the authority that signed it.",
    });
  }
  if (/^(HPE_|ERR_SSL|EPROTO)/.test(code)) {
    return new RunvaultError("refused", `${words} does not speak this protocol (${code})`, {
      hint: `Check the port in ${from}, and whether it should be ${schemes}.`,
    });
  }
  const why =
    code === "ECONNREFUSED"
      ? "nothing is listening at the address of"
      : code === "ENOTFOUND" || code === "EAI_AGAIN"
        ? "the host name cannot be resolved for"
        : "the connection failed to";
  return new RunvaultError("unreachable", `${why} ${words}${code === "" ? "" : ` (${code})`}`, {
    hint: `Check ${from} and the network.`,
  });
}
