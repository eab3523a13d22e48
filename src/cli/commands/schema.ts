import type { Command } from "commander";
import { z } from "zod";
import { exit } from "../../model/error.ts";
import { commandEntry } from "../entry/command-entry.ts";
import type { Session } from "../process/session.ts";

const kinds = ["pipeline"] as const;
const schema = z.object({ kind: z.enum(kinds) });

/** `runvault schema pipeline` */
export const schemaCommand = commandEntry({
  schema,
  howToGoOn: "Run the same command again.",
  declare: (command: Command) =>
    command
      .description(
        "Prints the JSON Schema (draft 2020-12) of job files, with a description of every key. Editors complete and check " +
          "a job file whose first line names it.",
      )
      .addArgument(command.createArgument("<kind>", "the kind of file").choices(kinds))
      .addHelpText(
        "after",
        `
Example:
  runvault schema pipeline > pipeline.schema.json

The first line of a job file beside it is then:
  # yaml-language-server: $schema=./pipeline.schema.json
`,
      ),
  run: printSchema,
});

async function printSchema(_: z.output<typeof schema>, session: Session): Promise<number> {
  const { jobJsonSchema } = await import("../../pipeline/file/job-json-schema.ts");
  await session.print(`${JSON.stringify(jobJsonSchema(), null, 2)}\n`);
  return exit.done;
}
