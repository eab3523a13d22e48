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
  /** The folders that the command was given; null for one that takes none. */
  readonly folders: Folders | null;
  /** Takes text for standard error; takes secrets out itself. */
  readonly write: (text: string) => void;
  /** Told true when a bar takes the terminal's last line, false when it gave it back. */
  readonly onBar?: (up: boolean) => void;
}

/** What a command works with, by the options that every command has. */
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
      // the bar's line is most likely on the same terminal; its own stream is told, in case it is not
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

/** How hints are told by a command that was given these folders. */
export function hintTextOf(folders: Folders | null, terminal: Terminal): (hint: string) => string {
  if (folders === null) return (hint) => hint;
  const command = commandsToCopy(folders, { terminal });
  return (hint) => commandsInText(hint, command);
}
