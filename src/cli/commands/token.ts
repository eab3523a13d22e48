import { text } from "node:stream/consumers";
import type { Command } from "commander";
import { z } from "zod";
import { exit, RunvaultError } from "../../model/error.ts";
import { commandEntry } from "../entry/command-entry.ts";
import { nonEmpty } from "../options/option-values.ts";
import type { Session } from "../process/session.ts";

const schema = z.object({
  name: nonEmpty,
  instance: z.array(nonEmpty).min(1),
});

/** `runvault serve token` */
export const tokenCommand = commandEntry({
  schema,
  howToGoOn: "Run the same command again.",
  declare: (command: Command) =>
    command
      .description(
        "Reads a token from standard input and prints the line that makes `runvault serve --tokens` accept it. The line " +
          "holds only the token's SHA-256. Remove the line to revoke the token; a running server reads the file again " +
          "at SIGHUP.",
      )
      .argument("<name>", "who the token is for; shown in the access log")
      .requiredOption(
        "--instance <id>",
        "an instance that the token may access, '*' for all; repeatable",
        (id: string, before: string[] | undefined) => [...(before ?? []), id],
      )
      .addHelpText(
        "after",
        `
Example:
  umask 077
  openssl rand -hex 32 > desk.token
  runvault serve token desk --instance alpha-1 < desk.token >> tokens
  runvault serve --tokens tokens --host 0.0.0.0 --port 8080
`,
      ),
  run: printLine,
});

async function printLine(values: z.output<typeof schema>, session: Session): Promise<number> {
  const { tokenLine } = await import("../../serve/auth/token-list.ts");
  if (session.terminal.stdinIsTerminal) session.note("type the token, then Enter and Ctrl-D");
  const token = (await text(session.terminal.stdin)).trim();
  if (token === "") {
    throw new RunvaultError("invalid_argument", "there is no token on standard input", {
      hint: "Make one with `openssl rand -hex 32 > FILE`, and give it to this command with `< FILE`.",
    });
  }
  session.scrubber.add(token);
  await session.print(tokenLine(token, values.name, values.instance));
  return exit.done;
}
