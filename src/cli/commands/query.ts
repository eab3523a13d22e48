import { type Command, Option } from "commander";
import { z } from "zod";
import { type Format, formatOf, formats, isTextFormat } from "../../analytics/render/format.ts";
import { RunvaultError } from "../../model/error.ts";
import { openStatementRunner } from "../apart/statement-runner.ts";
import { commandEntry } from "../entry/command-entry.ts";
import { nonEmpty } from "../options/option-values.ts";
import { addStatementOptions, statementShape } from "../options/statement-options.ts";
import type { Session } from "../process/session.ts";
import { writtenText } from "../process/written-text.ts";
import { readSqlFile, readSqlInput, type SqlText } from "../shell/sql-text.ts";

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
            "with exact columns, and runs with one row per run. It can read nothing but the archive's tables.",
        )
        .argument(
          "[sql]",
          "the statement; - reads it from standard input, and so does leaving it out if that is not a terminal",
        )
        .option("--file <file>", "read the statement from a file; - is standard input")
        .addOption(
          new Option(
            "-f, --format <format>",
            "format of the answer (default: by the file ending of --out, else table)",
          )
            .choices(formats)
            .conflicts("json"),
        )
        .option("--json", "same as --format json; errors as JSON too")
        .option("-o, --out <file>", "write the answer to FILE, which gets its name only once it is complete")
        .option("--force", "replace an existing file"),
    ).addHelpText(
      "after",
      `
In json and ndjson, decimals are strings with all their digits, and so are integers beyond 2^53.
Times are RFC 3339 in UTC. In csv, NULL is an empty field and the empty string is "". vertical has
one field per line. Control characters in the data are escaped in table and vertical, and on a
terminal also in json and ndjson; csv is the data as it is. arrow is an Arrow IPC stream on standard
output (arrow-stream anywhere) and an Arrow IPC file with --out. In parquet, 128-bit integers are
DECIMAL(38,0), and values that Parquet has no type for are text.

The file ending of --out can be .txt (table), .csv, .json, .ndjson or .jsonl, .arrow, .arrows
(arrow-stream) or .parquet; any other needs --format. On a terminal a table is cut to the terminal's
width and to 1000 rows; anywhere else it is written in full.

Three more tables are computed from fills, for all runs, when a statement names them:
round_trips (from one flat position to the next; a trade still open at the end has is_open),
matches (pairs of fills in which one closes the other, first in, first out) and positions (at the
end of each run). --instruments supplies facts about instruments that the rows lack:
docs/instruments.md.

Macros compute the figures of a run: performance, session_returns, session_points, drawdowns,
monthly, rolling, benchmark_returns, execution, order_funnel, factor_coverage, factor_ic,
factor_ic_series and factor_quantiles. docs/metrics.md has their arguments.

Only proven rows are shown. A warning on standard error says if a table has none, if its latest
attempt failed, if rows were set aside or, with --allow-incomplete, are not proven; with --json it
is one object, {"runs", "withheld": […], "behind": […], "unproven": […], "setAside": […]}.

Examples:
  runvault query "SELECT symbol, sum(price * quantity) AS turnover FROM fills GROUP BY symbol"
  runvault query -o equity.parquet "SELECT * FROM equity WHERE run_id = '2022-01-01-001'"
  runvault query "SELECT symbol, sum(net_pnl) FROM round_trips GROUP BY symbol"
  runvault query "FROM performance('alpha-1', '2022-01-01-001', session := 'bars')"
  runvault query --file turnover.sql --format csv | head
`,
    ),
  run: runQuery,
});

async function runQuery(values: Values, session: Session): Promise<number> {
  const file = values.out === "-" ? undefined : values.out;
  const format = session.json ? "json" : (values.format ?? guessedFormat(file));
  if (file === undefined && !isTextFormat(format) && session.terminal.stdoutIsTerminal) {
    throw new RunvaultError("invalid_argument", `${format} is binary and cannot be shown on a terminal`, {
      hint: "Give --out FILE, pipe it into a program, or leave out --format.",
    });
  }
  // its process starts while the statement is read
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
  throw new RunvaultError("invalid_argument", `the format is not clear from the file name: ${file}`, {
    hint: `Give --format, one of ${formats.join(", ")}.`,
  });
}

async function sqlOf({ sql, file }: Values, { terminal, signal, note }: Session): Promise<SqlText> {
  if (sql !== undefined && file !== undefined) {
    throw new RunvaultError("invalid_argument", "--file cannot be combined with a statement", {
      hint: "Give one of them.",
    });
  }
  const named = file ?? sql;
  if (named === undefined && terminal.stdinIsTerminal) {
    throw new RunvaultError("invalid_argument", "no statement is given", {
      hint: "Give it in quotes, with --file FILE, or on standard input; `runvault shell` is interactive.",
    });
  }
  if (named === undefined || named === "-") {
    if (terminal.stdinIsTerminal) note("type the statement, then Enter and Ctrl-D");
    return await readSqlInput(terminal.stdin, signal);
  }
  if (file !== undefined) return await readSqlFile(file, signal);
  return { text: named, file: null, line: 1 };
}
