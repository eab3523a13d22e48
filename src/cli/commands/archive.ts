import { type Command, Option } from "commander";
import { runArgumentHelp } from "../../model/run-argument.ts";
import { type ArchiveValues, archiveSchema, archiveTarget } from "../archive/archive-values.ts";
import { commandEntry } from "../entry/command-entry.ts";
import { archiveOption, scratchOption } from "../options/archive-option.ts";
import { addGatewayOptions } from "../options/gateway-options.ts";
import { groupOptions } from "../options/group-options.ts";
import { jsonLinesOption } from "../options/json-lines.ts";
import type { Session } from "../process/session.ts";

/** Options that most people do not need at first. */
const groups = {
  "Proof:": [
    ...(["--finished-status", "--require", "--settle", "--accept-shrink", "--accept-quarantine"] as const),
    ...(["--final-pass", "--source-moved", "--close", "--recheck", "--empty", "--fingerprint"] as const),
  ],
  "Storage:": ["--scratch", "--decimal", "--widen"],
  "Limits:": ["--parallel-runs", "--max-bytes", "--min-rate"],
} as const;

/** `runvault archive` */
export const archiveCommand = commandEntry({
  schema: archiveSchema,
  howToGoOn: "Run the same command again: it continues from what is already fetched.",
  declare: (command: Command) =>
    groupOptions(
      addGatewayOptions(
        command
          .description(
            "Fetches runs from a gateway into the archive and proves that nothing is missing. Every table gets a " +
              "certificate; if anything is not proven, the exit status is 4. After any stop, run it again to continue.",
          )
          .argument("[runs...]", `${runArgumentHelp}; with --finished, INSTANCE`),
      )
        .option("--finished", "every finished run of the named instances, or of all with --all")
        .option("--all", "every instance; needs --finished")
        .option("--tables <names>", "only these tables, separated by commas")
        .addOption(archiveOption())
        .option("--dry-run", "print the plan (slices, rows, bytes, disk) and fetch nothing")
        .option(
          "--finished-status <words>",
          "statuses by which the gateway says that a run has ended, such as COMPLETED,STOPPED; the archive remembers them",
        )
        .addOption(
          new Option(
            "--require <proof>",
            "weakest proof that counts as complete; counted needs the gateway's storage facts, hashed its row checksums as well",
          )
            .choices(["hashed", "counted", "any"])
            .default("any"),
        )
        .addOption(
          new Option("--settle <time>", "minimum age of the rows that are taken from a growing run")
            .env("RUNVAULT_SETTLE")
            .default("60s"),
        )
        .option("--accept-shrink", "replace archived rows even when the gateway now holds fewer")
        .option("--accept-quarantine", "take tables as proven without the rows that were set aside")
        .addOption(
          new Option(
            "--final-pass <how>",
            "how to compare the rows of a run that became final with the gateway's: rows streams them again, counts compares numbers only",
          )
            .choices(["rows", "counts"])
            .default("rows"),
        )
        .option("--source-moved", "this is the same gateway as before, at a new address")
        .option(
          "--close",
          "for a run that its gateway no longer knows, accept the proven rows as the whole run",
        )
        .option(
          "--recheck [age]",
          "stream again the rows of finished runs last checked longer ago than AGE, such as 30d; of all runs without AGE " +
            "(put run names before it)",
        )
        .addOption(
          new Option(
            "--empty <names>",
            "tables that are meant to have no rows, separated by commas, where the gateway cannot prove it; remembered for the instance; repeatable",
          ).argParser((text: string, before: string | undefined) =>
            before === undefined ? text : `${before},${text}`,
          ),
        )
        .addOption(scratchOption())
        .option("--fingerprint", "store the row hash of every table in its certificate")
        .addOption(
          new Option(
            "--decimal <type>",
            "TABLE.COLUMN=WIDTH,SCALE: decimal type of an exact column in a new archive; repeatable",
          ).argParser((text: string, before: string[] | undefined) => [...(before ?? []), text]),
        )
        .addOption(
          new Option(
            "--widen <when>",
            "auto: if a value does not fit its column, widen that column in the whole archive and continue; never: " +
              "leave its table INCOMPLETE (default: auto for a new archive, never for an existing one)",
          ).choices(["auto", "never"]),
        )
        .addOption(
          new Option("--parallel-runs <n>", "runs that are fetched at the same time")
            .env("RUNVAULT_PARALLEL_RUNS")
            .default("4"),
        )
        .addOption(
          new Option(
            "--max-time <time>",
            "maximum time of the whole command; after that it ends INCOMPLETE with exit status 4, and the next one continues",
          ).env("RUNVAULT_MAX_TIME"),
        )
        .addOption(
          new Option(
            "--max-bytes <size>",
            "maximum size of row text fetched by the whole command, such as 20GB; after that it ends as with --max-time",
          ).env("RUNVAULT_MAX_BYTES"),
        )
        .addOption(
          new Option(
            "--min-rate <size>",
            "minimum bytes of rows per second on the wire, such as 64KB, measured over 30 s of waiting; a slower table ends " +
              "INCOMPLETE, exit status 3 (default: none)",
          ).env("RUNVAULT_MIN_RATE"),
        )
        .addOption(new Option("--min-rate-window <time>", "for tests of --min-rate").hideHelp())
        // for tests of interruption: many segments and slices from few rows
        .addOption(new Option("--segment-bytes <n>", "text of a segment").hideHelp())
        .addOption(new Option("--slice-rows <n>", "rows of a slice, about").hideHelp())
        .option("--json", "report as JSON at the end")
        .addOption(
          jsonLinesOption("report each run as one JSON line when it is committed, and totals at the end"),
        )
        .addHelpText(
          "after",
          `
Examples:
  runvault archive --gateway http://127.0.0.1:8080/api/v1 alpha-1/2022-01-01-001
  runvault archive alpha-1 --finished --tables fills,orders
  runvault archive alpha-1/latest
  runvault archive --all --finished --max-rps 5
`,
        ),
      groups,
    ),
  run: archiveRuns,
});

async function archiveRuns(values: ArchiveValues, session: Session): Promise<number> {
  const target = archiveTarget(values);
  // loaded when the command runs, so that other commands start without it
  const { archiveAll } = await import("../archive/archive-runs.ts");
  return await archiveAll(target, values, session);
}
