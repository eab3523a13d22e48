import { type Command, Option } from "commander";
import { z } from "zod";
import { parseRunOrInstance, runArgumentHelp } from "../../model/run-argument.ts";
import { commandEntry } from "../entry/command-entry.ts";
import { archiveOption, archiveShape, scratchOption, scratchShape } from "../options/archive-option.ts";
import { addGatewayOptions, gatewayOptionNames, gatewayShape } from "../options/gateway-options.ts";
import { ageMs, httpAddress, percentage } from "../options/option-values.ts";
import { withLatest } from "../options/runs-named.ts";
import type { Session } from "../process/session.ts";

const schema = z.object({
  ...archiveShape,
  ...scratchShape,
  ...gatewayShape,
  runs: z.array(z.string()).default([]),
  deep: z.boolean().default(false),
  sample: percentage.optional(),
  since: ageMs.optional(),
  repair: z.boolean().default(false),
  against: httpAddress.optional(),
});

type VerifyValues = z.output<typeof schema>;

/** `runvault verify` */
export const verifyCommand = commandEntry({
  schema,
  howToGoOn: "Run the same command again.",
  unused: ({ against }) => (against === undefined ? gatewayOptionNames : []),
  declare: (command: Command) =>
    addGatewayOptions(
      command
        .description(
          "Checks the named runs, or all: hashes of files, rows counted again from Parquet and segments, order, bounds, " +
            "and the archive's folders for wrong links and foreign files. " +
            "With --deep also every line against its Parquet row, row hashes, and that fills refer to orders. " +
            "Every file is read again; nothing remembered from earlier commands is trusted.",
        )
        .argument("[runs...]", `${runArgumentHelp}; INSTANCE alone means all of its runs`)
        .addOption(archiveOption())
        .addOption(scratchOption())
        .addOption(
          new Option("--deep", "compare every segment line with its Parquet row").conflicts("sample"),
        )
        .option(
          "--sample <share>",
          "read only this share of the bytes, such as 5%, from files drawn anew each time; for the others check presence and size",
        )
        .option("--since <age>", "only runs committed within this time, such as 7d")
        .option("--repair", "convert damaged Parquet again from segments, and name the runs to archive again")
        .addOption(new Option("--against <url>", "compare with the current storage facts of this gateway"))
        .option("--json", "report as JSON"),
      false,
    ).addHelpText(
      "after",
      "\nExamples:\n  runvault verify\n  runvault verify --deep alpha-1/2022-01-01-001\n  runvault verify --since 7d --repair alpha-1\n  runvault verify --sample 5%\n",
    ),
  run: verify,
});

async function verify(values: VerifyValues, session: Session): Promise<number> {
  const runs = await withLatest(values.runs.map(parseRunOrInstance), values.archive, session);
  const { verifyRuns } = await import("../maintain/verify-runs.ts");
  return await verifyRuns(runs, values, session);
}
