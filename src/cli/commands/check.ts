import type { Command } from "commander";
import { z } from "zod";
import { exit } from "../../model/error.ts";
import { commandEntry } from "../entry/command-entry.ts";
import { nonEmpty } from "../options/option-values.ts";
import { setOption, setShape } from "../options/set-option.ts";
import type { Session } from "../process/session.ts";

const schema = z.object({ ...setShape, files: z.array(nonEmpty).min(1) });

/** `runvault check FILE…` */
export const checkCommand = commandEntry({
  schema,
  howToGoOn: "Run the same command again.",
  declare: (command: Command) =>
    command
      .description(
        "Checks job files without a network: prints what each would do and when it starts next, or everything that is wrong " +
          "with it, each with line and column. Exit status 2 if a file has an error.",
      )
      .argument("<files...>", "job files; several are also checked against each other")
      .addOption(setOption())
      .option("--json", "report as JSON")
      .addHelpText(
        "after",
        `
Environment variables that the files name have to be set, as for a run. Their values are never
printed.

Examples:
  runvault check pipelines/*.yaml
  runvault check pipelines/archive-run.yaml --set run=alpha-1/2022-01-01-001
`,
      ),
  run: check,
});

async function check(values: z.output<typeof schema>, session: Session): Promise<number> {
  const { readJobFiles } = await import("../../pipeline/file/job-files.ts");
  const { checkJson, checkText } = await import("../pipeline/check-report.ts");
  const read = await readJobFiles(values.files, { env: session.terminal.env, set: values.set });
  const isSound = read.faults.length === 0 && read.files.every(({ job }) => job !== null);
  const now = new Date();
  await session.print(session.json ? checkJson(read, now) : checkText(read, now, session.globals));
  return isSound ? exit.done : exit.usage;
}
