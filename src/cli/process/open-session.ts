import type { Scrubber } from "../../model/text/scrubber.ts";
import { visible, visibleColouredLines, visibleLines } from "../../model/text/visible-text.ts";
import type { GlobalValues } from "../options/global-values.ts";
import { commandsToCopy, type Folders } from "../output/command-to-copy.ts";
import { commandsInText } from "../output/commands-in-text.ts";
import { painter } from "../output/painter.ts";
import { backToBarLine, leaveBarLine, showProgress } from "../output/progress.ts";
import type { Terminal } from "../output/terminal.ts";
import { wrapLines } from "../output/wrap-lines.ts";
import { reportFailure } from "./failure.ts";
import { createLog } from "./log.ts";
import type { Session } from "./session.ts";

export interface SessionOptions {
  readonly globals: GlobalValues;
  readonly terminal: Terminal;
  readonly scrubber: Scrubber;
  readonly signal: AbortSignal;
  /** The command's folders; null for a command that takes none. */
  readonly folders: Folders | null;
  /** Writes to standard error, after removing secrets. */
  readonly write: (text: string) => void;
  /** Called with true when a bar takes the terminal's last line, with false when it releases it. */
  readonly onBar?: (up: boolean) => void;
}

/** Builds a command's session from the options that every command has. */
export function openSession(options: SessionOptions): Session {
  const { terminal, scrubber, signal, globals, folders, write, onBar } = options;
  const { json, quiet, verbose, debug, logFormat } = globals;
  let log: Session["log"] | undefined;
  let bar = false;
  const toCopy = hintTextOf(folders, terminal);
  return {
    terminal,
    scrubber,
    json,
    globals,
    signal,
    get log() {
      log ??= createLog({ format: logFormat, level: verbose ? "debug" : quiet ? "error" : "warn", write });
      return log;
    },
    toCopy,
    say: write,
    paint: painter(terminal.hasColours && !json),
    print: async (text) => {
      const clean = (terminal.hasColours ? visibleColouredLines : visibleLines)(text);
      if (!bar || !terminal.stdoutIsTerminal) return await terminal.out(clean);
      // the bar is most likely on the same terminal; its own stream gets this, in case it is not
      terminal.err(leaveBarLine);
      try {
        return await terminal.out(clean);
      } finally {
        if (bar) terminal.err(backToBarLine);
      }
    },
    note: (text) => {
      if (!quiet) write(wrapLines(`${visible(text)}\n`, json ? null : terminal.columns));
    },
    failure: (thrown) => reportFailure(thrown, { json, debug, hintText: toCopy, write }),
    progress: () =>
      showProgress({
        style: quiet ? "off" : terminal.stderrIsTerminal && !json ? "bar" : "lines",
        stream: terminal.stderr,
        write,
        onBar: (up) => {
          bar = up;
          onBar?.(up);
        },
      }),
  };
}

/** Prepares hints for a command with these folders. */
export function hintTextOf(folders: Folders | null, terminal: Terminal): (hint: string) => string {
  if (folders === null) return (hint) => hint;
  const command = commandsToCopy(folders, { terminal });
  return (hint) => commandsInText(hint, command);
}
