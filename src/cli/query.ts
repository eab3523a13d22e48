import { addAbortSignal } from "node:stream";
import { type Command, Option } from "commander";
import { z } from "zod";
import { formats } from "../analytics/format.ts";
import type { QueryResult } from "../analytics/query.ts";
import { exit, RunvaultError } from "../model/error.ts";
import { archiveOption, archiveShape } from "./archive-option.ts";
import { commandEntry } from "./command-entry.ts";
import { durationMs, mebibytes, wholeNumber } from "./option-values.ts";
import { allowIncompleteOption, readerShape, strictOption, tellShortfall } from "./reader-options.ts";
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
      .name("query")
      .summary("run one SELECT over the archive")
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
        new Option("--timeout <time>", "longest time the query may take")
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
  const { openArchive, openQuery, render } = await loadQuery();
  const sql = values.sql === "-" ? await readStandardInput(session.signal) : values.sql;
  const archive = await openArchive(values.archive);
  await using query = await openQuery(archive, {
    allowIncomplete: values.allowIncomplete,
    memoryLimitMb: values.memory,
    timeoutMs: values.timeout,
    threads: values.threads,
    signal: session.signal,
  });
  const result = await query.run(sql, session.signal);
  // ahead of the rows: what is not all there must not look like an answer
  const status =
    result.shortfall === null ? exit.done : await tellShortfall(result.shortfall, values, session);
  if (format === "arrow") {
    await sendArrow(result, session);
    return status;
  }
  const options = { tableRows: values.tableRows, onCut: (note: string) => session.note(`note: ${note}`) };
  const isJson = format === "json" || format === "ndjson";
  // programs get the data as it is; JSON for people means the same without what a terminal would obey
  const isForPeople = format === "table" || (isJson && session.terminal.stdoutIsTerminal);
  const send = isForPeople ? session.print : session.terminal.out;
  for await (const text of render(result, format, options)) {
    if (!(await send(text))) break;
  }
  return status;
}

async function sendArrow(result: QueryResult, session: Session): Promise<void> {
  const { arrowStream } = await import("../analytics/arrow-ipc.ts");
  const { textColumns } = await import("../analytics/arrow-type.ts");
  const text = textColumns(result.columns);
  if (text.length > 0) session.note(`note: as text: ${text.join(", ")}`);
  for await (const piece of arrowStream(result)) {
    if (!(await session.terminal.out(piece))) break;
  }
}

/** Loaded when the command runs, so that the others start without it. */
async function loadQuery() {
  const { openArchive } = await import("../archive/archive.ts");
  const { openQuery } = await import("../analytics/query.ts");
  const { render } = await import("../analytics/render.ts");
  return { openArchive, openQuery, render };
}

async function readStandardInput(signal: AbortSignal): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of addAbortSignal(signal, process.stdin)) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}
