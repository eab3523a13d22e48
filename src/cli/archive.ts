import { type Command, Option } from "commander";
import { archiveOption, scratchOption } from "./archive-option.ts";
import { type ArchiveValues, archiveSchema, archiveTarget } from "./archive-values.ts";
import { commandEntry } from "./command-entry.ts";
import { addGatewayOptions } from "./gateway-options.ts";
import { jsonLinesOption } from "./json-lines.ts";
import { runArgumentHelp } from "./run-argument.ts";
import type { Session } from "./session.ts";

/** `runvault archive` */
export const archiveCommand = commandEntry({
  schema: archiveSchema,
  howToGoOn: "Run the same command again: it goes on from what is already fetched.",
  declare: (command: Command) =>
    addGatewayOptions(
      command
        .description(
          "Fetches runs from a gateway into the archive and proves that nothing is missing. Every table gets a " +
            "certificate; what is not proven ends with exit status 4. Running it again after any stop finishes the work.",
        )
        .argument("[runs...]", `${runArgumentHelp}; with --finished, INSTANCE`)
        .option("--all", "runs of every instance; needs --finished")
        .option("--finished", "every finished run of the instances named, or of all")
        .option(
          "--finished-status <words>",
          "the gateway's own words for a run that has ended, as COMPLETED,STOPPED; the archive remembers them",
        )
        .option("--tables <names>", "only these tables, as a,b")
        .addOption(archiveOption())
        .addOption(scratchOption()),
    )
      .option("--dry-run", "print the plan (slices, rows, bytes, disk) and fetch nothing")
      .addOption(
        new Option(
          "--require <proof>",
          "weakest proof that counts as complete; counted wants the gateway's storage facts, hashed also its row checksums",
        )
          .choices(["hashed", "counted", "any"])
          .default("any"),
      )
      .addOption(
        new Option("--settle <time>", "age that rows of a growing run must have")
          .env("RUNVAULT_SETTLE")
          .default("60s"),
      )
      .option("--accept-shrink", "replace archived rows even when the gateway now holds fewer")
      .option("--accept-quarantine", "take tables for proven without the rows that were set aside")
      .addOption(
        new Option(
          "--final-pass <how>",
          "how rows of a run that turned final are held against the gateway's: rows streams them once more",
        )
          .choices(["rows", "counts"])
          .default("rows"),
      )
      .option("--source-moved", "the gateway is the one that was archived from, at another address")
      .option("--close", "take what is proven of a run that its gateway no longer knows for all there is")
      .option(
        "--recheck [age]",
        "stream rows of finished runs once more that were last checked that long ago, such as 30d; all without AGE, then " +
          "name runs ahead of it",
      )
      .addOption(
        new Option(
          "--empty <names>",
          "tables that rightly hold no rows, as a,b, where the gateway cannot prove it; kept for the instance; repeatable",
        ).argParser((text: string, before: string | undefined) =>
          before === undefined ? text : `${before},${text}`,
        ),
      )
      .option("--fingerprint", "put the row hash of every table into its certificate")
      .addOption(
        new Option(
          "--decimal <type>",
          "TABLE.COLUMN=WIDTH,SCALE for a new archive's exact column; repeatable",
        ).argParser((text: string, before: string[] | undefined) => [...(before ?? []), text]),
      )
      .addOption(
        new Option(
          "--widen <when>",
          "auto: where a value does not fit its column, widen that column in the whole archive and go on; never: " +
            "leave its table INCOMPLETE (default: auto for a new archive, never for one that is there)",
        ).choices(["auto", "never"]),
      )
      .addOption(
        new Option(
          "--max-time <time>",
          "longest time of the whole command: then it ends INCOMPLETE with exit status 4, and the next goes on",
        ).env("RUNVAULT_MAX_TIME"),
      )
      .addOption(
        new Option(
          "--max-bytes <size>",
          "most text of rows to take in over the whole command, such as 20GB: then it ends as with --max-time",
        ).env("RUNVAULT_MAX_BYTES"),
      )
      .addOption(
        new Option(
          "--min-rate <size>",
          "least bytes of rows a second, as they come over the wire, such as 64KB, over 30 s of waiting for an answer: a " +
            "table of which they come slower ends INCOMPLETE, exit status 3 (default: none)",
        ).env("RUNVAULT_MIN_RATE"),
      )
      .addOption(new Option("--min-rate-window <time>", "for tests of --min-rate").hideHelp())
      // for tests of interruption: many segments and slices out of few rows
      .addOption(new Option("--segment-bytes <n>", "text of a segment").hideHelp())
      .addOption(new Option("--slice-rows <n>", "rows of a slice, about").hideHelp())
      .option("--json", "report as JSON, at the end")
      .addOption(
        jsonLinesOption("report each run as an object a line when it is committed, and totals at the end"),
      )
      .addHelpText(
        "after",
        `
Examples:
  runvault archive --gateway http://127.0.0.1:8080/api/v1 alpha-1/2022-01-01-001
  runvault archive alpha-1 --finished --tables fills,orders
  runvault archive --all --finished --max-rps 5
`,
      ),
  run: archiveRuns,
});

async function archiveRuns(values: ArchiveValues, session: Session): Promise<number> {
  const target = archiveTarget(values);
  // what the command needs is loaded when it runs, so that the others start without it
  const { archiveAll } = await import("./archive-runs.ts");
  return await archiveAll(target, values, session);
}
