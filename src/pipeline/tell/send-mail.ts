import { connect as connectPlain, type Socket } from "node:net";
import { hostname } from "node:os";
import { connect as connectTls } from "node:tls";
import { RunvaultError } from "../../model/error.ts";
import { isLoopback } from "../../serve/http/loopback.ts";
import { transportError } from "./send-request.ts";
import type { WebAddress } from "./web-address.ts";

/** A mail, with the addresses of its envelope. */
export interface Mail {
  readonly from: string;
  readonly to: readonly string[];
  /** Headers and body, lines ended by CR LF. */
  readonly text: string;
}

/** More than a server has to say at a time. */
const longestReply = 64 * 1024;

/**
 * Hands a mail to a server (RFC 5321): TLS from the start for smtps, and by STARTTLS for smtp where the server offers it. A
 * password goes over TLS alone, or within this machine. Every address has to be accepted, or nobody gets the mail. Throws
 * without the address, and without what the server says: either may hold a secret.
 */
export async function sendMail(address: WebAddress, mail: Mail, signal: AbortSignal): Promise<void> {
  const { url, words, from } = address;
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const servername = /[a-z]/i.test(host) && !host.includes(":") ? { servername: host } : {};
  const isTls = url.protocol === "smtps:";
  const port = url.port === "" ? (isTls ? 465 : 587) : Number(url.port);
  signal.throwIfAborted();
  let talk = new Conversation(
    isTls ? connectTls({ host, port, ...servername }) : connectPlain({ host, port }),
    address,
  );
  const onAbort = () => talk.end();
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    await talk.reply("the connection", [220]);
    const name = /^[A-Za-z0-9.-]+$/.test(hostname()) ? hostname() : "[127.0.0.1]";
    let offers = await talk.ask(`EHLO ${name}`, "EHLO", [250]);
    if (!isTls && has(offers, "STARTTLS")) {
      await talk.ask("STARTTLS", "STARTTLS", [220]);
      talk = new Conversation(connectTls({ socket: talk.release(), ...servername }), address);
      offers = await talk.ask(`EHLO ${name}`, "EHLO", [250]);
    } else if (!isTls && url.password !== "" && !isLoopback(host)) {
      throw new RunvaultError("refused", `${words} offers no TLS, so it gets no password`, {
        hint: `Set ${from} to an smtps:// address, or to a server with STARTTLS.`,
      });
    }
    if (url.username !== "") await logIn(talk, offers, address);
    await talk.ask(`MAIL FROM:<${mail.from}>`, "the sender", [250]);
    for (const to of mail.to) await talk.ask(`RCPT TO:<${to}>`, "a recipient", [250, 251]);
    await talk.ask("DATA", "DATA", [354]);
    await talk.ask(`${mail.text.replace(/^\./gm, "..")}.`, "the mail", [250]);
    talk.say("QUIT");
  } catch (thrown) {
    if (thrown instanceof RunvaultError) throw thrown;
    signal.throwIfAborted();
    throw transportError(thrown, address);
  } finally {
    signal.removeEventListener("abort", onAbort);
    talk.end();
  }
}

function has(offers: readonly string[], word: string): boolean {
  return offers.some((offer) => offer.toUpperCase().split(/[ =]/)[0] === word);
}

async function logIn(
  talk: Conversation,
  offers: readonly string[],
  { url, words }: WebAddress,
): Promise<void> {
  const ways = offers
    .filter((offer) => /^AUTH[ =]/i.test(offer))
    .join(" ")
    .toUpperCase()
    .split(/[ =]/);
  const [user, password] = [url.username, url.password].map(meant) as [string, string];
  const base64 = (text: string) => Buffer.from(text, "utf8").toString("base64");
  if (ways.includes("PLAIN")) {
    await talk.ask(`AUTH PLAIN ${base64(`\0${user}\0${password}`)}`, "the password", [235]);
  } else if (ways.includes("LOGIN")) {
    await talk.ask("AUTH LOGIN", "AUTH LOGIN", [334]);
    await talk.ask(base64(user), "the user", [334]);
    await talk.ask(base64(password), "the password", [235]);
  } else {
    throw new RunvaultError("refused", `${words} takes no password by AUTH PLAIN or AUTH LOGIN`, {
      hint: "Leave user and password out, or name a server that takes them.",
    });
  }
}

/** A part of an address without its escapes; as it is where one is wrong. */
function meant(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Lines to a server, and its replies, one after another. */
class Conversation {
  readonly #socket: Socket;
  readonly #address: WebAddress;
  #text = "";
  #failure: unknown = null;
  #wake: () => void = () => {};
  readonly #onData = (chunk: Buffer) => {
    this.#text += chunk.toString("latin1");
    this.#wake();
  };

  constructor(socket: Socket, address: WebAddress) {
    this.#socket = socket;
    this.#address = address;
    socket.on("data", this.#onData);
    socket.on("error", (error) => this.#fail(error));
    socket.on("close", () => this.#fail(Object.assign(new Error("closed"), { code: "ECONNRESET" })));
  }

  say(line: string): void {
    this.#socket.write(`${line}\r\n`);
  }

  /** Says a line and gives the reply's. `what` it is about is for people. */
  async ask(line: string, what: string, expected: readonly number[]): Promise<readonly string[]> {
    this.say(line);
    return await this.reply(what, expected);
  }

  async reply(what: string, expected: readonly number[]): Promise<readonly string[]> {
    for (;;) {
      const whole = /^(?:\d{3}-.*\r?\n)*(\d{3})(?: .*)?\r?\n/.exec(this.#text);
      if (whole !== null) {
        this.#text = this.#text.slice(whole[0].length);
        const code = Number(whole[1]);
        if (!expected.includes(code)) throw this.#refusal(what, code);
        return whole[0]
          .trimEnd()
          .split(/\r?\n/)
          .map((line) => line.slice(4));
      }
      if (this.#failure !== null) throw this.#failure;
      const isNone = /^(?!\d{0,3}$|\d{3}[- \r\n])/.test(this.#text);
      if (isNone || this.#text.length > longestReply) throw this.#noSmtp();
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** The socket, for TLS over it. What came unasked before that is not the server's own word. */
  release(): Socket {
    if (this.#text !== "") throw this.#noSmtp();
    this.#socket.off("data", this.#onData);
    return this.#socket;
  }

  end(): void {
    this.#fail(new Error("ended"));
    this.#socket.end();
    setTimeout(() => this.#socket.destroy(), 1_000).unref();
  }

  #fail(error: unknown): void {
    this.#failure ??= error;
    this.#wake();
  }

  #noSmtp(): RunvaultError {
    const { words, from } = this.#address;
    return new RunvaultError("refused", `${words} does not speak SMTP`, {
      hint: `Check the port in ${from}, and whether it should be smtp or smtps.`,
    });
  }

  /** 4xx is for the time being, 5xx for good. */
  #refusal(what: string, code: number): RunvaultError {
    const { words, from } = this.#address;
    const isForNow = code >= 400 && code < 500;
    return new RunvaultError(isForNow ? "server_error" : "refused", `${words} refused ${what} (${code})`, {
      hint: isForNow
        ? `See what is wrong with ${words}; \`runvault check FILE --test-notify\` tries it again.`
        : `Check ${from}, and the addresses in notify.mail.`,
    });
  }
}
