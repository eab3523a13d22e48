import { createRequire } from "node:module";
import type { Logger } from "pino";
import { visible } from "../../model/text/visible-text.ts";
import type { LogFormat } from "./log-format.ts";

const require = createRequire(import.meta.url);

export interface LogOptions {
  readonly format: LogFormat;
  /** Least level shown: normally warn, debug when verbose, error when quiet. */
  readonly level: "debug" | "info" | "warn" | "error";
  /** Writes whole lines, after removing secrets. */
  readonly write: (text: string) => void;
}

/** A command's logger: pino's JSON lines, or short text for people. */
export function createLog(options: LogOptions): Logger {
  const { format, level, write } = options;
  // loaded late: most commands log nothing
  const { pino } = require("pino") as typeof import("pino");
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: (line: string) => write(format === "json" ? line : textLine(line)) },
  );
}

function textLine(line: string): string {
  const { level, time, msg, ...rest } = JSON.parse(line) as Record<string, unknown>;
  const clock = String(time).slice(11, 19);
  const facts = Object.entries(rest).map(
    ([name, value]) =>
      ` ${name}=${typeof value === "object" ? JSON.stringify(value) : visible(String(value))}`,
  );
  return `${clock} ${String(level)}: ${visible(String(msg ?? ""))}${facts.join("")}\n`;
}
