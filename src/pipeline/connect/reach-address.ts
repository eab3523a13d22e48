import { connect as connectPlain, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { isLoopback } from "../../serve/http/loopback.ts";

const usualPorts = { "http:": 80, "https:": 443, "smtp:": 587, "smtps:": 465 };

/** How long a connection may take. */
export const reachMs = 10_000;

/**
 * Connects to where an address leads, with TLS for https and smtps, and leaves again: nothing is sent. Where a proxy of the environment
 * is in between, to that. Gives why it failed, as a code or a word and never with the host in it; null where it worked.
 */
export async function reachAddress(
  url: URL,
  env: Readonly<Record<string, string | undefined>>,
  signal: AbortSignal,
): Promise<string | null> {
  const proxy = proxyFor(url, env);
  const at = proxy ?? url;
  const host = at.hostname.replace(/^\[(.*)\]$/, "$1");
  const isTls = at.protocol === "https:" || at.protocol === "smtps:";
  const port = at.port === "" ? usualPorts[at.protocol as keyof typeof usualPorts] : Number(at.port);
  const ready = isTls ? "secureConnect" : "connect";
  const socket: Socket = isTls
    ? connectTls({ host, port, ...(/[a-z]/i.test(host) ? { servername: host } : {}) })
    : connectPlain({ host, port });
  const limit = AbortSignal.any([signal, AbortSignal.timeout(reachMs)]);
  const { promise, resolve } = Promise.withResolvers<string | null>();
  socket.once(ready, () => resolve(null));
  socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? "unknown error"));
  socket.once("close", () => resolve("closed"));
  const onAbort = () => resolve("timeout");
  limit.addEventListener("abort", onAbort, { once: true });
  if (limit.aborted) onAbort();
  try {
    return await promise;
  } finally {
    limit.removeEventListener("abort", onAbort);
    // later errors do not matter
    socket.on("error", () => {});
    socket.destroy();
  }
}

/** The proxy for requests to an address; null for none. This machine itself is reached directly. */
function proxyFor(url: URL, env: Readonly<Record<string, string | undefined>>): URL | null {
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  if (isLoopback(host) || url.protocol.startsWith("smtp")) return null;
  const named = (name: string) => env[name] || env[name.toUpperCase()] || "";
  const without = named("no_proxy").split(/[\s,]+/);
  const isExempt = without.some((rule) => {
    const name = rule.replace(/^\*?\./, "").replace(/:\d+$/, "");
    return rule === "*" || (name !== "" && (host === name || host.endsWith(`.${name}`)));
  });
  if (isExempt) return null;
  const written = (url.protocol === "https:" ? named("https_proxy") : "") || named("http_proxy");
  return URL.parse(written);
}
