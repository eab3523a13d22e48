import { join } from "node:path";
import { type Command, Option } from "commander";
import { z } from "zod";
import { faultGrammar, faultKinds } from "../../faults/fault.ts";
import { exit, RunvaultError } from "../../model/error.ts";
import { formatRun } from "../../model/run-argument.ts";
import { readTokenFile } from "../../model/secret-file.ts";
import { formatTime, type Nanoseconds } from "../../model/time.ts";
import { version } from "../../model/version.ts";
import { isLoopback } from "../../serve/http/loopback.ts";
import { bookFaultKinds } from "../../simulator/books/book-fault.ts";
import { instanceFaultKinds } from "../../simulator/control/instance-fault.ts";
import type { RenderWatch, Simulator } from "../../simulator/simulator.ts";
import { countBuffersWithHeap } from "../apart/external-memory.ts";
import { commandEntry } from "../entry/command-entry.ts";
import { positiveNumber, waitMs, wholeNumber } from "../options/option-values.ts";
import { secretReading } from "../options/secret-reading.ts";
import {
  addServeOptions,
  announceUntilStopped,
  openLineFile,
  pageKeyFrom,
  renewTokensOnHangup,
  serveShape,
  tellHostNames,
  tlsFrom,
  tokensFrom,
} from "../options/serve-options.ts";
import { clockFrom } from "../options/simulated-clock.ts";
import { parseFaults } from "../options/simulated-faults.ts";
import { wrapped } from "../output/wrap-lines.ts";
import type { Session } from "../process/session.ts";
import { cacheFolder } from "../process/user-folder.ts";

const accountings = ["spot", "margin"] as const;

const schema = z.object({
  seed: z.string(),
  instances: wholeNumber(1, 1000),
  runs: wholeNumber(1, 100_000),
  templates: wholeNumber(1, 999).optional(),
  rows: wholeNumber(1, 1_000_000_000),
  fills: wholeNumber(0, 1_000_000_000).optional(),
  bars: z.string().optional(),
  symbols: wholeNumber(1, 100).optional(),
  currencies: z
    .string()
    .transform((text) => text.split(",").map((name) => name.trim()))
    .optional(),
  accounting: z.enum(accountings).optional(),
  edge: positiveNumber.optional(),
  transfers: wholeNumber(0, 10_000).optional(),
  funding: waitMs.optional(),
  growing: z.boolean().default(false),
  clock: z.string(),
  ...serveShape,
  compress: z.boolean().default(false),
  fault: z.array(z.string()).default([]),
  tokenFile: z.string().optional(),
  maxRowsPerAnswer: wholeNumber(1).optional(),
  requestLog: z.string().optional(),
  cache: z.string().min(1),
});

/** `runvault simulate` */
export const simulateCommand = commandEntry({
  schema,
  howToGoOn: "Start it again with the same options for the same world.",
  declare: (command: Command) =>
    addServeOptions(command)
      .description(
        "Serves a simulated world of trading runs on the gateway's interface, REST and RPC, until it is stopped. Prints the " +
          "base address on standard output once it listens. The same seed and options give the same bytes.",
      )
      .addOption(new Option("--seed <text>", "seed of the world").default("1"))
      .addOption(new Option("--instances <n>", "number of strategy instances").default("1"))
      .addOption(new Option("--runs <n>", "runs per instance").default("2"))
      .option(
        "--templates <n>",
        "render only N runs per instance and serve their rows for the others, under each run's id and at its times",
      )
      .addOption(
        new Option("--rows <n>", "approximate number of rows per run, over all tables").default("20000"),
      )
      .option("--fills <n>", "exact number of fills per run")
      .option(
        "--bars <file>",
        "trade on the bars of FILE.csv[.gz] (timestamp,open,high,low,close[,volume]) instead of generated ones",
      )
      .option(
        "--symbols <n>",
        "number of instruments that each run trades, each with its own bars (default: 1)",
      )
      .option(
        "--currencies <list>",
        "quote currencies, used in turn by the instruments, each with its own cash and equity, such as USD,EUR (default: USD)",
      )
      .addOption(
        new Option(
          "--accounting <way>",
          "how cash is booked: full purchase prices (spot, the default), or only realized profit and fees (margin)",
        ).choices(accountings),
      )
      .option(
        "--edge <bp>",
        "fill every order at a price better by BP basis points; with ten, the strategy wins",
      )
      .option("--transfers <n>", "number of deposits and withdrawals during each run, in each currency")
      .option(
        "--funding <period>",
        "settle funding of open positions and interest on cash every PERIOD, such as 8h",
      )
      .option(
        "--growing",
        "the last run of every instance begins on 2024-01-01 and grows as the clock advances; --clock says where it is",
      )
      .addOption(
        new Option(
          "--clock <clock>",
          "clock of growing runs and lifecycle actions: wall, TIME (stands still), or TIME*SPEED (starts at TIME, runs SPEED times as fast)",
        ).default("wall"),
      )
      .option(
        "--compress",
        "compress rows for clients that accept it: gzip and zstd over REST, gzip over RPC",
      )
      .addOption(
        new Option("--fault <fault>", "a fault to simulate, see below; repeatable").argParser(
          (text: string, before: string[] | undefined) => [...(before ?? []), text],
        ),
      )
      .option("--token-file <file>", "require the token in FILE on every request")
      .option("--max-rows-per-answer <n>", "silently cap answers, and pages over RPC")
      .option("--request-log <file>", "append one JSON line per request to FILE")
      .addOption(
        new Option("--cache <dir>", "folder that keeps rendered worlds")
          .env("RUNVAULT_CACHE")
          .default(
            join(cacheFolder(process.env), "worlds"),
            "$XDG_CACHE_HOME/runvault/worlds or ~/.cache/runvault/worlds",
          ),
      )
      .option("--json", "print the address as an object with url and port")
      .addHelpText("after", () => faultHelp()),
  run: simulate,
});

const bookFaultGrammar =
  "Faults in the books: each breaks one thing in one place of every run of INSTANCE (* for all), which the seed decides. " +
  "Counts and storage facts agree with the rows, so that the runs are archived as complete. One for each instance:";

/** Width of the help text. */
const columns = 100;

function faultHelp(): string {
  const all = [...faultKinds, ...instanceFaultKinds, ...bookFaultKinds];
  const width = Math.max(...all.map(({ form }) => form.length));
  const listed = (kinds: readonly { form: string; meaning: string }[]) =>
    kinds
      .map(({ form, meaning }) => {
        const lines = wrapped(meaning, columns - width - 4);
        return lines.map((line, at) => `  ${(at === 0 ? form : "").padEnd(width)}  ${line}`).join("\n");
      })
      .join("\n");
  return `
${wrapped(`Faults, written ${faultGrammar}`, columns).join("\n")}
${listed(faultKinds)}

Faults in what instances do; the first two also take *TIMES, and happen once without it:
${listed(instanceFaultKinds)}

${wrapped(bookFaultGrammar, columns).join("\n")}
${listed(bookFaultKinds)}

Examples:
  runvault simulate --seed 7 --instances 2 --runs 3 --port 8080
  runvault simulate --bars btc-perp-1m-2022-01.csv.gz --fault cut@fills:1000
  runvault simulate --symbols 3 --currencies USD,EUR --accounting margin --edge 10
`;
}

async function simulate(values: z.output<typeof schema>, session: Session): Promise<number> {
  countBuffersWithHeap();
  const faults = parseFaults(values.fault);
  for (const { kind, text, requests } of faults.answers) {
    if (kind !== "late" || Number.isFinite(requests)) continue;
    throw new RunvaultError(
      "invalid_argument",
      `invalid fault ${JSON.stringify(text)}: its rows never appear`,
      {
        hint: "Give the request at which they appear: late@TABLE:ROW,COUNT,REQUESTS.",
      },
    );
  }
  const clock = clockFrom(values.clock);
  if (values.tokens !== undefined && values.tokenFile !== undefined) {
    throw new RunvaultError("invalid_argument", "--tokens and --token-file cannot be combined");
  }
  const token =
    values.tokenFile === undefined
      ? undefined
      : await readTokenFile("--token-file", values.tokenFile, secretReading(session));
  session.scrubber.add(token ?? "");
  const tokens = await tokensFrom(values, session);
  if (tokens === undefined && token === undefined && !isLoopback(values.host)) {
    session.note(
      "anyone who can connect to this address can read, start and stop everything: --tokens FILE limits access",
    );
  }
  const tls = await tlsFrom(values, session);
  const pageKey = await pageKeyFrom(values, session);
  const { openSimulator, serve, ArmedFaults, wireFaults } = await loadWorld();

  await using log = values.requestLog === undefined ? undefined : await openLineFile(values.requestLog);
  await using world = await rendered(session, (watch) =>
    openSimulator(
      {
        seed: values.seed,
        instances: values.instances,
        runs: values.runs,
        templates: values.templates,
        rows: values.rows,
        fills: values.fills,
        bars: values.bars,
        growing: values.growing,
        clock,
        faults: faults.instances,
        bookFaults: faults.books,
        symbols: values.symbols,
        currencies: values.currencies,
        accounting: values.accounting,
        edge: values.edge,
        transfers: values.transfers,
        fundingMs: values.funding,
        cacheDir: values.cache,
      },
      watch,
    ),
  );
  session.signal.throwIfAborted();
  tellGrown(world, clock(), session);
  using _renewal = renewTokensOnHangup(values, tokens, session);
  const served = await serve({
    source: world,
    control: world,
    host: values.host,
    port: values.port,
    about: { name: "runvault simulate", version: version(), kind: "simulator" },
    ...(values.transports === undefined ? {} : { transports: values.transports }),
    ...(tls === undefined ? {} : { tls }),
    hostNames: values.hostName,
    ...pageKey,
    literal: values.literal,
    compress: values.compress,
    wire: wireFaults(new ArmedFaults(faults.answers)),
    ...(token === undefined ? {} : { token }),
    ...(tokens === undefined ? {} : { tokens }),
    ...(values.maxRowsPerAnswer === undefined ? {} : { maxRowsPerAnswer: values.maxRowsPerAnswer }),
    ...(log === undefined ? {} : { onRequest: (entry: unknown) => log.write(JSON.stringify(entry)) }),
    onError: (error) => session.log.warn({ code: error.code, ...error.place }, error.message),
  });
  tellHostNames(values, tokens !== undefined || token !== undefined, session);
  try {
    await announceUntilStopped(served, session);
  } finally {
    await served.close();
  }
  // stopping is the normal end of a server
  return exit.done;
}

/** Explains why growing runs were requested but all have ended. */
function tellGrown(world: Simulator, now: Nanoseconds, session: Session): void {
  const [first, ...others] = world.growing();
  if (first === undefined || [first, ...others].some(({ complete }) => complete > now)) return;
  const begin = `${formatTime(first.started).slice(0, 19)}Z`;
  session.note(
    `no run grows any more: by the clock all have ended; --clock '${begin}*60' begins where they do, sixty times as fast`,
  );
}

/** Opens a world and shows progress while it is rendered. */
async function rendered(
  session: Session,
  open: (watch: RenderWatch) => Promise<Simulator>,
): Promise<Simulator> {
  using progress = session.progress();
  let shown = 0;
  return await open({
    signal: session.signal,
    onProgress: (run, rows, share) => {
      progress.on(`rendering ${formatRun(run)}`);
      progress.add(rows - shown, 0);
      progress.expect(Math.round(rows / share));
      shown = rows;
    },
  });
}

/** Loaded when the command runs, so that other commands start without it. */
async function loadWorld() {
  const { openSimulator } = await import("../../simulator/simulator.ts");
  const { serve } = await import("../../serve/server.ts");
  const { ArmedFaults } = await import("../../faults/armed-faults.ts");
  const { wireFaults } = await import("../../faults/wire-faults.ts");
  return { openSimulator, serve, ArmedFaults, wireFaults };
}
