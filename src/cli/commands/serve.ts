import { type Command, Option } from "commander";
import { pino } from "pino";
import { z } from "zod";
import { exit, RunvaultError } from "../../model/error.ts";
import { visible } from "../../model/text/visible-text.ts";
import { version } from "../../model/version.ts";
import { isLoopback } from "../../serve/http/loopback.ts";
import { countBuffersWithHeap } from "../apart/external-memory.ts";
import { commandEntry } from "../entry/command-entry.ts";
import { archiveOption, archiveShape } from "../options/archive-option.ts";
import { durationMs, mebibytes, nonEmpty, wholeNumber } from "../options/option-values.ts";
import {
  addServeOptions,
  announceUntilStopped,
  pageKeyFrom,
  renewTokensOnHangup,
  serveShape,
  tellHostNames,
  tlsFrom,
  tokensFrom,
} from "../options/serve-options.ts";
import { LogFile } from "../process/log-file.ts";
import type { Session } from "../process/session.ts";

const origin = z
  .string()
  .refine(
    (text) => /^https?:\/\//.test(text) && URL.parse(text)?.origin === text,
    "must be an origin, such as https://desk.example",
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
          "Serves an archive on the gateway's interface, REST and RPC, until it is stopped: clients of the gateway work " +
            "with it unchanged. Prints the base address on standard output once it listens. New commits are seen without " +
            "a restart. It serves other machines only with --tokens or --insecure.",
        )
        .addOption(archiveOption()),
    )
      .option("--insecure", "serve other machines without tokens, to anyone who can connect")
      .option("--allow-incomplete", "serve what the latest attempts fetched, proven or not")
      .addOption(
        new Option(
          "--cors <origin>",
          "let web pages of this origin read the answers, such as https://desk.example; repeatable",
        ).argParser((text: string, before: string[] | undefined) => [...(before ?? []), text]),
      )
      .option("--max-rows <n>", "most rows in a REST answer (more gives 413) and in an RPC page")
      .option(
        "--max-bytes <size>",
        "maximum bytes of rows in a REST answer, or of a file, such as 512MB; above it 413, or the answer is cut",
      )
      .addOption(
        new Option(
          "--max-concurrent <n>",
          "maximum number of row queries and files at a time; more get 429",
        ).default("32"),
      )
      .option(
        "--max-connections <n>",
        "maximum number of connections; idle ones are closed to make room (default: half of the limit on open files)",
      )
      .addOption(
        new Option(
          "--query-timeout <time>",
          "how long a query may compute before its first rows, and between rows; above it 413",
        ).default("1m"),
      )
      .addOption(
        new Option(
          "--checksum-timeout <time>",
          "how long a scan for row checksums may take; above it 413; one runs at a time, eight wait, more get 429",
        ).default("30s"),
      )
      .addOption(
        new Option(
          "--idle-timeout <time>",
          "how long a client may stop reading before it is dropped",
        ).default("5m"),
      )
      .addOption(
        new Option(
          "--drain-timeout <time>",
          "how long answers may take to finish once the server is stopping",
        ).default("10s"),
      )
      .option(
        "--access-log <file>",
        "append one JSON line per request to FILE, reopened at SIGHUP; - is standard output",
      )
      .option("--json", "print the address as an object with url and port")
      .addHelpText(
        "after",
        `
The first SIGTERM or SIGINT stops taking requests and lets answers finish; another, at least a
second later, stops at once.

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
    session.note("tokens and rows cross the network unencrypted: --tls-cert and --tls-key encrypt them");
  }
  const pageKey = await pageKeyFrom(values, session);
  const { openArchive, openArchiveSource, parquetForms, ArchiveFiles, archiveControl, serve, accessEntry } =
    await loadServer();
  const archive = await openArchive(values.archive);
  const { allowIncomplete } = values;
  const tell = (error: RunvaultError) => {
    const { code, place, cause, message } = error;
    // the system's or DuckDB's own words, which clients never see; DuckDB's continue with the SQL
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
    if (left > 0)
      session.note(
        `${left} ${left === 1 ? "answer" : "answers"} did not finish within --drain-timeout and ${left === 1 ? "was" : "were"} cut`,
      );
  } finally {
    await served.close();
  }
  // stopping is the normal end of a server
  return exit.done;
}

/** Throws `invalid_argument` if anyone on the network could read the archive. */
function refuseOpenDoor({ host, tokens, insecure }: ServeValues): void {
  if (tokens !== undefined || insecure || isLoopback(host)) return;
  throw new RunvaultError(
    "invalid_argument",
    `--host ${host}: other machines can reach this address, and no tokens are required`,
    {
      hint: "Give --tokens FILE (`runvault serve token --help` says how to make one), or --insecure to serve anyone who can connect.",
    },
  );
}

/** Writes one JSON line per request, with its time. */
function accessLog(write: (line: string) => void) {
  return pino(
    { base: null, timestamp: pino.stdTimeFunctions.isoTime, formatters: { level: (level) => ({ level }) } },
    { write: (line: string) => write(line.trimEnd()) },
  );
}

/** Loaded when the command runs, so that other commands start without it. */
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
    import("../../archive/archive.ts"),
    import("../../archive/read/archive-source.ts"),
    import("../../analytics/export/parquet-forms.ts"),
    import("../../analytics/files/archive-files.ts"),
    import("../../archive/read/archive-control.ts"),
    import("../../serve/server.ts"),
    import("../../serve/monitoring/access-log.ts"),
  ]);
  return { openArchive, openArchiveSource, parquetForms, ArchiveFiles, archiveControl, serve, accessEntry };
}
