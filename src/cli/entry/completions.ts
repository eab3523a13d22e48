import type { Command } from "commander";
import { tableNames } from "../../model/profile/table.ts";

/** Shells with a completion script. */
export const shells = ["bash", "zsh", "fish"] as const;

/** Completions for a command line of `program`, in the form that the scripts read. */
export async function completions(
  program: Command,
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  const { default: tab } = await import("@bomb.sh/tab/commander");
  const before = words.at(-2) ?? "";
  const command = commandOf(program, words);
  const isProfile = command?.name() === "profile" && before === "show";
  if (isProfile || takesPath(command, before)) return `:${shellCompletesFiles}\n`;
  const root = tab(program, { completionCommandName: "completion" });
  for (const [name, completed] of root.commands) {
    const summary = commandOf(program, name.split(" "))?.summary() ?? "";
    if (summary !== "") completed.description = summary;
    const { arguments: taken, options } = completed;
    for (const holder of ["table", "tables"]) {
      for (const place of [taken.get(holder), options.get(holder)]) {
        if (place !== undefined) place.handler = (complete) => offer(complete, tableNames);
      }
    }
  }
  // the library knows one more shell, which was never tested here
  const shell = root.commands.get("completion")?.arguments.get("shell");
  if (shell !== undefined) shell.handler = (complete) => offer(complete, shells);
  const action = root.commands.get("profile")?.arguments.get("action");
  const actions = command?.registeredArguments[0]?.argChoices ?? [];
  if (action !== undefined && actions.length > 0) {
    action.handler = (complete) => offer(complete, words.length > 2 ? [] : actions);
  }
  const jobs = root.commands.get("jobs")?.arguments;
  if (command?.name() === "jobs" && jobs !== undefined) {
    // imported late: it opens an archive
    const { jobWords } = await import("./job-words.ts");
    const { names, ids } = await jobWords(words, env);
    // after `show`, an id may come without a file
    const [name, id] = [jobs.get("file|name"), jobs.get("file")];
    if (name !== undefined) name.handler = (complete) => offer(complete, [...names, "show"]);
    if (id !== undefined && ids.length > 0) id.handler = (complete) => offer(complete, ["last", ...ids]);
  }
  return printed(() => root.parse([...words]));
}

const shellCompletesFiles = 0;

/** The command that the words begin with, or its subcommand if they name one. */
function commandOf(program: Command, [first, second]: readonly string[]): Command | undefined {
  const command = program.commands.find((candidate) => candidate.name() === first);
  return command?.commands.find((candidate) => candidate.name() === second) ?? command;
}

function offer(complete: (value: string, description: string) => void, values: readonly string[]): void {
  for (const value of values) complete(value, "");
}

/** Whether a flag takes a path; the shell completes those best. */
function takesPath(command: Command | undefined, flag: string): boolean {
  const option = command?.options.find(({ short, long }) => short === flag || long === flag);
  return option !== undefined && /<(dir|file|path)>/.test(option.flags);
}

/** The library prints only with console.log. */
export function printed(body: () => void): string {
  const { log } = console;
  let text = "";
  console.log = (line: string) => {
    text += `${line}\n`;
  };
  try {
    body();
  } finally {
    console.log = log;
  }
  return text;
}
