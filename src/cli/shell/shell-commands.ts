import { type Format, formatOf, formats } from "../../analytics/render/format.ts";
import { literal } from "../../duckdb/sql.ts";
import { RunvaultError } from "../../model/error.ts";
import { nearestName } from "../../model/text/nearest-name.ts";

/** The state that shell commands change. */
export interface ShellState {
  format: Format;
  /** Where only the next answer goes. */
  out: { readonly file: string; readonly force: boolean } | null;
  timing: boolean;
}

/** What the shell does for a command, besides changes to the state. */
export type ShellAction =
  | { readonly kind: "say"; readonly text: string }
  | { readonly kind: "sql"; readonly text: string }
  | { readonly kind: "read"; readonly file: string }
  | { readonly kind: "quit" };

interface ShellCommand {
  /** `.help` shows the first. */
  readonly names: readonly string[];
  readonly argument?: string;
  readonly help: string;
  /** `text` is the rest of the line, trimmed. */
  run(text: string, state: ShellState): ShellAction;
}

const said = (text: string): ShellAction => ({ kind: "say", text });

const commands: readonly ShellCommand[] = [
  {
    names: [".help", "\\?"],
    help: "list these commands",
    run: () => said(helpText()),
  },
  {
    names: [".tables", "\\dt"],
    help: "list the tables",
    run: () => ({ kind: "sql", text: "SHOW TABLES" }),
  },
  {
    names: [".schema", "\\d"],
    argument: "[TABLE]",
    help: "show the columns of a table, or of all",
    run: (table) => ({
      kind: "sql",
      text: `SELECT table_name AS "table", column_name AS "column", data_type AS type FROM duckdb_columns() WHERE NOT internal${table === "" ? "" : ` AND table_name = lower(${literal(table.replace(/;$/, ""))})`}`,
    }),
  },
  {
    names: [".format"],
    argument: "NAME",
    help: `format of the answers: ${formats.join(", ")}`,
    run: (name, state) => {
      if (name === "") return said(`${state.format}\n`);
      state.format = oneOf(formats, name, "format");
      return said("");
    },
  },
  {
    names: ["\\x"],
    help: "switch between one field per line and a table",
    run: (_, state) => {
      state.format = state.format === "vertical" ? "table" : "vertical";
      return said(`${state.format}\n`);
    },
  },
  {
    names: [".output", "\\o"],
    argument: "[FILE [--force]]",
    help: "write the next answer to a file, in the format of its ending; without FILE, show it after all",
    run: (text, state) => {
      const file = text.replace(/\s+--force$/, "");
      state.out = file === "" ? null : { file, force: file !== text };
      return said("");
    },
  },
  {
    names: [".read", "\\i"],
    argument: "FILE",
    help: "run the statements of a file",
    run: (file) => {
      if (file === "") throw wrong("no file is named", "Write .read FILE.");
      return { kind: "read", file };
    },
  },
  {
    names: [".timing", "\\timing"],
    argument: "on|off",
    help: "show the number of rows and the time taken",
    run: (word, state) => {
      state.timing = word === "" ? !state.timing : oneOf(["on", "off"], word, "word") === "on";
      return said(`timing is ${state.timing ? "on" : "off"}\n`);
    },
  },
  {
    names: [".quit", "\\q", ".exit"],
    help: "quit, like Ctrl-D",
    run: () => ({ kind: "quit" }),
  },
];

export const commandNames: readonly string[] = commands.flatMap(({ names }) => names);

/** Words that people type to leave any shell; no SQL statement is one of them. */
const leaving = /^\s*(?:quit|exit)\s*;?\s*$/i;

/** Whether a line is a command of the shell, if no statement has begun. */
export function isShellCommand(line: string): boolean {
  return /^\s*[.\\]/.test(line) || leaving.test(line);
}

/** Runs a shell command on the state. Throws `invalid_argument` for an unknown one. */
export function runShellCommand(line: string, state: ShellState): ShellAction {
  if (leaving.test(line)) return { kind: "quit" };
  const [, name = "", text = ""] = /^\s*(\S+)\s*(.*?)\s*$/.exec(line) ?? [];
  const command = commands.find(({ names }) => names.includes(name));
  if (command !== undefined) return command.run(text, state);
  const near = nearestName(name, commandNames);
  throw wrong(
    `there is no command ${name}`,
    near === null ? ".help lists them." : `Did you mean ${near}? .help lists all.`,
  );
}

/** The format of the next answer: that of its file's name, if it has one. */
export function formOf({ format, out }: ShellState): Format {
  return out === null ? format : (formatOf(out.file) ?? format);
}

function oneOf<T extends string>(names: readonly T[], text: string, what: string): T {
  const found = names.find((name) => name === text);
  if (found !== undefined) return found;
  const near = nearestName(text, names);
  throw wrong(
    `there is no ${what} ${text}`,
    `${near === null ? "" : `Did you mean ${near}? `}There are ${names.join(", ")}.`,
  );
}

function wrong(message: string, hint: string): RunvaultError {
  return new RunvaultError("invalid_argument", message, { hint });
}

function helpText(): string {
  const left = commands.map(({ names, argument = "" }) => `${names.join(", ")} ${argument}`.trimEnd());
  const width = Math.max(...left.map((text) => text.length));
  const lines = commands.map(({ help }, index) => `${left[index]!.padEnd(width)}  ${help}\n`);
  return `${lines.join("")}A statement may span lines and ends with a semicolon. Ctrl-C stops it.\n`;
}
