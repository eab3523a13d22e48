import { isIP } from "node:net";
import { RunvaultError } from "../model/error.ts";
import { basicAuthorization } from "../model/text/address-secrets.ts";

/** A gateway's address, separated from its secret. */
export interface GatewayAddress {
  readonly origin: string;
  /** Path of the base address without a trailing slash; may be empty. */
  readonly basePath: string;
  /** Origin and path: safe to show. */
  readonly label: string;
  /** Value of an Authorization header for the user and password in the address. */
  readonly basicAuthorization: string | undefined;
  readonly loopback: boolean;
}

/** Parses a base address. Throws `invalid_argument` without the address, which may hold a password. */
export function readAddress(baseUrl: string): GatewayAddress {
  if (!URL.canParse(baseUrl)) throw wrong("the gateway's address is not a URL");
  const url = new URL(baseUrl);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw wrong("the gateway's address must begin with http:// or https://");
  }
  if (url.search !== "" || url.hash !== "")
    throw wrong("the gateway's address must not have a query or a fragment");
  const basePath = url.pathname.replace(/\/+$/, "");
  return {
    origin: url.origin,
    basePath,
    label: url.origin + basePath,
    basicAuthorization: basicAuthorization(url, "the gateway's address"),
    loopback: isLoopback(url.hostname),
  };
}

function isLoopback(hostname: string): boolean {
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  if (host === "localhost" || host.endsWith(".localhost")) return true;
  return (isIP(host) === 4 && host.startsWith("127.")) || host === "::1";
}

function wrong(message: string): RunvaultError {
  return new RunvaultError("invalid_argument", message, {
    hint: "Set --gateway or RUNVAULT_GATEWAY to an address such as https://gateway.example/api/v1.",
  });
}
