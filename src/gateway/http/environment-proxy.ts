/**
 * The environment's proxy for an address, by the rules of undici's EnvHttpProxyAgent, so that both versions of HTTP use
 * the same one; undefined for none, or if `no_proxy` has the host.
 */
export function proxyFor(url: URL, env: Readonly<Record<string, string | undefined>>): URL | undefined {
  const http = env.http_proxy ?? env.HTTP_PROXY;
  const https = (env.https_proxy ?? env.HTTPS_PROXY) || http;
  const proxy = url.protocol === "https:" ? https : http;
  if (proxy === undefined || proxy === "") return undefined;
  const host = plainHost(url.hostname);
  const port = Number(url.port) || (url.protocol === "https:" ? 443 : 80);
  const isExempt = (env.no_proxy ?? env.NO_PROXY ?? "")
    .split(/[,\s]/)
    .filter((entry) => entry !== "")
    .some((entry) => isWithin(host, port, entry));
  return isExempt ? undefined : new URL(proxy);
}

function isWithin(host: string, port: number, entry: string): boolean {
  const [, bracketed, bare] = /^(?:\[(.+)\](?::\d+)?|(.*))$/.exec(entry) ?? [];
  const [, name = "", ownPort] =
    bracketed === undefined
      ? (/^([^:]*)(?::(\d+))?$/.exec(bare ?? "") ?? [undefined, bare ?? "", undefined])
      : [undefined, bracketed, /\]:(\d+)$/.exec(entry)?.[1]];
  if (ownPort !== undefined && Number(ownPort) !== port) return false;
  if (name === "*") return true;
  const plain = plainHost(name.replace(/^\*?\./, ""));
  return (host === plain && !name.startsWith("*")) || host.endsWith(`.${plain}`);
}

function plainHost(name: string): string {
  return name
    .replace(/^\[(.+)\]$/, "$1")
    .replace(/(.)\.$/, "$1")
    .toLowerCase();
}
