import { type Command, Option } from "commander";
import { archiveOption, archiveShape } from "./archive-option.ts";
import { instrumentsOption } from "./instruments-option.ts";
import { durationMs, mebibytes, nonEmpty, wholeNumber } from "./option-values.ts";
import { allowIncompleteOption, readerShape, strictOption } from "./reader-options.ts";

/** Options of commands that run a user's statements: visible rows, and limits. */
export function addStatementOptions(command: Command): Command {
  return command
    .addOption(archiveOption())
    .addOption(allowIncompleteOption())
    .addOption(strictOption())
    .addOption(
      new Option("--timeout <time>", "longest time a statement may take, including reading its answer")
        .env("RUNVAULT_TIMEOUT")
        .default("5m"),
    )
    .addOption(
      new Option("--memory <size>", "memory to use before spilling to disk")
        .env("RUNVAULT_MEMORY")
        .default("1GB"),
    )
    .addOption(new Option("--threads <n>", "number of threads").env("RUNVAULT_THREADS").default("4"))
    .addOption(instrumentsOption())
    .addOption(
      new Option(
        "--table-rows <n>",
        "maximum number of rows shown with --format table or vertical (default: 1000 on a terminal, else all)",
      ).env("RUNVAULT_TABLE_ROWS"),
    );
}

export const statementShape = {
  ...archiveShape,
  ...readerShape,
  timeout: durationMs,
  memory: mebibytes,
  threads: wholeNumber(1, 256),
  tableRows: wholeNumber(1, 1_000_000).optional(),
  instruments: nonEmpty.optional(),
};
