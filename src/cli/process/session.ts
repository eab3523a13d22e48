import type { Logger } from "pino";
import type { Scrubber } from "../../model/text/scrubber.ts";
import type { GlobalValues } from "../options/global-values.ts";
import type { Painter } from "../output/painter.ts";
import type { Progress } from "../output/progress.ts";
import type { Terminal } from "../output/terminal.ts";

/** What every command's body works with. */
export interface Session {
  readonly terminal: Terminal;
  readonly log: Logger;
  readonly scrubber: Scrubber;
  /** Aborts with an `interrupted` error when the user asks for a stop. */
  readonly signal: AbortSignal;
  /** Whether results and errors are JSON. */
  readonly json: boolean;
  /** Values of the options that every command has. */
  readonly globals: GlobalValues;
  /** Colours states in reports, if standard output shows colours. */
  readonly paint: Painter;
  /** Makes the commands in a text work in this command's folders. */
  toCopy(text: string): string;
  /** Writes text to standard error as it is. */
  say(text: string): void;
  /**
   * Prints a report on standard output, text or JSON, with control characters escaped. Parts from outside that may have
   * line feeds must go through `visible` first. Returns and throws like `Terminal.out`.
   */
  print(text: string): Promise<boolean>;
  /** Prints a one-line note for people on standard error; silent with --quiet. */
  note(text: string): void;
  /** Reports an error that does not end the command; returns its exit status. */
  failure(thrown: unknown): number;
  /** Shows progress on standard error. One at a time; dispose it. */
  progress(): Progress;
}
