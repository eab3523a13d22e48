import type { Command } from "commander";
import { z } from "zod";
import { exit, RunvaultError } from "../../model/error.ts";
import { commandEntry } from "../entry/command-entry.ts";
import { nonEmpty } from "../options/option-values.ts";
import { setOption, setShape } from "../options/set-option.ts";
import type { Session } from "../process/session.ts";

const schema = z.object({ ...setShape, file: nonEmpty, test: z.boolean().default(false) });

/** `runvault notify FILE --test` */
export const notifyCommand = commandEntry({
  schema,
  howToGoOn: "Run the same command again.",
  declare: (command: Command) =>
    command
      .description(
        "Tries everyone whom a job file tells, with a message that says that it is a test, and prints for each whether it " +
          "worked. Exit status 3 if one did not.",
      )
      .argument("<file>", "job file")
      .option("--test", "send a test; needed, for nothing else is sent by hand")
      .addOption(setOption())
      .option("--json", "report as JSON")
      .addHelpText(
        "after",
        `
A heartbeat is called as by an execution that begins and succeeds. Of a metrics file it is tried
whether it can be replaced, and it stays as it is.

Example:
  runvault notify pipelines/nightly.yaml --test
`,
      ),
  run: notify,
});

async function notify({ file, test, set }: z.output<typeof schema>, session: Session): Promise<number> {
  if (!test) {
    throw new RunvaultError("invalid_argument", "nothing is sent without --test", {
      hint: "Give --test: what changed is told by `runvault run` itself.",
    });
  }
  const { readJobFiles } = await import("../../pipeline/file/job-files.ts");
  const { env } = session.terminal;
  const read = await readJobFiles([file], { env, set });
  const found = read.files[0]?.job ?? null;
  if (found === null || read.faults.length > 0) {
    const { checkJson, checkText } = await import("../pipeline/check-report.ts");
    await session.print(
      session.json ? checkJson(read, new Date()) : checkText(read, new Date(), session.globals),
    );
    return exit.usage;
  }
  const { testTellers } = await import("../pipeline/test-tellers.ts");
  return await testTellers(found.job, session);
}
