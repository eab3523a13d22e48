import { type Command, Option } from "commander";
import { z } from "zod";
import { type Format, formatOf, formats, isTextFormat } from "../analytics/format.ts";
import { RunvaultError } from "../model/error.ts";
import { commandEntry } from "./command-entry.ts";
import { nonEmpty } from "./option-values.ts";
import type { Session } from "./session.ts";
import { readSqlFile, readSqlInput, type SqlText } from "./sql-text.ts";
import { addStatementOptions, statementShape } from "./statement-options.ts";
import { openStatementRunner } from "./statement-runner.ts";
import { writtenText } from "./written-text.ts";

const schema = z.object({
  ...statementShape,
  sql: z.string().optional(),
  file: nonEmpty.optional(),
  format: z.enum(formats).optional(),
  out: nonEmpty.optional(),
  force: z.boolean().default(false),
});
type Values = z.output<typeof schema>;

/** `runvault query SQL` */
export const queryCommand = commandEntry({
  schema,
  howToGoOn: "Run the same command again.",
  declare: (command: Command) =>
    addStatementOptions(
      command
        .description(
          "Runs one SELECT, or an EXPLAIN of one, over the archive: the eight tables, <table>_f with doubles for tables " +
            "with exact columns, and runs with one row a run. It can read the archive's tables and nothing else.",
        )
        .argument(
          "[sql]",
          "the statement; - reads it from standard input, as does leaving it out where that is no terminal",
        )
        .option("--file <file>", "read the statement from a file; - is standard input")
        .addOption(
          new Option(
            "-f, --format <format>",
            "form of the answer; by what --out ends with, else table, unless given",
          )
            .choices(formats)
            .conflicts("json"),
        )
        .option("--json", "same as --format json; errors as JSON too")
        .option("-o, --out <file>", "file for the answer; it takes its name when it is whole")
        .option("--force", "replace the file if it is there already"),
    ).addHelpText(
      "after",
      `
In json and ndjson, decimals are strings with all their digits, and integers beyond 2^53 are strings too. Times are
RFC 3339, UTC. In csv, NULL is an empty field and the empty string is "". vertical has one field a line. What a terminal
would obey in the data is escaped in table and vertical, and in json and ndjson on a terminal; csv is the data as it is.
arrow is typed: an Arrow IPC stream on standard output (arrow-stream anywhere), an Arrow IPC file with --out. parquet is
typed too: integers of 128 bits as DECIMAL(38,0), and what Parquet has no type for as text.

A file's name ends with .txt (table), .csv, .json, .ndjson or .jsonl, .arrow, .arrows (arrow-stream) or .parquet; any other
wants --format. On a terminal a table is cut to its width, and to 1000 rows; what is written elsewhere is whole.

Rows are those that are proven. Where a table has none, or its latest attempt went wrong, or rows of it are set aside,
or, with --allow-incomplete, are not proven, standard error says so; with --json as one object,
{"runs", "withheld": […], "behind": […], "unproven": […], "setAside": […]}.

Examples:
  runvault query "SELECT symbol, count(*) AS fills, sum(price * quantity) AS turnover FROM fills GROUP BY symbol"
  runvault query -o equity.parquet "SELECT * FROM equity WHERE instance_id = 'alpha-1' AND run_id = '2022-01-01-001'"
  runvault query --file turnover.sql --format csv | head
`,
    ),
  run: runQuery,
});

async function runQuery(values: Values, session: Session): Promise<number> {
  const file = values.out === "-" ? undefined : values.out;
  const format = session.json ? "json" : (values.format ?? guessedFormat(file));
  if (file === undefined && !isTextFormat(format) && session.terminal.stdoutIsTerminal) {
    throw new RunvaultError("invalid_argument", `${format} is nothing for a terminal`, {
      hint: "Give --out a file, send it to a program, or leave out --format.",
    });
  }
  // while the statement is read, its process starts
  await using runner = openStatementRunner(values, session);
  const sql = await sqlOf(values, session);
  const out = file === undefined ? null : { file, force: values.force };
  const { status, rows, written } = await runner.run(sql, { format, out }, session.signal);
  if (written !== null) session.note(writtenText({ ...written, rows: rows ?? 0 }, session.json));
  return status;
}

function guessedFormat(file: string | undefined): Format {
  if (file === undefined) return "table";
  const guessed = formatOf(file);
  if (guessed !== null) return guessed;
  throw new RunvaultError("invalid_argument", `the name does not tell the format: ${file}`, {
    hint: `Give --format, one of ${formats.join(", ")}.`,
  });
}

async function sqlOf({ sql, file }: Values, { terminal, signal, note }: Session): Promise<SqlText> {
  if (sql !== undefined && file !== undefined) {
    throw new RunvaultError("invalid_argument", "--file and a statement exclude each other", {
      hint: "Give one of them.",
    });
  }
  const named = file ?? sql;
  if (named === undefined && terminal.stdinIsTerminal) {
    throw new RunvaultError("invalid_argument", "no statement is given", {
      hint: "Give it in quotes, by --file, or on standard input; `runvault shell` asks for one after another.",
    });
  }
  if (named === undefined || named === "-") {
    if (terminal.stdinIsTerminal) note("type the statement, then Enter and Ctrl-D");
    return await readSqlInput(terminal.stdin, signal);
  }
  if (file !== undefined) return await readSqlFile(file, signal);
  return { text: named, file: null, line: 1 };
}
