import { readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { isIPv4, isIPv6 } from "node:net";
import { hostname } from "node:os";
import { domainToASCII } from "node:url";
import { RunvaultError } from "../../model/error.ts";

/**
 * The host names that a server without tokens answers: those that no foreign page can make a browser send. A page of
 * evil.example may let that name point at this machine after loading, and then read what its own origin answers (DNS
 * rebinding); but its requests carry that name. IP addresses are not names; `localhost` and names without a dot resolve
 * on the browser's side; all others must be listed.
 */
export class HostNames {
  readonly #names: ReadonlySet<string>;
  /** Suffixes with their leading dot. */
  readonly #endings: readonly string[];

  /**
   * `given` are names or, like `*.svc.cluster.local`, all names below one. Those that `hostPattern` refuses never
   * match.
   */
  constructor(given: readonly string[], own: readonly string[] = ownHostNames()) {
    const patterns = [...given, ...own].map(hostPattern).filter((pattern) => pattern !== null);
    this.#names = new Set(patterns.filter((pattern) => !pattern.startsWith("*")));
    this.#endings = patterns.filter((pattern) => pattern.startsWith("*")).map((pattern) => pattern.slice(1));
  }

  /** Whether a Host header, or an authority in HTTP/2 or a request target, names this server. */
  answers(authority: string): boolean {
    const [, bracketed, plain = ""] = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::\d*)?$/.exec(authority) ?? [];
    if (bracketed !== undefined) return isIPv6(bracketed);
    const name = normalName(plain);
    if (name === null) return false;
    if (!name.includes(".") || name.endsWith(".localhost") || isAddress(name)) return true;
    return this.#names.has(name) || this.#endings.some((ending) => name.endsWith(ending));
  }

  /** Why a request is refused; undefined if it is not. Proxy headers about the host never count. */
  refusal(request: Pick<IncomingMessage, "rawHeaders" | "url">): RunvaultError | undefined {
    const hosts = headerLines(request, "host");
    // different readers of such a request might believe different ones
    if (hosts.length > 1)
      return new RunvaultError("invalid_argument", "the request has several Host headers");
    const target = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(request.url ?? "")?.slice(1) ?? [];
    const named = [...hosts, ...headerLines(request, ":authority"), ...target];
    const other = named.length === 0 ? "" : named.find((authority) => !this.answers(authority));
    if (other === undefined) return undefined;
    const shown = JSON.stringify(other.slice(0, 100));
    return new RunvaultError(
      "misdirected",
      `this server has no tokens and does not answer to the host ${shown}: use its IP address, or start it with ` +
        "--host-name NAME or --tokens FILE",
    );
  }

  /** The names besides those without a dot, in words. */
  toString(): string {
    const dotted = [...this.#names].filter((name) => name.includes(".") && !isAddress(name));
    const others = [...dotted, ...this.#endings.map((ending) => `*${ending}`)];
    return ["IP addresses", "localhost", "names without a dot", ...others].join(", ");
  }
}

/**
 * A name in the form for comparisons: lower case, ASCII, without a trailing dot, with `*.` for all names below it; null
 * if it is invalid.
 */
export function hostPattern(text: string): string | null {
  const [, star = "", given = ""] = /^(\*\.)?(.*)$/s.exec(text.trim()) ?? [];
  const name = normalName(domainToASCII(given));
  return name === null || (star !== "" && isAddress(name)) ? null : star + name;
}

/** In lower case and without a trailing dot; null if it is not a host name. */
function normalName(text: string): string | null {
  const name = text.toLowerCase().replace(/\.$/, "");
  return /^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/.test(name) ? name : null;
}

/** An IPv4 address in any form that browsers accept, such as 127.0.0.1, 127.1 and 0x7f000001. */
function isAddress(name: string): boolean {
  return isIPv4(URL.parse(`http://${name}/`)?.hostname ?? "");
}

function headerLines({ rawHeaders }: Pick<IncomingMessage, "rawHeaders">, wanted: string): string[] {
  return rawHeaders.filter(
    (_value, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === wanted,
  );
}

/** The machine's name and its aliases in /etc/hosts, such as its fully qualified name. */
export function ownHostNames(hostsFile = "/etc/hosts", name = hostname()): string[] {
  return [name, ...linesOf(hostsFile).flatMap((names) => (names.includes(name) ? names : []))];
}

function linesOf(hostsFile: string): string[][] {
  try {
    const lines = readFileSync(hostsFile, "utf8").split("\n");
    return lines.map((line) => line.replace(/#.*/, "").trim().split(/\s+/).slice(1));
  } catch {
    // then the machine has only one name
    return [];
  }
}
