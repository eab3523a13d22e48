import type { Command } from "commander";
import type { z } from "zod";
import type { Session } from "./session.ts";

/** A command's declaration and body: the body gets checked values, and gives its exit status. */
export interface CommandEntry<S extends z.ZodObject = z.ZodObject> {
  declare(command: Command): Command;
  readonly schema: S;
  /** Names of options for which the environment does not count, given the values before they are checked. */
  unused?(values: Readonly<Record<string, unknown>>): readonly string[];
  /** How to go on after an interruption, one sentence. */
  readonly howToGoOn: string;
  run(values: z.output<S>, session: Session): Promise<number>;
}

/** Ties a schema to its body's values; it changes nothing. */
export function commandEntry<S extends z.ZodObject>(entry: CommandEntry<S>): CommandEntry {
  return entry as unknown as CommandEntry;
}
