import { createPrivateKey, X509Certificate } from "node:crypto";
import type { ServerOptions } from "node:https";
import { createSecureContext } from "node:tls";
import { RunvaultError } from "../../model/error.ts";

/** A server's certificate and its requirements for clients; PEM texts. */
export interface ServeTls {
  readonly cert: string;
  readonly key: string;
  /** If set, clients need a certificate signed by one of these authorities. */
  readonly clientCa?: string;
}

/** Throws `invalid_argument` if certificate, key or authorities cannot be read. */
export function tlsOptions({ cert, key, clientCa }: ServeTls): ServerOptions {
  try {
    // Node accepts an empty key, and takes an empty list of authorities for the machine's own
    const fits = new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
    if (!fits) throw new Error("the key does not belong to the certificate");
    if (clientCa !== undefined) new X509Certificate(clientCa);
    const proof = clientCa === undefined ? {} : { ca: clientCa, requestCert: true, rejectUnauthorized: true };
    createSecureContext({ cert, key, ...proof });
    return { cert, key, ...proof };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new RunvaultError("invalid_argument", `cannot serve over TLS: ${why}`, {
      cause: error,
      hint: "Use PEM files: the certificate with its intermediates, and its private key.",
    });
  }
}
