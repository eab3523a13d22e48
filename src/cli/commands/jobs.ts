import type { Command } from "commander";
import { z } from "zod";
import { RunvaultError } from "../../model/error.ts";
import { commandEntry } from "../entry/command-entry.ts";
import { archiveOption, archiveShape } from "../options/archive-option.ts";
import { nonEmpty, wholeNumber } from "../options/option-values.ts";
import type { Session } from "../process/session.ts";

const schema = z.object({
  ...archiveShape,
  name: nonEmpty.optional(),
  id: nonEmpty.optional(),
  failed: z.boolean().default(false),
  limit: wholeNumber(1).default(20),
  wide: z.boolean().default(false),
});

/** `runvault jobs [NAME]` and `runvault jobs show ID` */
export const jobsCommand = commandEntry({
  schema,
  howToGoOn: "Run the same command again.",
  declare: (command: Command) =>
    command
      .description(
        "Lists the executions of jobs, newest first: when each ran, what it came to and what it archived; or, with `show`, " +
          "tells one in full. Reads the records in the archive and asks no gateway.",
      )
      .usage("[options] [name]\n       runvault jobs [options] show [id]")
      .argument("[name]", "only executions of this job; `show` tells one execution")
      .argument(
        "[id]",
        "behind `show`: the id of an execution, or its beginning; default the last one (`last`)",
      )
      .addOption(archiveOption())
      .option("--failed", "only executions that died, or ended with an exit status other than 0")
      .option("--limit <n>", "list at most N executions; default 20")
      .option("--wide", "every column, and names in full even if they do not fit the terminal")
      .option("--json", "report as JSON")
      .addHelpText(
        "after",
        `
Examples:
  runvault jobs
  runvault jobs nightly --failed --limit 5
  runvault jobs show
`,
      ),
  run: jobs,
});

async function jobs(values: z.output<typeof schema>, session: Session): Promise<number> {
  const { name, id = name === "show" ? "last" : undefined } = values;
  if (id === undefined) {
    const { listJobs } = await import("../pipeline/list-jobs.ts");
    return await listJobs(values, session);
  }
  if (name !== "show") {
    throw new RunvaultError("invalid_argument", `${JSON.stringify(id)} is an argument too many`, {
      hint: "`runvault jobs NAME` lists the executions of a job; `runvault jobs show ID` tells one of them.",
    });
  }
  const { showJob } = await import("../pipeline/show-job.ts");
  return await showJob(id, values, session);
}
