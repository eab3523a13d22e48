import { connect } from "node:net";
import { Readable } from "node:stream";
import type { NodemailerError, SMTPTransportOptions } from "nodemailer";
import { RunvaultError } from "../../model/error.ts";
import { decoded } from "../../model/text/address-secrets.ts";
import { isLoopback } from "../../serve/http/loopback.ts";
import { transportError } from "./send-request.ts";
import type { WebAddress } from "./web-address.ts";

/** A mail to several recipients, with nothing but text. */
export interface Mail {
  readonly from: string;
  readonly to: readonly string[];
  readonly date: Date;
  readonly subject: string;
  readonly text: string;
}

/**
 * Sends a mail through a server: with TLS from the start for smtps, and after STARTTLS for smtp if the server offers it. A
 * password is sent over TLS only, or within this machine. The server must accept every recipient, or nobody gets the mail.
 * Throws without the address and without what the server says: either may hold a secret.
 */
export async function sendMail(
  address: WebAddress,
  { from, to, ...written }: Mail,
  signal: AbortSignal,
): Promise<void> {
  const { protocol, hostname, port, username, password } = address.url;
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  const secure = protocol === "smtps:";
  const login = username !== "" && password !== "";
  const { createTransport } = await import("nodemailer");
  const transport = createTransport({
    ...{ host, secure, requireTLS: login && !isLoopback(host), forceAuth: login },
    // without a password any TLS is better than none
    tls: { rejectUnauthorized: secure || login },
    ...(login ? { auth: { user: decoded(username), pass: decoded(password) } } : {}),
    getSocket: socketTo(host, port === "" ? (secure ? 465 : 587) : Number(port), signal),
  });
  transport.use("stream", ({ message }, next) => {
    message.processFunc((text) => Readable.from(unlessRefused(text, message.getEnvelope())));
    next();
  });
  const headers = { "Auto-Submitted": "auto-generated" };
  const envelope = { from, to: [...to] };
  try {
    await transport.sendMail({ ...envelope, ...written, envelope, headers, signal });
  } catch (thrown) {
    signal.throwIfAborted();
    throw mailError(thrown, address);
  }
}

/** nodemailer's own resolver skips /etc/hosts, and can print a warning; Node's does neither. */
function socketTo(host: string, port: number, signal: AbortSignal): SMTPTransportOptions["getSocket"] {
  return (_, done) => {
    const connection = connect({ host, port }, () => done(null, { connection }));
    connection.once("error", done);
    signal.addEventListener("abort", () => connection.destroy(), { once: true });
  };
}

/** nodemailer is content with one accepted recipient. Cut off before its end, the mail is delivered to nobody. */
async function* unlessRefused(text: Readable, envelope: Readonly<Record<string, unknown>>) {
  const { rejectedErrors } = envelope;
  const [cause] = rejectedErrors as readonly NodemailerError[];
  if (cause !== undefined) throw new Error("a recipient was refused", { cause });
  yield* text;
}

/** What an SMTP command hands over, for messages. */
const steps: Readonly<Record<string, string>> = {
  CONN: "the connection",
  AUTH: "the password",
  MAIL: "the sender",
  RCPT: "a recipient",
  DATA: "the mail",
};

/** A status of 4xx is temporary, one of 5xx final. */
function mailError(thrown: unknown, address: WebAddress): RunvaultError {
  const { words, from, url } = address;
  const error = ((thrown as Error).cause ?? thrown) as NodemailerError;
  const { code, originalCode = code, command = "", responseCode: status = 0 } = error;
  const refusal = (what: string, hint: string) => new RunvaultError("refused", `${words} ${what}`, { hint });
  const what = `refused ${steps[command.split(" ")[0]!] ?? command} (${status})`;
  if (status >= 400 && status < 500) {
    return new RunvaultError("server_error", `${words} ${what}`, {
      hint: `See what is wrong with ${words}; \`runvault check FILE --test-notify\` tries it again.`,
    });
  }
  if (code === "EPROTOCOL" && status < 400) {
    return refusal(
      "does not speak SMTP",
      `Check the port in ${from}, and whether it should be smtp or smtps.`,
    );
  }
  if (status === 0) return transportError({ code: originalCode }, address);
  if (command === "STARTTLS" && url.password !== "") {
    const hint = `Set ${from} to an smtps:// address, or to a server with STARTTLS.`;
    return refusal("offers no TLS, so it gets no password", hint);
  }
  return refusal(what, `Check ${from}, and the addresses in notify.mail.`);
}
