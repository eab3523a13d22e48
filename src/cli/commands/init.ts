import { type Command, Option } from "commander";
import { z } from "zod";
import { commandEntry } from "../entry/command-entry.ts";
import { archiveOption, archiveShape } from "../options/archive-option.ts";
import { addGatewayOptions, gatewayShape } from "../options/gateway-options.ts";
import { httpAddress, nonEmpty } from "../options/option-values.ts";
import type { Session } from "../process/session.ts";

const schema = z.object({
  ...archiveShape,
  ...gatewayShape,
  url: httpAddress.optional(),
  out: nonEmpty.optional(),
  name: nonEmpty.optional(),
  force: z.boolean().default(false),
});

/** `runvault init [GATEWAY_URL]` */
export const initCommand = commandEntry({
  schema,
  howToGoOn: "Run the same command again: no file was written.",
  declare: (command: Command) =>
    addGatewayOptions(
      command
        .description(
          "Writes a job file for a gateway: its instances, a schedule in this machine's time zone, and comments on each key " +
            "that say what to fill in. It can be checked and run as it is.",
        )
        .argument("[url]", "the gateway's base address, as --gateway takes it")
        .addOption(
          new Option("-o, --out <file>", "the file to write; - is standard output (default: NAME.yaml)"),
        )
        .option(
          "--name <name>",
          'name of the job, in metrics, records and messages (default: that of the file, or "nightly")',
        )
        .addOption(archiveOption())
        .option("--force", "replace an existing file")
        .option("--json", "report as JSON"),
    ).addHelpText(
      "after",
      `
The gateway options become part of the file. Values from the environment do not: the file
names the variable, as \${RUNVAULT_GATEWAY}, or { env: RUNVAULT_TOKEN } for a token, which has to be
set where the job runs.

Examples:
  runvault init https://gateway.example.com/api/v1 --token-file /run/secrets/gateway
  runvault init http://127.0.0.1:8080/api/v1 --archive /data/archive --out jobs/nightly.yaml
`,
    ),
  run: init,
});

async function init(
  values: z.output<typeof schema>,
  session: Session,
  given: ReadonlySet<string>,
): Promise<number> {
  const { writeDraft } = await import("../pipeline/write-draft.ts");
  return await writeDraft({ ...values, given }, session);
}
