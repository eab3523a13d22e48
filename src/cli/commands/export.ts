import { type Command, Option } from "commander";
import { z } from "zod";
import { analysedTables } from "../../analytics/analysed-tables.ts";
import type { ExportedFile } from "../../analytics/export/export.ts";
import {
  decimalForms,
  type ExportFormat,
  exportFormatOf,
  exportFormats,
  isStreamFormat,
  partitions,
  streamFormats,
} from "../../analytics/export/export-format.ts";
import type { Shortfall } from "../../analytics/shortfall.ts";
import { RunvaultError } from "../../model/error.ts";
import { type FilterName, type Table, tableNamed, tables } from "../../model/profile/table.ts";
import { byteText } from "../../model/text/byte-text.ts";
import { grouped } from "../../model/text/number-text.ts";
import { plural } from "../../model/text/plural.ts";
import { visible } from "../../model/text/visible-text.ts";
import { commandEntry } from "../entry/command-entry.ts";
import { killStep } from "../maintain/kill-step.ts";
import { archiveOption, archiveShape } from "../options/archive-option.ts";
import { instant, instantHelp } from "../options/instant.ts";
import { instrumentsOption } from "../options/instruments-option.ts";
import { mebibytes, nonEmpty, wholeNumber } from "../options/option-values.ts";
import { allowIncompleteOption, readerShape, strictOption } from "../options/reader-options.ts";
import { runsNamed } from "../options/runs-named.ts";
import { tellShortfall } from "../output/tell-shortfall.ts";
import type { Session } from "../process/session.ts";

const schema = z.object({
  ...archiveShape,
  tables: z.array(z.string()).default([]),
  allTables: z.boolean().default(false),
  list: z.boolean().default(false),
  format: z.enum(Object.keys(exportFormats) as [ExportFormat, ...ExportFormat[]]).optional(),
  out: nonEmpty.optional(),
  partition: z.enum(partitions).optional(),
  withAnalytics: z.boolean().default(false),
  views: z.boolean().default(false),
  instruments: nonEmpty.optional(),
  force: z.boolean().default(false),
  run: z.array(z.string()).default([]),
  resourceKey: z.string().optional(),
  symbol: z.string().optional(),
  venue: z.string().optional(),
  account: z.string().optional(),
  portfolio: z.string().optional(),
  from: instant.optional(),
  to: instant.optional(),
  decimals: z.enum(decimalForms),
  ...readerShape,
  memory: mebibytes,
  threads: wholeNumber(1, 256),
});
type Values = z.output<typeof schema> & { readonly out: string };

/** Options for the contents and form of written files. */
const onlyOfWriting = [
  ...["out", "format", "partition", "withAnalytics", "views", "instruments", "force"],
  ...["symbol", "venue", "account", "portfolio", "resourceKey", "from", "to"],
];

/** `runvault export TABLE… --out PATH` and `runvault export --list TABLE…` */
export const exportCommand = commandEntry({
  schema,
  howToGoOn: "Run the same command again: the output was not written.",
  declare: (command: Command) =>
    command
      .description(
        "Writes tables of some or all runs to files for other programs. Rows come in key order: by run, then ts_event, " +
          "then seq. A file gets its name only once it is complete. With --list it writes nothing: it prints the archive's " +
          "own Parquet files.",
      )
      .argument("[tables...]", "tables to export")
      .option("--all-tables", "every table")
      .addOption(
        new Option(
          "-f, --format <format>",
          "format of the files (default: by the file ending of --out)",
        ).choices(Object.keys(exportFormats)),
      )
      .option(
        "-o, --out <path>",
        `a file for one table or for duckdb, else a folder; - is standard output (${streamFormats.join(", ")})`,
      )
      .addOption(
        new Option(
          "--list",
          "print the paths of the archive's Parquet files of these tables, for any Parquet reader, and write nothing",
        ).conflicts(onlyOfWriting),
      )
      .addOption(
        new Option(
          "--partition <by>",
          "run: one file per table and run, as PATH/TABLE/INSTANCE/RUN.parquet",
        ).choices(partitions),
      )
      .option(
        "--with-analytics",
        "duckdb: also round_trips, matches and positions, and the macros of `runvault query`, with the tables that they read",
      )
      .option(
        "--views",
        "duckdb: a small file that reads the rows in the archive's tables/, as they are when it is queried",
      )
      .addOption(instrumentsOption())
      .option("--force", "replace existing files")
      .addOption(archiveOption())
      .option("--run <run>", "only this run, INSTANCE/RUN or INSTANCE/latest; repeatable", collected)
      .option("--symbol <symbol>", "only rows of this symbol")
      .option("--venue <venue>", "only rows of this venue")
      .option("--account <account>", "only rows of this account")
      .option("--portfolio <portfolio>", "only rows of this portfolio")
      .option("--resource-key <key>", "only rows of this resource")
      .option("--from <time>", `only rows with ts_event at or after it: ${instantHelp}`)
      .option("--to <time>", "only rows with ts_event before it")
      .addOption(
        new Option("--decimals <form>", "prices, quantities and money as decimals, or as doubles")
          .choices(decimalForms)
          .default("exact"),
      )
      .addOption(allowIncompleteOption())
      .addOption(strictOption())
      .addOption(
        new Option("--memory <size>", "memory to use before spilling to disk")
          .env("RUNVAULT_MEMORY")
          .default("512MB"),
      )
      .addOption(new Option("--threads <n>", "number of threads").env("RUNVAULT_THREADS").default("4"))
      .option(
        "--json",
        "report as JSON: the files with their tables, rows and bytes, and what is withheld, behind, unproven or set aside",
      )
      .addHelpText(
        "after",
        `
File endings: ${Object.entries(exportFormats)
          .map(([format, ending]) => `.${ending}${ending === format ? "" : ` (${format})`}`)
          .join(", ")}.
arrow is an Arrow IPC file, arrow-stream an Arrow IPC stream. duckdb is one database with the
exported tables, runs, and <table>_f with doubles. ndjson holds the lines as a gateway sends them.
In csv, NULL is an empty field and the empty string is "". Times are in UTC without a time zone, in
nanoseconds.

--list checks each file against its commit, and all come from one state of the archive. Files that a
later commit replaces are kept for an hour. With --json each has file, table, instance, run, bucket,
rows, bytes and sha256; what is withheld goes to standard error.

With --views, a database shows the rows that the archive has at the time of a query, and
needs the archive at its present path. Copied at the time of the export: runs, and with
--with-analytics also round_trips, matches and positions, about 150 bytes per fill.

Examples:
  runvault export fills --out fills.parquet
  runvault export --all-tables --run alpha-1/2022-01-01-001 --out run.duckdb
  runvault export --with-analytics --format duckdb --out run.duckdb
  runvault export --with-analytics --views --out research.duckdb
  runvault export fills orders --partition run --format parquet --out lake
  runvault export fills orders --from 2022-01-01 --to 2022-02-01 --format arrow --out january
  runvault export fills --format csv --out - | head
  runvault export --list fills --run alpha-1/2022-01-01-001
`,
      ),
  run: runExport,
});

function collected(value: string, before: readonly string[] | undefined): string[] {
  return [...(before ?? []), value];
}

async function runExport(values: z.output<typeof schema>, session: Session): Promise<number> {
  const chosen = chosenTables(values);
  const { list, out } = values;
  if (list) {
    const { listFiles } = await import("../list/list-files.ts");
    const names = chosen.map(({ name }) => name);
    return await listFiles(names, await runsNamed(values.run, values.archive, session), values, session);
  }
  if (out === undefined) {
    throw new RunvaultError("invalid_argument", "no output is named", {
      hint: "Give --out PATH, or --list to print the archive's own Parquet files.",
    });
  }
  return await writeTables(chosen, { ...values, out }, session);
}

async function writeTables(chosen: readonly Table[], values: Values, session: Session): Promise<number> {
  const format = values.format ?? guessedFormat(values, chosen);
  if (values.withAnalytics) refuseAnalytics(values, format);
  if (values.views) refuseViews(values, format);
  const { partition = null } = values;
  const toStdout = values.out === "-";
  if (toStdout) refuseStdout({ ...values, format }, chosen, session);
  if (format === "duckdb" && partition !== null) {
    throw new RunvaultError("invalid_argument", "a database cannot be partitioned", {
      hint: "Leave out --partition, or give another --format.",
    });
  }
  const runs = await runsNamed(values.run, values.archive, session);
  const selection = {
    filters: filtersOf(values),
    from: values.from,
    to: values.to,
    decimals: values.decimals,
  };
  const {
    openArchive,
    ExportSession,
    exportStream,
    exportTables,
    manifestsOf,
    readInstruments,
    refuseWrongFilters,
  } = await loadExport();
  refuseWrongFilters(chosen, selection);
  if (values.from !== undefined && values.to !== undefined && values.from >= values.to) {
    throw new RunvaultError("invalid_argument", "--from must be before --to", {
      hint: "Rows at --to itself are left out.",
    });
  }
  const instruments = values.instruments === undefined ? null : await readInstruments(values.instruments);
  const archive = await openArchive(values.archive);
  const started = performance.now();
  await using opened = await ExportSession.open(archive, {
    readManifests: () => manifestsOf(archive, runs),
    tables: chosen,
    allowIncomplete: values.allowIncomplete,
    memoryLimitMb: values.memory,
    threads: values.threads,
    selection,
    signal: session.signal,
  });
  const { shortfall } = opened;
  const status = await tellShortfall(shortfall, values, session);
  if (toStdout && isStreamFormat(format)) {
    await exportStream(opened, chosen[0]!, format, (piece) => session.terminal.out(piece));
    return status;
  }
  let files: ExportedFile[];
  {
    using progress = session.progress();
    files = await exportTables(opened, chosen, {
      format,
      out: values.out,
      force: values.force,
      partition,
      outside: archive.dir,
      analytics: values.withAnalytics ? { instruments } : undefined,
      views: values.views ? (runs.length > 0 ? "named" : "all") : undefined,
      onTable: (table) => progress.on(table),
      onWritten: (rows, bytes) => progress.add(rows, bytes),
      step: killStep(session.terminal.env),
    });
  }
  const seconds = (performance.now() - started) / 1000;
  await session.print(session.json ? reportJson(files, format, seconds, shortfall) : reportText(files));
  return status;
}

/** The tables named, in their usual order, each once. */
function chosenTables({
  tables: names,
  allTables,
  withAnalytics,
}: z.output<typeof schema>): readonly Table[] {
  if (allTables && names.length > 0) throw wrong("--all-tables cannot be combined with table names");
  if (allTables || (withAnalytics && names.length === 0)) return tables;
  if (names.length === 0) throw wrong("no table is named");
  const run = names.find((name) => name.includes("/"));
  if (run !== undefined) {
    throw new RunvaultError("invalid_argument", `${JSON.stringify(run)} is not a table`, {
      hint: "Name tables, or give --all-tables; runs are chosen by --run INSTANCE/RUN.",
    });
  }
  const chosen = new Set(names.map((name) => tableNamed(name).name));
  if (withAnalytics) for (const name of analysedTables) chosen.add(name);
  return tables.filter(({ name }) => chosen.has(name));
}

function wrong(message: string): RunvaultError {
  return new RunvaultError("invalid_argument", message, { hint: "Name tables, or give --all-tables." });
}

/** Throws `invalid_argument` if analytics cannot be written, or would cover only part of a run's rows. */
function refuseAnalytics(values: Values, format: ExportFormat): void {
  const refuse = (message: string, hint: string) => new RunvaultError("invalid_argument", message, { hint });
  if (format !== "duckdb") {
    throw refuse(`--with-analytics writes a database, not ${format}`, "Use --format duckdb.");
  }
  const isPart = values.from !== undefined || values.to !== undefined;
  if (isPart || Object.values(filtersOf(values)).length > 0) {
    throw refuse(
      "--with-analytics needs all rows of a run",
      "Leave out --from, --to and the filters; --run chooses runs.",
    );
  }
}

/** Throws `invalid_argument` if rows cannot be read in `tables/`. */
function refuseViews({ allowIncomplete }: Values, format: ExportFormat): void {
  if (format !== "duckdb") {
    throw new RunvaultError("invalid_argument", `--views writes a database, not ${format}`, {
      hint: "Use --format duckdb.",
    });
  }
  if (allowIncomplete) {
    throw new RunvaultError(
      "invalid_argument",
      "--views shows rows of tables/, which has only what is proven",
      {
        hint: "Leave out --allow-incomplete, or --views.",
      },
    );
  }
}

/** By the ending of the file name; a folder's name has none. */
function guessedFormat(values: Values, chosen: readonly Table[]): ExportFormat {
  const { out, partition, withAnalytics, views } = values;
  const guessed = exportFormatOf(out);
  const isFile =
    partition === undefined && (chosen.length === 1 || guessed === "duckdb" || withAnalytics || views);
  if (isFile && guessed !== null) return guessed;
  const why =
    out === "-"
      ? "standard output has no file ending that gives the format"
      : isFile
        ? `the format is not clear from the file name: ${out}`
        : `${partition === undefined ? "several tables go" : "--partition writes"} to a folder, and a folder has no file ending that gives the format`;
  throw new RunvaultError("invalid_argument", why, {
    hint: `Give --format, one of ${Object.keys(exportFormats).join(", ")}.`,
  });
}

function refuseStdout(
  values: Values & { readonly format: ExportFormat },
  chosen: readonly Table[],
  session: Session,
): void {
  const refuse = (message: string, hint: string) => new RunvaultError("invalid_argument", message, { hint });
  if (!isStreamFormat(values.format)) {
    const near = values.format === "arrow" ? "arrow-stream" : streamFormats.join(", ");
    throw refuse(
      `${values.format} cannot be written to standard output`,
      `Use --format ${near}, or give --out FILE.`,
    );
  }
  if (values.partition !== undefined) {
    throw refuse("--partition writes to a folder", "Give a folder with --out.");
  }
  if (chosen.length > 1)
    throw refuse("standard output takes one table", "Name one table, or give a folder with --out.");
  if (session.json) {
    throw refuse(
      "--json reports on standard output, where the rows go",
      "Leave out --json, or give --out FILE.",
    );
  }
  if (values.format === "arrow-stream" && session.terminal.stdoutIsTerminal) {
    throw refuse(
      "arrow-stream is binary and cannot be shown on a terminal",
      "Pipe it into a program, or give --out FILE.",
    );
  }
}

function filtersOf(values: Values): Partial<Record<FilterName, string>> {
  const { resourceKey: resource_key, symbol, venue, account, portfolio } = values;
  const given = Object.entries({ resource_key, symbol, venue, account, portfolio });
  return Object.fromEntries(given.filter(([, value]) => value !== undefined));
}

function reportJson(
  files: readonly ExportedFile[],
  format: ExportFormat,
  seconds: number,
  { withheld, behind, unproven, setAside }: Shortfall,
): string {
  const rows = files.flatMap(({ tables: written }) => written).reduce((sum, { rows }) => sum + rows, 0n);
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const listed = files.map(({ tables: written, run, ...file }) => ({
    ...file,
    ...(run === null ? {} : { instance: run.instanceId, run: run.runId }),
    tables: written.map((table) => ({ ...table, rows: Number(table.rows) })),
  }));
  const told = { format, files: listed, rows: Number(rows), bytes, seconds: Number(seconds.toFixed(3)) };
  return `${JSON.stringify({ ...told, withheld, behind, unproven, setAside }, null, 2)}\n`;
}

function reportText(files: readonly ExportedFile[]): string {
  return files
    .map(({ file, tables: written, bytes: size }) => {
      const counts = written.map(({ table, rows: n }) => `${table} ${grouped(Number(n))}`).join(", ");
      const all = written.reduce((sum, { rows }) => sum + rows, 0n);
      return `${visible(file)}  ${counts} ${plural(all, "row")}, ${byteText(size)}\n`;
    })
    .join("");
}

/** Loaded when the command runs, so that other commands start without it. */
async function loadExport() {
  const { openArchive } = await import("../../archive/archive.ts");
  const { ExportSession } = await import("../../analytics/export/export-session.ts");
  const { exportStream, exportTables } = await import("../../analytics/export/export.ts");
  const { refuseWrongFilters } = await import("../../analytics/export/export-selection.ts");
  const { readInstruments } = await import("../../analytics/instruments/read-instruments.ts");
  const { manifestsOf } = await import("../list/manifests-of.ts");
  return {
    openArchive,
    ExportSession,
    exportStream,
    exportTables,
    readInstruments,
    refuseWrongFilters,
    manifestsOf,
  };
}
