import { type Command, Option } from "commander";
import { pino } from "pino";
import { z } from "zod";
import { exit, RunvaultError } from "../model/error.ts";
import { visible } from "../model/visible-text.ts";
import { archiveOption, archiveShape } from "./archive-option.ts";
import { commandEntry } from "./command-entry.ts";
import { countBuffersWithHeap } from "./external-memory.ts";
import { LogFile } from "./log-file.ts";
import { isLoopback } from "./loopback.ts";
import { durationMs, mebibytes, nonEmpty, wholeNumber } from "./option-values.ts";
import {
  addServeOptions,
  announceUntilStopped,
  pageKeyFrom,
  renewTokensOnHangup,
  serveShape,
  tellHostNames,
  tlsFrom,
  tokensFrom,
} from "./serve-options.ts";
import type { Session } from "./session.ts";
import { version } from "./version.ts";

const origin = z
  .string()
  .refine(
    (text) => /^https?:\/\//.test(text) && URL.parse(text)?.origin === text,
    "is an origin, such as https://desk.example",
  );

const schema = z.object({
  ...archiveShape,
  ...serveShape,
  allowIncomplete: z.boolean().default(false),
  insecure: z.boolean().default(false),
  cors: z.array(origin).default([]),
  maxRows: wholeNumber(1).optional(),
  maxBytes: mebibytes.optional(),
  maxConcurrent: wholeNumber(1, 10_000),
  maxConnections: wholeNumber(1).optional(),
  queryTimeout: durationMs,
  checksumTimeout: durationMs,
  idleTimeout: durationMs,
  drainTimeout: durationMs,
  accessLog: nonEmpty.optional(),
});

type ServeValues = z.output<typeof schema>;

/** `runvault serve` */
export const serveCommand = commandEntry({
  schema,
  howToGoOn: "Start it again with the same options.",
  declare: (command: Command) =>
    addServeOptions(
      command
        .description(
          "Serves an archive on the gateway's interface, REST and RPC, until it is stopped: what reads from the gateway " +
            "reads from here. Prints the base address on standard output once it listens. New commits are seen without a " +
            "restart. Beyond this machine it serves only with --tokens, or with --insecure.",
        )
        .addOption(archiveOption()),
    )
      .option("--insecure", "answer everybody who reaches an address beyond this machine")
      .option("--allow-incomplete", "serve what the latest attempts brought, proven or not")
      .addOption(
        new Option(
          "--cors <origin>",
          "let pages of this origin read the answers, such as https://desk.example; repeatable",
        ).argParser((text: string, before: string[] | undefined) => [...(before ?? []), text]),
      )
      .option("--max-rows <n>", "most rows of an answer over REST, else 413; most rows of a page over RPC")
      .option(
        "--max-bytes <size>",
        "most of an answer's rows, or of a file, over REST, such as 512MB, else 413 or cut",
      )
      .addOption(
        new Option(
          "--max-concurrent <n>",
          "queries for rows, and files, at a time; more are told to wait, 429",
        ).default("32"),
      )
      .option(
        "--max-connections <n>",
        "connections at a time; for more, those are closed that ask for nothing (default: half of the open files allowed)",
      )
      .addOption(
        new Option(
          "--query-timeout <time>",
          "how long a query may compute before it gives rows, and again between them, else 413",
        ).default("1m"),
      )
      .addOption(
        new Option(
          "--checksum-timeout <time>",
          "how long a scan for row checksums may take, else 413; one runs at a time, eight wait, others get 429",
        ).default("30s"),
      )
      .addOption(
        new Option(
          "--idle-timeout <time>",
          "how long a client may take nothing of an answer before it is dropped",
        ).default("5m"),
      )
      .addOption(
        new Option(
          "--drain-timeout <time>",
          "how long answers may go on once the server is told to stop",
        ).default("10s"),
      )
      .option(
        "--access-log <file>",
        "append one JSON line a request to FILE, opened again at SIGHUP; - is standard output",
      )
      .option("--json", "print the address as an object with url and port")
      .addHelpText(
        "after",
        `
The first SIGTERM or SIGINT refuses new requests and lets answers end; another, a second later
or more, stops at once.

Examples:
  runvault serve --archive /data/archive --port 8080
  runvault serve --host 0.0.0.0 --port 8443 --tokens tokens --tls-cert cert.pem --tls-key key.pem
`,
      ),
  run: serveArchive,
});

async function serveArchive(values: ServeValues, session: Session): Promise<number> {
  refuseOpenDoor(values);
  countBuffersWithHeap();
  const tokens = await tokensFrom(values, session);
  const tls = await tlsFrom(values, session);
  if (tokens !== undefined && tls === undefined && !isLoopback(values.host)) {
    session.note("tokens and rows go over the network in the clear: --tls-cert and --tls-key encrypt them");
  }
  const pageKey = await pageKeyFrom(values, session);
  const { openArchive, openArchiveSource, parquetForms, ArchiveFiles, archiveControl, serve, accessEntry } =
    await loadServer();
  const archive = await openArchive(values.archive);
  const { allowIncomplete } = values;
  const tell = (error: RunvaultError) => {
    const { code, place, cause, message } = error;
    // the system's or DuckDB's own words, which are kept from clients; DuckDB's go on with the SQL
    const why = cause instanceof Error ? cause.message.split("\n", 1)[0] : message;
    session.log.warn({ code, ...place, ...(why === message ? {} : { why }) }, message);
  };
  await using source = openArchiveSource(archive, { allowIncomplete, forms: parquetForms, onDamage: tell });
  await using file =
    values.accessLog === undefined || values.accessLog === "-"
      ? undefined
      : await LogFile.open(values.accessLog, { onError: tell });
  const toOutput = (line: string) => {
    session.terminal.out(`${line}\n`).catch((error) => session.failure(error));
  };
  const writeLine = values.accessLog === "-" ? toOutput : file && ((line: string) => file.write(line));
  const log = writeLine && accessLog((line) => writeLine(visible(session.scrubber.scrub(line))));

  using _renewal = renewTokensOnHangup(values, tokens, session);
  using _rotation = file?.reopenOn(session.terminal.signals);
  const served = await serve({
    source,
    files: new ArchiveFiles(archive, { allowIncomplete }),
    control: archiveControl(archive, { source, version: version(), allowIncomplete }),
    host: values.host,
    port: values.port,
    about: { name: "runvault serve", version: version(), kind: "archive" },
    ...(values.transports === undefined ? {} : { transports: values.transports }),
    hostNames: values.hostName,
    ...pageKey,
    literal: values.literal,
    compress: true,
    forms: ["ndjson", ...(Object.keys(parquetForms) as (keyof typeof parquetForms)[])],
    ...(tls === undefined ? {} : { tls }),
    ...(tokens === undefined ? {} : { tokens }),
    ...(values.cors.length === 0 ? {} : { origins: values.cors }),
    limits: {
      rows: values.maxRows,
      bytes: values.maxBytes === undefined ? undefined : values.maxBytes * 1024 * 1024,
      queries: values.maxConcurrent,
      queryMs: values.queryTimeout,
      checksumMs: values.checksumTimeout,
    },
    connections: { most: values.maxConnections },
    idleReaderMs: values.idleTimeout,
    ...(log === undefined ? {} : { onRequest: (entry, scope) => log.info(accessEntry(entry, scope)) }),
    onError: tell,
  });
  tellHostNames(values, tokens !== undefined, session);
  try {
    await announceUntilStopped(served, session);
    const left = await served.drain(values.drainTimeout);
    if (left > 0) session.note(`${left} ${left === 1 ? "answer" : "answers"} did not end in time: cut`);
  } finally {
    await served.close();
  }
  // being stopped is how a server ends its work
  return exit.done;
}

/** Throws `invalid_argument` where anybody on the network could read the archive without having been let in. */
function refuseOpenDoor({ host, tokens, insecure }: ServeValues): void {
  if (tokens !== undefined || insecure || isLoopback(host)) return;
  throw new RunvaultError(
    "invalid_argument",
    `${host} is an address that others reach, and no tokens are wanted`,
    {
      hint: "Give --tokens FILE (`runvault token --help`), or --insecure to answer everybody.",
    },
  );
}

/** One JSON line a request, with its time. */
function accessLog(write: (line: string) => void) {
  return pino(
    { base: null, timestamp: pino.stdTimeFunctions.isoTime, formatters: { level: (level) => ({ level }) } },
    { write: (line: string) => write(line.trimEnd()) },
  );
}

/** Loaded when the command runs, so that the others start without it. */
async function loadServer() {
  const [
    { openArchive },
    { openArchiveSource },
    { parquetForms },
    { ArchiveFiles },
    { archiveControl },
    { serve },
    { accessEntry },
  ] = await Promise.all([
    import("../archive/archive.ts"),
    import("../archive/archive-source.ts"),
    import("../analytics/parquet-forms.ts"),
    import("../analytics/archive-files.ts"),
    import("../archive/archive-control.ts"),
    import("../serve/server.ts"),
    import("../serve/access-log.ts"),
  ]);
  return { openArchive, openArchiveSource, parquetForms, ArchiveFiles, archiveControl, serve, accessEntry };
}
