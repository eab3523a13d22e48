import type { Command } from "commander";
import { z } from "zod";
import { RunvaultError } from "../../model/error.ts";
import { commandEntry } from "../entry/command-entry.ts";
import { nonEmpty } from "../options/option-values.ts";
import type { Session } from "../process/session.ts";

const actions = ["show", "schema"] as const;

const schema = z.object({
  action: z.enum(actions),
  subject: nonEmpty.optional(),
});

/** `runvault profile show [default|FILE]` and `runvault profile schema` */
export const profileCommand = commandEntry({
  schema,
  howToGoOn: "Run the same command again.",
  declare: (command: Command) =>
    command
      .description(
        "A profile describes a gateway whose paths, parameters, fields or words differ from what runvault expects; every " +
          "command that asks a gateway takes one with --profile. `show` prints a profile whole, with what it extends and " +
          "what holds where it says nothing; `schema` prints the JSON Schema (draft 2020-12) by which editors complete " +
          "and check profiles.",
      )
      .usage("[options] show [default|file]\n       runvault profile [options] schema")
      .addArgument(command.createArgument("<action>", "what to do").choices(actions))
      .argument("[subject]", "behind `show`: a profile's file, or default, the contract that is built in")
      .option("--json", "with `show`, what the profile comes to, as JSON")
      .addHelpText(
        "after",
        `
Nothing is asked of a gateway. A profile that cannot be used is told with file, line and column,
all that is wrong at once; the exit status is then 2.

Examples:
  runvault profile show default > acme.yaml
  runvault profile show acme.yaml
  runvault profile schema > profile.schema.json

The first line of a profile beside it is then:
  # yaml-language-server: $schema=./profile.schema.json
`,
      ),
  run: profile,
});

async function profile(values: z.output<typeof schema>, session: Session): Promise<number> {
  const { action, subject } = values;
  if (action === "show") {
    const { showProfile } = await import("../profile/show-profile.ts");
    return await showProfile(subject ?? "default", session);
  }
  if (subject !== undefined) {
    throw new RunvaultError("invalid_argument", `${JSON.stringify(subject)} is an argument too many`, {
      hint: "`runvault profile schema` takes none.",
    });
  }
  const { printProfileSchema } = await import("../profile/print-profile-schema.ts");
  return await printProfileSchema(session);
}
