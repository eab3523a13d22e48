import { addAbortSignal } from "node:stream";
import { type Command, Option } from "commander";
import { z } from "zod";
import { formats } from "../analytics/format.ts";
import { queryTimedOut } from "../analytics/query-timed-out.ts";
import { RunvaultError } from "../model/error.ts";
import { archiveOption, archiveShape } from "./archive-option.ts";
import { commandEntry } from "./command-entry.ts";
import { durationMs, mebibytes, wholeNumber } from "./option-values.ts";
import type { QueryWork } from "./query-answer.ts";
import { allowIncompleteOption, readerShape, strictOption } from "./reader-options.ts";
import type { ApartEnd } from "./run-apart.ts";
import type { Session } from "./session.ts";

const schema = z.object({
  ...archiveShape,
  sql: z.string(),
  format: z.enum(formats),
  ...readerShape,
  timeout: durationMs,
  memory: mebibytes,
  threads: wholeNumber(1, 256),
  tableRows: wholeNumber(1, 1_000_000),
});

/** `runvault query SQL` */
export const queryCommand = commandEntry({
  schema,
  howToGoOn: "Run the same command again.",
  declare: (command: Command) =>
    command
      .description(
        "Runs one SELECT, or an EXPLAIN of one, over the archive: the eight tables, <table>_f with doubles for tables " +
          "with exact columns, and runs with one row a run. It can read the archive's tables and nothing else.",
      )
      .argument("<sql>", "the statement; - reads it from standard input")
      .addOption(archiveOption())
      .addOption(
        new Option("-f, --format <format>", "form of the answer")
          .choices(formats)
          .default("table")
          .conflicts("json"),
      )
      .option("--json", "same as --format json; errors as JSON too")
      .addOption(allowIncompleteOption())
      .addOption(strictOption())
      .addOption(
        new Option("--timeout <time>", "longest time the query may take, the reading of its answer included")
          .env("RUNVAULT_TIMEOUT")
          .default("5m"),
      )
      .addOption(
        new Option("--memory <size>", "memory before spilling to disk").env("RUNVAULT_MEMORY").default("1GB"),
      )
      .addOption(new Option("--threads <n>", "threads to compute with").env("RUNVAULT_THREADS").default("4"))
      .addOption(new Option("--table-rows <n>", "most rows that the format table shows").default("100"))
      .addHelpText(
        "after",
        `
In json and ndjson, decimals are strings with all their digits, and integers beyond 2^53 are strings too. Times are
RFC 3339, UTC. In csv, NULL is an empty field and the empty string is "". arrow is an Arrow IPC stream, typed. What a
terminal would obey in the data is escaped in table, and in json and ndjson on a terminal; csv is the data as it is.

Rows are those that are proven. Where a table has none, or its latest attempt went wrong, or rows of it are set aside,
or, with --allow-incomplete, are not proven, standard error says so; with --json as one object,
{"runs", "withheld": […], "behind": […], "unproven": […], "setAside": […]}.

Examples:
  runvault query "SELECT symbol, count(*) AS fills, sum(price * quantity) AS turnover FROM fills GROUP BY symbol"
  runvault query --format csv "SELECT * FROM equity WHERE instance_id = 'alpha-1' AND run_id = '2022-01-01-001'" > equity.csv
`,
      ),
  run: runQuery,
});

async function runQuery(values: z.output<typeof schema>, session: Session): Promise<number> {
  const format = session.json ? "json" : values.format;
  if (format === "arrow" && session.terminal.stdoutIsTerminal) {
    throw new RunvaultError("invalid_argument", "arrow is nothing for a terminal", {
      hint: "Send it to a program or a file, or leave out --format.",
    });
  }
  const sql = values.sql === "-" ? await readStandardInput(session.signal) : values.sql;
  const { signal, terminal, globals } = session;
  const work: QueryWork = { ...values, format, sql };
  if (terminal.runApart === null) {
    const { answerQuery } = await import("./query-answer.ts");
    return await answerQuery(work, session);
  }
  const end = await terminal.runApart({
    module: "query-apart",
    request: { work, ...globals },
    memoryBytes: processMebibytes(values) * 1024 * 1024,
    // the statement is stopped at its time; this is for one that does not listen
    timeoutMs: values.timeout + 2_000,
    signal,
    say: session.say,
  });
  if (end.kind === "exit") return end.status;
  throw errorOf(end, values.timeout);
}

/**
 * What the process of a statement may allocate, in mebibytes. DuckDB's operators take up to 1.7 times the memory at which
 * they spill, and end well: docs/performance.md has what was measured. With nothing to do the process has 670, most of
 * which it never touches; each thread adds its stack.
 */
function processMebibytes({
  memory,
  threads,
}: {
  readonly memory: number;
  readonly threads: number;
}): number {
  return 2 * memory + 730 + 16 * threads;
}

/** A process that did not come to its own end: the statement's doing, unless it did not get as far as that. */
function errorOf(end: Exclude<ApartEnd, { kind: "exit" }>, timeoutMs: number): RunvaultError {
  switch (end.kind) {
    case "timeout":
      return queryTimedOut(timeoutMs);
    case "memory":
      return tookTooMuch();
    case "crash":
      // what was refused its memory says so on its way out, V8 and the C++ library alike; SIGKILL is how the system ends
      // what takes too much of the machine's
      if (/out of memory|bad_alloc/i.test(end.last) || end.by === "SIGKILL")
        return tookTooMuch(new Error(end.last));
      return new RunvaultError("query_invalid", `the query crashed DuckDB (${end.by})`, {
        cause: new Error(end.last === "" ? "it said nothing" : end.last),
        hint: "Write it another way: nesting it less may do, and so may more --memory.",
      });
    case "failed":
      return new RunvaultError("internal", `the query's process ended with status ${end.status}`, {
        cause: new Error(end.last === "" ? "it said nothing" : end.last),
      });
  }
}

function tookTooMuch(cause?: Error): RunvaultError {
  return new RunvaultError("query_invalid", "the query took more memory than it may", {
    cause,
    hint: "Narrow it, or raise --memory.",
  });
}

async function readStandardInput(signal: AbortSignal): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of addAbortSignal(signal, process.stdin)) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}
