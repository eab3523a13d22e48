import type { Command } from "commander";
import { z } from "zod";
import { type GlobalValues, globalSchema } from "../options/global-values.ts";
import { checkedValues } from "../options/option-values.ts";
import type { Folders } from "../output/command-to-copy.ts";
import type { Session } from "../process/session.ts";

/** A command's declaration and body. The body gets checked values and returns the exit status. */
export interface CommandBody<S extends z.ZodObject> {
  declare(command: Command): Command;
  readonly schema: S;
  /** Options whose environment variables are ignored, given the unchecked values. */
  unused?(values: Readonly<Record<string, unknown>>): readonly string[];
  /** How to continue after an interruption, in one sentence. */
  readonly howToGoOn: string;
  /** `given` names the options that the command line has itself, not the environment. */
  run(values: z.output<S>, session: Session, given: ReadonlySet<string>): Promise<number>;
}

/** A command line of a command, checked. */
export interface CheckedCommand {
  readonly globals: GlobalValues;
  /** The folders from its options; null for a command without any. */
  readonly folders: Folders | null;
  run(session: Session): Promise<number>;
}

export interface CommandEntry {
  declare(command: Command): Command;
  readonly howToGoOn: string;
  /**
   * Checks the parsed values. Throws `invalid_argument` (or `table_unknown`) and names the flag or variable that is
   * wrong.
   */
  check(command: Command): CheckedCommand;
}

/** A command for the command line. */
export function commandEntry<S extends z.ZodObject>(body: CommandBody<S>): CommandEntry {
  const { declare, howToGoOn } = body;
  return {
    declare,
    howToGoOn,
    check: (command) => {
      const values = checkedValues(body.schema.extend(globalSchema.shape).strict(), command, body.unused);
      const names = command.options.map((option) => option.attributeName());
      const given = new Set(names.filter((name) => command.getOptionValueSource(name) === "cli"));
      return {
        globals: globalSchema.parse(values),
        folders: foldersSchema.safeParse(values).data ?? null,
        run: (session) => body.run(values as z.output<S>, session, given),
      };
    },
  };
}

const foldersSchema = z.object({ archive: z.string(), scratch: z.string().optional() });
