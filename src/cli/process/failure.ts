import { type ErrorPlace, exit, RunvaultError, worstExit } from "../../model/error.ts";
import { visible } from "../../model/text/visible-text.ts";

export interface FailureOptions {
  /** One line of JSON, `{"error": {code, message, place, hint, exit}}`, instead of text. */
  readonly json: boolean;
  /** With stack and causes. */
  readonly debug: boolean;
  /** Makes the commands in a hint work in this command's folders. */
  readonly hintText: (hint: string) => string;
  /** Writes to standard error, after removing secrets. */
  readonly write: (text: string) => void;
}

/** Reports what went wrong, where, and what to do; several errors one by one. Returns the exit status. */
export function reportFailure(thrown: unknown, options: FailureOptions): number {
  if (thrown instanceof AggregateError && thrown.errors.length > 0) {
    return worstExit(thrown.errors.map((part: unknown) => reportFailure(part, options)));
  }
  const error = RunvaultError.from(thrown);
  const status = exitOf(error);
  const hint = error.hint === undefined ? undefined : options.hintText(error.hint);
  if (options.json) {
    const { code, message, place } = error;
    const debug = options.debug ? { stack: stackOf(error) } : {};
    options.write(
      `${JSON.stringify({ error: { code, message, place, hint: hint ?? null, exit: status, ...debug } })}\n`,
    );
    return status;
  }
  const lines = [`runvault: ${error.code}: ${continued(error.message)}`];
  const place = placeText(error.place);
  if (place !== "") lines.push(`  at: ${place}`);
  if (error.code === "internal")
    lines.push("  This is a bug in runvault: report it with the output of --debug.");
  if (hint !== undefined) lines.push(`  hint: ${visible(hint)}`);
  if (options.debug) lines.push(continued(stackOf(error)));
  options.write(`${lines.join("\n")}\n`);
  return status;
}

/** A signal's error carries status 143 if it was a SIGTERM. */
function exitOf(error: RunvaultError): number {
  return error.code === "interrupted" && error.status === exit.terminated ? exit.terminated : error.exit;
}

const placeWords: readonly (readonly [keyof ErrorPlace, string])[] = [
  ["instance", "instance"],
  ["run", "run"],
  ["table", "table"],
  ["slice", "slice"],
  ["url", "url"],
  ["file", "file"],
  ["line", "line"],
  ["column", "column"],
];

/** A place in one line. */
export function placeText(place: ErrorPlace): string {
  return placeWords
    .filter(([part]) => place[part] !== undefined)
    .map(([part, word]) => `${word} ${visible(String(place[part]))}`)
    .join(", ");
}

/** A text in which only the first line starts at the margin, so that quoted lines are not taken for ours. */
function continued(text: string): string {
  const [first = "", ...rest] = text.split("\n");
  // databases indent with tabs
  const indented = rest.map((line) => `  | ${visible(line.replaceAll("\t", "  "))}`.trimEnd());
  return [visible(first), ...indented].join("\n");
}

function stackOf(error: Error): string {
  const parts: string[] = [];
  for (let at: unknown = error; at instanceof Error && parts.length < 8; at = at.cause) {
    parts.push(at.stack ?? String(at));
  }
  return parts.join("\ncaused by ");
}
