import { RunvaultError } from "../../model/error.ts";
import { shellWord } from "../output/shell-word.ts";

/** Names of commands before 0.2, each with its replacement. To be removed in 0.3. */
const former: Readonly<Record<string, (rest: readonly string[]) => readonly string[]>> = {
  accept: (rest) => ["maintain", "accept", ...rest],
  diff: (rest) => ["maintain", "diff", ...rest],
  rebuild: (rest) => ["maintain", "rebuild", ...rest],
  token: (rest) => ["serve", "token", ...rest],
  info: (rest) => ["status", ...rest],
  notify: (rest) => ["check", ...rest.map((word) => (word === "--test" ? "--test-notify" : word))],
  files: (rest) => [
    "export",
    "--list",
    ...(rest.some(namesTables) ? [] : ["--all-tables"]),
    ...rest.flatMap((word, at) => (isRun(word, rest[at - 1]) ? ["--run", word] : [word])),
  ],
};

/** The error that names the new command line; null if the line names no former command. */
export function formerNameError(argv: readonly string[], name: string): RunvaultError | null {
  const now = Object.hasOwn(former, name) ? former[name] : undefined;
  if (now === undefined) return null;
  const line = ["runvault", ...now(argv.slice(argv.indexOf(name) + 1))].map(shellWord).join(" ");
  return new RunvaultError("invalid_argument", `\`runvault ${name}\` has a new name`, {
    hint: `Run \`${line}\`.`,
  });
}

function namesTables(word: string, at: number, rest: readonly string[]): boolean {
  return word === "--all-tables" || (/^\w+$/.test(word) && rest[at - 1] !== "--archive");
}

/** Runs were arguments of `files`: every word with a slash that is not an option's value. */
function isRun(word: string, before = ""): boolean {
  return word.includes("/") && !word.startsWith("-") && before !== "--archive";
}
