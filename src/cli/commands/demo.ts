import type { Command } from "commander";
import { z } from "zod";
import { commandEntry } from "../entry/command-entry.ts";
import { nonEmpty } from "../options/option-values.ts";
import type { Session } from "../process/session.ts";

const schema = z.object({ keep: nonEmpty.optional() });

/** `runvault demo` */
export const demoCommand = commandEntry({
  schema,
  howToGoOn: "Run it again: a new demo begins from nothing.",
  declare: (command: Command) =>
    command
      .description(
        "Archives four runs of a simulated gateway, proves and queries them, and prints each command that it runs. Leaves the " +
          "archive, an HTML page and a Jupyter notebook of one run, and says where they are. Takes about a minute and " +
          "needs no network.",
      )
      .option("--keep <dir>", "leave everything in DIR, a new or empty folder (default: a temporary folder)")
      .addHelpText(
        "after",
        `
Examples:
  runvault demo
  runvault demo --keep first-look
`,
      ),
  run: demo,
});

async function demo(values: z.output<typeof schema>, session: Session): Promise<number> {
  const { runDemo } = await import("../demo/run-demo.ts");
  return await runDemo(values, session);
}
