import type { Logger } from "pino";
import type { Scrubber } from "../../model/text/scrubber.ts";
import type { GlobalValues } from "../options/global-values.ts";
import type { Painter } from "../output/painter.ts";
import type { Progress } from "../output/progress.ts";
import type { Terminal } from "../output/terminal.ts";

/** What a command's body has to work with. */
export interface Session {
  readonly terminal: Terminal;
  readonly log: Logger;
  readonly scrubber: Scrubber;
  /** Aborts, with an `interrupted` error, when the user asks for a stop. */
  readonly signal: AbortSignal;
  /** Whether results and errors are JSON. */
  readonly json: boolean;
  /** Values of the options that every command has. */
  readonly globals: GlobalValues;
  /** Colours what reports say of states, where standard output shows colours. */
  readonly paint: Painter;
  /** A text from below the command line, with commands that work in the folders of this one. */
  toCopy(text: string): string;
  /** Text for standard error, as it stands. */
  say(text: string): void;
  /**
   * Prints a report on standard output, text or JSON, in lines that are ours: what else a terminal would obey is escaped.
   * Parts from outside that may have line feeds go through `visible` before. Gives and throws what `Terminal.out` does.
   */
  print(text: string): Promise<boolean>;
  /** A sentence for people on standard error, in one line; silent with --quiet. */
  note(text: string): void;
  /** Tells of an error that does not end the command; gives the exit status it leads to. */
  failure(thrown: unknown): number;
  /** Shows progress on standard error, by the place it goes to. One at a time; dispose it. */
  progress(): Progress;
}
