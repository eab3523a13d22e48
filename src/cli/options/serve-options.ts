import { createWriteStream } from "node:fs";
import { networkInterfaces } from "node:os";
import { type Command, Option } from "commander";
import { z } from "zod";
import { RunvaultError } from "../../model/error.ts";
import { privateFile } from "../../model/make-folder.ts";
import { readSecretFile } from "../../model/secret-file.ts";
import { nearestName } from "../../model/text/nearest-name.ts";
import { visible } from "../../model/text/visible-text.ts";
import { HostNames, hostPattern } from "../../serve/auth/host-names.ts";
import type { TokenList } from "../../serve/auth/token-list.ts";
import { isLoopback } from "../../serve/http/loopback.ts";
import type { ServeTls } from "../../serve/http/tls-options.ts";
import type { Served } from "../../serve/server.ts";
import { type Transport, transports } from "../../serve/transport.ts";
import type { Session } from "../process/session.ts";
import { unwritable } from "../process/unwritable.ts";
import { readOptionFile } from "./gateway-options.ts";
import { nonEmpty, wholeNumber } from "./option-values.ts";
import { secretReading } from "./secret-reading.ts";

/** Parses `rest,rpc` into transports, each once. */
const transportList = z.string().transform((text, context): Transport[] => {
  const names = new Set(text.split(",").map((name) => name.trim()));
  for (const name of names) {
    if (transports.some((known) => known === name)) continue;
    const near = nearestName(name, transports);
    const meant = near === null ? "" : ` (did you mean ${near}?)`;
    context.addIssue(
      `names an unknown transport: ${JSON.stringify(name)}${meant}; the transports are ${transports.join(", ")}`,
    );
  }
  return transports.filter((name) => names.has(name));
});

const hostName = z.string().transform((text, context) => {
  const pattern = hostPattern(text);
  if (pattern !== null) return pattern;
  context.addIssue(
    `must be a host name without a port, such as archive.example or *.svc.cluster.local, not ${JSON.stringify(text)}`,
  );
  return z.NEVER;
});

/** Schema of the options that every serving command has. */
export const serveShape = {
  host: z.string().min(1),
  port: wholeNumber(0, 65535),
  literal: z.boolean().default(false),
  transports: transportList.optional(),
  hostName: z.array(hostName).default([]),
  tokens: nonEmpty.optional(),
  pageKeyFile: nonEmpty.optional(),
  tlsCert: nonEmpty.optional(),
  tlsKey: nonEmpty.optional(),
  tlsClientCa: nonEmpty.optional(),
};

const serveSchema = z.object(serveShape);
type ServeValues = z.output<typeof serveSchema>;

/** Declares where to listen, what to offer there, and whom to answer. */
export function addServeOptions(command: Command): Command {
  return command
    .addOption(new Option("--host <host>", "address to listen on").default("127.0.0.1"))
    .addOption(new Option("--port <port>", "port to listen on; 0 takes any free one").default("0"))
    .addOption(
      new Option(
        "--transports <names>",
        "protocols to offer, separated by commas (default: rest,rpc, with --literal rest); without rest, plain HTTP serves only health and metrics",
      ),
    )
    .option(
      "--literal",
      "offer over REST only the history in the interface document: no runs, resources or storage facts",
    )
    .option(
      "--tokens <file>",
      "require one of the tokens in FILE on every request; `runvault serve token` makes its lines; SIGHUP reloads it",
    )
    .addOption(
      new Option(
        "--host-name <name>",
        "without tokens: also answer requests for this host, such as archive.example or *.svc.cluster.local; repeatable",
      )
        .env("RUNVAULT_HOST_NAME")
        .argParser((text: string, before: string[] | undefined) => [...(before ?? []), ...text.split(",")]),
    )
    .addOption(
      new Option(
        "--page-key-file <file>",
        "key of page tokens, at least 32 random bytes, so that they survive a restart and other servers with the same key accept them (default: a new key at each start)",
      ).env("RUNVAULT_PAGE_KEY_FILE"),
    )
    .option("--tls-cert <file>", "serve over TLS, with the certificate in FILE (PEM)")
    .option("--tls-key <file>", "private key of the certificate (PEM)")
    .option("--tls-client-ca <file>", "require client certificates signed by an authority in FILE (PEM)");
}

/** Reads the files for TLS. Throws `invalid_argument` if one is missing, or only some are given. */
export async function tlsFrom(
  values: ServeValues,
  session: Pick<Session, "log" | "signal">,
): Promise<ServeTls | undefined> {
  const { tlsCert, tlsKey, tlsClientCa } = values;
  if (tlsCert === undefined && tlsKey === undefined && tlsClientCa === undefined) return undefined;
  if (tlsCert === undefined || tlsKey === undefined) {
    throw new RunvaultError("invalid_argument", "TLS needs both --tls-cert and --tls-key");
  }
  return {
    cert: await readOptionFile("--tls-cert", tlsCert),
    key: (await readSecretFile("--tls-key", tlsKey, secretReading(session))).toString("utf8"),
    ...(tlsClientCa === undefined ? {} : { clientCa: await readOptionFile("--tls-client-ca", tlsClientCa) }),
  };
}

/**
 * The page token key, if one is given: the file's contents, without surrounding blanks if they are text. Throws
 * `invalid_argument` for a key short enough to guess.
 */
export async function pageKeyFrom(
  { pageKeyFile: file }: ServeValues,
  session: Pick<Session, "log" | "signal">,
): Promise<{ readonly pageKey?: Buffer }> {
  if (file === undefined) return {};
  const { leastPageKeyBytes } = await import("../../serve/history/page-token.ts");
  const bytes = await readSecretFile("--page-key-file", file, secretReading(session));
  const isText = bytes.every((byte) => byte < 0x80);
  const pageKey = isText ? Buffer.from(bytes.toString("latin1").trim()) : bytes;
  if (pageKey.length >= leastPageKeyBytes) return { pageKey };
  throw new RunvaultError(
    "invalid_argument",
    `--page-key-file: the key has ${pageKey.length} bytes; it must have at least ${leastPageKeyBytes}`,
    { place: { file }, hint: "Make one with `head -c 32 /dev/urandom | base64`." },
  );
}

/** The accepted tokens; undefined without --tokens. Throws `invalid_argument` if the file is not valid. */
export async function tokensFrom(
  { tokens }: ServeValues,
  session: Pick<Session, "log" | "signal">,
): Promise<TokenList | undefined> {
  if (tokens === undefined) return undefined;
  const { TokenList } = await import("../../serve/auth/token-list.ts");
  return TokenList.parse(
    (await readSecretFile("--tokens", tokens, secretReading(session))).toString("utf8"),
    tokens,
  );
}

/**
 * Reads the tokens again at every SIGHUP until disposed. An invalid file is reported and changes nothing; answers in
 * progress continue.
 */
export function renewTokensOnHangup(
  values: ServeValues,
  tokens: TokenList | undefined,
  session: Pick<Session, "log" | "signal" | "note" | "failure" | "terminal">,
): Disposable {
  const renew = async () => {
    try {
      const read = await tokensFrom(values, session);
      if (read === undefined) return;
      tokens?.become(read);
      session.note("SIGHUP: the tokens were read again");
    } catch (error) {
      session.failure(error);
      session.note("SIGHUP: the tokens stay as they were");
    }
  };
  const onHangup = () => void renew();
  const { signals } = session.terminal;
  if (tokens !== undefined) signals.on("SIGHUP", onHangup);
  return { [Symbol.dispose]: () => void signals.off("SIGHUP", onHangup) };
}

/** Prints which hosts are answered, if that depends on the host name in requests. */
export function tellHostNames(
  { host, hostName }: ServeValues,
  hasTokens: boolean,
  session: Pick<Session, "note" | "log">,
): void {
  if (hasTokens) return;
  const told = `without tokens, only requests to these hosts are answered: ${new HostNames([...hostName, host])}; --host-name adds others`;
  if (isLoopback(host) && hostName.length === 0) session.log.info(told);
  else session.note(told);
}

/** Writes lines to a file. */
export interface LineFile extends AsyncDisposable {
  /** Throws the error of an earlier line: after it, every request fails. */
  write(line: string): void;
}

/** Opens a file to append lines to, for logs that serve as evidence. Throws if it cannot be opened. */
export async function openLineFile(file: string): Promise<LineFile> {
  const stream = createWriteStream(file, { flags: "a", mode: privateFile });
  await new Promise<void>((opened, failed) => {
    stream.once("open", () => opened());
    stream.once("error", (error) => failed(unwritable(file, error)));
  });
  let failure: Error | undefined;
  stream.on("error", (error) => {
    failure = error;
  });
  return {
    write: (line) => {
      if (failure !== undefined) throw RunvaultError.from(failure, { place: { file } });
      stream.write(`${visible(line)}\n`);
    },
    [Symbol.asyncDispose]: async () => {
      if (failure === undefined) await new Promise<void>((closed) => stream.end(() => closed()));
    },
  };
}

/** Prints where a server listens, and resolves when the command is stopped. */
export async function announceUntilStopped(served: Served, session: Session): Promise<void> {
  const url = reachableUrl(served.url);
  const { port } = served;
  await session.print(session.json ? `${JSON.stringify({ url, port })}\n` : `${visible(url)}\n`);
  if (session.signal.aborted) return;
  await new Promise((stop) => session.signal.addEventListener("abort", stop, { once: true }));
}

/** Replaces an "every address" host with this machine's own address, which other machines can connect to. */
export function reachableUrl(url: string, interfaces = networkInterfaces()): string {
  const { hostname } = new URL(url);
  const family = { "0.0.0.0": "IPv4", "[::]": "IPv6" }[hostname];
  const own = Object.values(interfaces)
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal, address }) => !internal && !address.startsWith("fe80:"))
    .toSorted((a, b) => Number(b.family === family) - Number(a.family === family))[0];
  if (family === undefined || own === undefined) return url;
  return url.replace(hostname, own.family === "IPv6" ? `[${own.address}]` : own.address);
}
