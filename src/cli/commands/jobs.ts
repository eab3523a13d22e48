import { type Command, Option } from "commander";
import { z } from "zod";
import { exit, RunvaultError } from "../../model/error.ts";
import { commandEntry } from "../entry/command-entry.ts";
import { nonEmpty, wholeNumber } from "../options/option-values.ts";
import { setOption, setShape } from "../options/set-option.ts";
import type { Session } from "../process/session.ts";

const schema = z.object({
  ...setShape,
  archive: nonEmpty.optional(),
  "file|name": nonEmpty.optional(),
  file: nonEmpty.optional(),
  id: nonEmpty.optional(),
  failed: z.boolean().default(false),
  limit: wholeNumber(1).default(20),
  wide: z.boolean().default(false),
});

/** `runvault jobs [FILE | NAME]` and `runvault jobs show [FILE] [ID]` */
export const jobsCommand = commandEntry({
  schema,
  howToGoOn: "Run the same command again.",
  // a job file names its archive
  unused: ({ "file|name": name, file }) => ([name, file].some(isFile) ? ["archive"] : []),
  declare: (command: Command) =>
    command
      .description(
        "Lists the executions of jobs, newest first: when each ran, how it ended and what it archived; `show` prints one " +
          "in full. Reads the records in the archive and asks no gateway.",
      )
      .usage("[options] [file | name]\n       runvault jobs [options] show [file] [id]")
      .argument("[file|name]", "a job file or the name of a job: list only its executions")
      .argument("[file]", "after `show`: the job file")
      .argument("[id]", "after `show`: the id of an execution, or its beginning (default: the last)")
      .addOption(
        new Option(
          "--archive <dir>",
          "the archive folder, without a job file; default the current folder if it is an archive",
        ).env("RUNVAULT_ARCHIVE"),
      )
      .option("--failed", "only executions that died, or ended with an exit status other than 0")
      .option("--limit <n>", "list at most N executions; default 20")
      .option("--wide", "every column, and names in full even if they do not fit the terminal")
      .addOption(setOption())
      .option("--json", "report as JSON")
      .addHelpText(
        "after",
        `
A word with a dot or a slash is a job file: names of jobs have neither.

Examples:
  runvault jobs nightly.yaml --failed --limit 5
  runvault jobs show nightly.yaml
  runvault jobs --archive /data/archive nightly
`,
      ),
  run: jobs,
});

async function jobs(values: z.output<typeof schema>, session: Session): Promise<number> {
  // without a file, the second word is the id
  const { "file|name": first, file: second, id: third } = values;
  const isShow = first === "show";
  const [word, rest] = isShow ? (isFile(second) ? [second, third] : [undefined, second]) : [first, undefined];
  const tooMany = isShow ? (isFile(second) ? undefined : third) : second;
  if (tooMany !== undefined) {
    throw new RunvaultError("invalid_argument", `${JSON.stringify(tooMany)} is one argument too many`, {
      hint: "`runvault jobs FILE` lists the executions of a job; `runvault jobs show FILE ID` prints one of them.",
    });
  }
  const { jobsIn } = await import("../pipeline/jobs-in.ts");
  const found = await jobsIn({ ...values, file: isFile(word) ? word : undefined }, session);
  if (found === null) return exit.usage;
  const chosen = { ...values, archive: found.archive, name: found.job ?? (isShow ? undefined : word) };
  if (!isShow) {
    const { listJobs } = await import("../pipeline/list-jobs.ts");
    return await listJobs(chosen, found.session);
  }
  const { showJob } = await import("../pipeline/show-job.ts");
  return await showJob(rest ?? "last", chosen, found.session);
}

function isFile(word: unknown): word is string {
  return typeof word === "string" && /[./]/.test(word);
}
