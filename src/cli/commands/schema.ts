import type { Command } from "commander";
import { z } from "zod";
import { exit } from "../../model/error.ts";
import { commandEntry } from "../entry/command-entry.ts";
import type { Session } from "../process/session.ts";

const kinds = ["pipeline", "message", "metrics", "reconcile"] as const;
const schema = z.object({ kind: z.enum(kinds) });

/** `runvault schema` */
export const schemaCommand = commandEntry({
  schema,
  howToGoOn: "Run the same command again.",
  declare: (command: Command) =>
    command
      .description(
        "Prints a JSON Schema (draft 2020-12) with a description of every key: of job files, so that editors complete and " +
          "check those whose first line names it; of the messages that webhooks and commands get, or of what " +
          "`runvault metrics --json` and `runvault reconcile --json` print.",
      )
      .addArgument(command.createArgument("<kind>", "the kind of document").choices(kinds))
      .addHelpText(
        "after",
        `
Examples:
  runvault schema pipeline > pipeline.schema.json
  runvault schema message
  runvault schema metrics

The first line of a job file beside it is then:
  # yaml-language-server: $schema=./pipeline.schema.json
`,
      ),
  run: printSchema,
});

async function printSchema({ kind }: z.output<typeof schema>, session: Session): Promise<number> {
  await session.print(`${JSON.stringify(await schemaOf(kind), null, 2)}\n`);
  return exit.done;
}

async function schemaOf(kind: (typeof kinds)[number]): Promise<unknown> {
  switch (kind) {
    case "pipeline":
      return (await import("../../pipeline/file/job-json-schema.ts")).jobJsonSchema();
    case "message":
      return (await import("../../pipeline/tell/message.ts")).messageJsonSchema();
    case "metrics":
      return (await import("../../analytics/metrics/metrics-document.ts")).metricsJsonSchema();
    case "reconcile":
      return (await import("../../analytics/against/against-report.ts")).reconcileJsonSchema();
  }
}
